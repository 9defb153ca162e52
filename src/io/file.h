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

/// The path as the system takes it. Throws IoError for one with a zero byte, behind which the
/// system would not look.
const char* system_path(const std::string& path);

/// Throws IoError where the path is a link of another user, who would choose what is overwritten.
void refuse_foreign_link(const std::string& path);
/// Opens for writing, as open() does; throws as refuse_foreign_link does.
int open_to_write(const std::string& path, int flags);

/// An open regular file for reading at given places.
class InputFile {
 public:
  /// Throws IoError naming the path and the system's reason, and for what is no regular file: a
  /// pipe may never end, nor a device.
  explicit InputFile(const std::string& path);
  /// Of what was opened before, and is closed with it.
  InputFile(const std::string& path, int fd);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }
  int fd() const noexcept { return fd_; }
  /// Reads exactly `bytes` at `offset`; FormatError when the file ends before.
  void read_at(std::uint64_t offset, void* out, std::uint64_t bytes) const;
  /// Everything from the start. FormatError beyond `limit`.
  std::string read_all(std::uint64_t limit) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// A regular file's bytes without reading them first: the system brings in the pages that are
/// looked at. Of a file that is cut short meanwhile, zeros are in the place of what is gone;
/// whoever reads asks require_whole() afterwards.
class MappedFile {
 public:
  /// Throws IoError as InputFile does.
  explicit MappedFile(const std::string& path);
  explicit MappedFile(std::unique_ptr<const InputFile> file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const noexcept { return bytes_; }
  /// Throws FormatError where the file has become shorter, so that what was read may be zeros.
  void require_whole() const;

  struct Watched;

 private:
  std::unique_ptr<const InputFile> file_;
  std::string_view bytes_;
  Watched* watched_ = nullptr;
};

/// Writes the pieces one after another as one file, whole or not at all. Throws IoError; nothing
/// half-written stays.
void write_pieces(const std::string& path, std::span<const std::string_view> pieces);

/// True when the bytes start as a gzip file does.
bool is_gzip(std::string_view bytes) noexcept;
/// The most bytes that `packed` bytes of gzip unpack to: deflate packs to no less than 1/1032.
constexpr std::uint64_t most_unpacked(std::uint64_t packed) { return packed * 1032; }

/// Unpacks a gzip file of one or more members piece by piece. Bytes and name must outlive it.
class GunzipStream {
 public:
  GunzipStream(std::string_view bytes, const std::string& name);
  ~GunzipStream();
  GunzipStream(const GunzipStream&) = delete;
  GunzipStream& operator=(const GunzipStream&) = delete;

  /// Unpacks the next `room` bytes; fewer only at the end. Throws FormatError for corrupt or
  /// truncated bytes, and for trailing ones when it comes to them.
  std::size_t read(void* out, std::size_t room);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Unpacks a gzip file of one or more members. Throws FormatError for corrupt or truncated bytes,
/// trailing ones, or more than `limit` bytes unpacked.
std::string gunzip(std::string_view bytes, const std::string& name, std::uint64_t limit = kMaxFile);

/// Unpacks deflate's bytes without gzip's frame into all of `out`. Throws FormatError, beginning
/// with `what`, for corrupt ones or when they give fewer or more.
void inflate_raw(std::string_view packed, std::string& out, const std::string& what);

/// The first bytes of what deflate packed, `most` at the most; what is corrupt ends them.
std::string inflate_start(std::string_view packed, std::size_t most);

/// Whether anything is there, readable or not.
bool is_there(const std::string& path) noexcept;

/// True when something can be opened for reading there.
bool file_exists(const std::string& path) noexcept;

}  // namespace tenon::io
