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
  /// An uncompressed archive, read by offset: if the file is truncated meanwhile, reading throws
  /// FormatError and raises no signal. The file must outlive the reader.
  explicit TarReader(const InputFile& file);
  /// Bytes of a .tar or .tar.gz. The bytes and the name (for messages) must outlive the reader.
  TarReader(std::string_view bytes, const std::string& name);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  /// Advances to the next regular file; false at the end. Skips folders, and counts links, devices
  /// and sparse files. Throws FormatError if the archive is invalid, damaged or truncated.
  bool next();
  /// Number of members so far that are neither files nor folders.
  std::int64_t passed_over() const noexcept { return passed_over_; }
  /// Full path of the current file, from a long-name header if there is one (pax "path", GNU "L").
  const std::string& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }
  /// Offset of its content in the decompressed bytes, before read().
  std::uint64_t place() const noexcept { return place_; }
  /// Reads its content, once. Throws FormatError if it exceeds `limit` bytes, or if the archive
  /// ends before.
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
