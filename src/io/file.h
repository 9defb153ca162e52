// Whole files: read with a limit, written atomically, unpacked from gzip. The one place of the
// library that opens files for data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tenon::io {

inline constexpr std::uint64_t kMaxFile = 1ull << 34;  // 16 GiB

/// Returns the path. Throws IoError if it contains a zero byte, at which the system would end it.
const char* system_path(const std::string& path);

/// Throws IoError if the path is a symbolic link of another user, who could choose the file to be
/// overwritten.
void refuse_foreign_link(const std::string& path);
/// Opens for writing like open(); throws like refuse_foreign_link.
int open_to_write(const std::string& path, int flags);

/// An open regular file, read at given offsets.
class InputFile {
 public:
  /// Throws IoError with path and reason, and for files that are not regular, because pipes and
  /// devices may never end.
  explicit InputFile(const std::string& path);
  /// Takes ownership of an open descriptor.
  InputFile(const std::string& path, int fd);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }
  int fd() const noexcept { return fd_; }
  /// Reads exactly `bytes` bytes at `offset`; FormatError if the file ends before.
  void read_at(std::uint64_t offset, void* out, std::uint64_t bytes) const;
  /// Reads the whole file. FormatError if it is larger than `limit`.
  std::string read_all(std::uint64_t limit) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// A memory-mapped regular file: the system loads pages on access. If the file is truncated
/// meanwhile, its lost pages read as zeros; a reader must call require_whole() afterwards.
class MappedFile {
 public:
  /// Throws IoError like InputFile.
  explicit MappedFile(const std::string& path);
  explicit MappedFile(std::unique_ptr<const InputFile> file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const noexcept { return bytes_; }
  /// Throws FormatError if the file has become shorter, so that bytes read may be zeros.
  void require_whole() const;

  struct Watched;

 private:
  std::unique_ptr<const InputFile> file_;
  std::string_view bytes_;
  Watched* watched_ = nullptr;
};

/// Writes the pieces one after another to one file, atomically. Throws IoError; no incomplete file
/// remains.
void write_pieces(const std::string& path, std::span<const std::string_view> pieces);

/// Whether the bytes start with the gzip magic.
bool is_gzip(std::string_view bytes) noexcept;
/// Upper bound of the decompressed size of `packed` bytes: deflate compresses to no less than
/// 1/1032.
constexpr std::uint64_t most_unpacked(std::uint64_t packed) { return packed * 1032; }

/// Decompresses a gzip file of one or more members piece by piece. Bytes and name must outlive it.
class GunzipStream {
 public:
  GunzipStream(std::string_view bytes, const std::string& name);
  ~GunzipStream();
  GunzipStream(const GunzipStream&) = delete;
  GunzipStream& operator=(const GunzipStream&) = delete;

  /// Decompresses the next `room` bytes; fewer only at the end. Throws FormatError for corrupt,
  /// truncated or trailing bytes.
  std::size_t read(void* out, std::size_t room);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Decompresses a gzip file of one or more members. Throws FormatError for corrupt, truncated or
/// trailing bytes, or if the result exceeds `limit` bytes.
std::string gunzip(std::string_view bytes, const std::string& name, std::uint64_t limit = kMaxFile);

/// Decompresses raw deflate data, an entry of the archive `file`, to exactly fill `out`. Throws
/// FormatError for corrupt data or another size.
void inflate_raw(std::string_view packed, std::string& out, const std::string& file,
                 std::string_view entry);

/// The first decompressed bytes, at most `most`; ends at corrupt data.
std::string inflate_start(std::string_view packed, std::size_t most);

/// Whether the path exists, readable or not.
bool is_there(const std::string& path) noexcept;
/// Throws IoError if the system does not tell whether the path exists, for instance because
/// permissions hide a folder.
void require_visible(const std::string& path);

/// Whether the path can be opened for reading.
bool file_exists(const std::string& path) noexcept;

}  // namespace tenon::io
