// Tar archives (V7, GNU, POSIX), compressed by gzip or not, read member by member: of a member only
// what is asked for is held, and no more than the archive can hold.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tenon::io {

class TarReader {
 public:
  /// Bytes of a .tar or .tar.gz. They and the name, which is for messages, must outlive the reader.
  TarReader(std::string_view bytes, const std::string& name);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  /// Goes to the next regular file; false at the archive's end. Folders, links and extended headers
  /// are passed over. Throws FormatError for what is no archive, is damaged or is cut short.
  bool next();
  /// Of the file that next() came to: its path as the archive has it, up to 255 bytes.
  const std::string& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }
  /// Where its contents begin among the unpacked bytes, before read().
  std::uint64_t place() const noexcept { return place_; }
  /// Its contents, once. Throws FormatError for more than `limit` bytes, or when the archive ends
  /// before.
  std::string read(std::uint64_t limit);

 private:
  struct Source;
  void skip(std::uint64_t bytes);
  std::unique_ptr<Source> source_;
  std::string path_;
  std::uint64_t size_ = 0, place_ = 0;
  std::uint64_t left_ = 0;  ///< bytes up to the next header
};

}  // namespace tenon::io
