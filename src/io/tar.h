// Tar archives (V7, GNU, POSIX with extended headers), with or without gzip, read member by member.
// Memory holds only the requested bytes of a member, and never more than the archive can contain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tenon::io {

class InputFile;

class TarReader {
 public:
  /// An archive that is not compressed, read by offset: whoever cuts the file short meanwhile gets
  /// a FormatError, not a signal. The file must outlive the reader.
  explicit TarReader(const InputFile& file);
  /// Bytes of a .tar or .tar.gz. They and the name, which is for messages, must outlive the reader.
  TarReader(std::string_view bytes, const std::string& name);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  /// Goes to the next regular file; false at the archive's end. Folders are passed over, and links,
  /// devices and sparse files counted. Throws FormatError for what is no archive, is damaged or is
  /// cut short.
  bool next();
  /// Members so far that are neither files nor folders.
  std::int64_t passed_over() const noexcept { return passed_over_; }
  /// Of the file that next() came to: its whole path, from a header for long names where there is
  /// one (pax "path", GNU "L").
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
  std::string read_extension();
  std::unique_ptr<Source> source_;
  std::string path_;
  std::uint64_t size_ = 0, place_ = 0;
  std::uint64_t left_ = 0;  ///< bytes up to the next header
  std::int64_t passed_over_ = 0;
};

}  // namespace tenon::io
