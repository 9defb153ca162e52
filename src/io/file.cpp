// POSIX files. Every failing call becomes an IoError with the path, the reason and what to do.
// Files are written under a temporary name and renamed, so a reader never sees half a file.
#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/cache_file.h"

namespace tenon::io {
namespace {

const char* advice(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return ": free some space or choose another folder";
    case EACCES:
    case EPERM:
      return ": check the permissions or choose another folder";
    case EROFS:
      return ": choose a folder on a disk that can be written";
    case ENOENT:
      return ": check the path";
    case ELOOP:
      return ": the symbolic links of this path form a loop";
    default:
      return "";
  }
}

[[noreturn]] void fail(const std::string& path, const char* action, int code) {
  throw make_error<IoError>(FileName{path}, ": cannot ", action, ": ",
                            std::generic_category().message(code), advice(code));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Follows symbolic links, so that writing replaces the target and keeps the link.
std::string resolve(const std::string& path) {
  refuse_foreign_link(path);
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(system_path(path), nullptr),
                                                         &std::free);
  return real ? std::string(real.get()) : path;
}

void write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const std::size_t portion = std::min<std::size_t>(bytes.size(), 1u << 30);
    const ssize_t done = ::write(fd, bytes.data(), portion);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(path, "write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

// A file under a temporary name. The destructor removes the file unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : target_(target) {
    name_ = cat(target, ".tmp-", unguessable());
    fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd_ < 0) fail(target_, "create a file beside it", errno);
  }
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!renamed_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const noexcept { return fd_; }
  void commit() {
    if (::fsync(fd_) != 0 && errno != EINVAL) fail(target_, "flush to the disk", errno);
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) fail(target_, "finish writing", errno);
    if (::rename(name_.c_str(), target_.c_str()) != 0) fail(target_, "replace", errno);
    renamed_ = true;
    flush_folder();
  }

 private:
  // Flushing the folder makes the new name survive a power failure. Some file systems refuse to
  // flush a folder; that error is ignored, because nothing else can be done.
  void flush_folder() const {
    const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    ::fsync(folder);
    ::close(folder);
  }

  std::string target_, name_;
  int fd_ = -1;
  bool renamed_ = false;
};

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Pipes and devices cannot be replaced by renaming, so they are written in place. A pipe without a
// reader is an error, not a wait.
bool write_in_place(const std::string& path, std::span<const std::string_view> pieces) {
  refuse_foreign_link(path);
  struct stat info {};
  if (::stat(system_path(path), &info) != 0 || S_ISREG(info.st_mode)) return false;
  if (S_ISDIR(info.st_mode)) fail(path, "write", EISDIR);
  const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) fail(path, "open", errno);
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd,
                                                                [](const int* f) { ::close(*f); });
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0) fail(path, "open", errno);
  for (std::string_view piece : pieces) write_all(fd, piece, path);
  return true;
}

}  // namespace

void refuse_foreign_link(const std::string& path) {
  struct stat info {};
  if (::lstat(system_path(path), &info) != 0 || !S_ISLNK(info.st_mode)) return;
  if (info.st_uid == ::geteuid() || info.st_uid == 0) return;
  throw make_error<IoError>(
      FileName{path}, ": is a symbolic link of user ", static_cast<std::int64_t>(info.st_uid),
      "; what is written through it would go to a file of that user's choice: remove the link, "
      "or choose a folder of your own");
}

int open_to_write(const std::string& path, int flags) {
  int fd = ::open(system_path(path), flags | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd >= 0 || errno != ELOOP) return fd;
  refuse_foreign_link(path);
  return ::open(path.c_str(), flags | O_CLOEXEC, 0666);
}

const char* system_path(const std::string& path) {
  if (const std::size_t zero = path.find('\0'); zero != std::string::npos)
    throw IoError(cat(path.substr(0, zero), "\\0", path.substr(zero + 1),
                      ": a path cannot contain a zero byte"),
                  {.file = path});
  return path.c_str();
}

// Non-blocking, because opening a pipe would wait for its writer.
InputFile::InputFile(const std::string& path)
    : InputFile(path, ::open(system_path(path), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}

InputFile::InputFile(const std::string& path, int fd) : path_(path), fd_(fd) {
  if (fd_ < 0) fail(path, "open", errno);
  struct stat info {};
  const int failed = ::fstat(fd_, &info) != 0 ? errno : (S_ISDIR(info.st_mode) ? EISDIR : 0);
  if (failed != 0) {
    ::close(fd_);
    fail(path, "read", failed);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd_);
    throw make_error<IoError>(FileName{path}, ": is ", kind_of(info.st_mode),
                              ", not a regular file: save its content to a file first");
  }
  size_ = static_cast<std::uint64_t>(std::max<off_t>(info.st_size, 0));
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::read_at(std::uint64_t offset, void* out, std::uint64_t bytes) const {
  char* to = static_cast<char*>(out);
  while (bytes > 0) {
    const std::size_t portion = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 1u << 30));
    const ssize_t got = ::pread(fd_, to, portion, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, "read", errno);
    if (got == 0)
      throw make_error<FormatError>(FileName{path_}, ": ends at byte ", offset, " where ", bytes,
                                    " more were expected: the file is truncated");
    to += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
}

std::string InputFile::read_all(std::uint64_t limit) const {
  const auto too_large = [&] {
    return make_error<FormatError>(FileName{path_}, ": has more than ", limit,
                                   " bytes, the limit for this kind of file");
  };
  if (size_ > limit) throw too_large();
  std::string bytes;
  try {
    // With one byte of room beyond the size, the end of a file that has not grown is seen without
    // another allocation.
    std::size_t capacity = static_cast<std::size_t>(size_) + 1;
    std::size_t used = 0;
    for (;;) {
      if (used == capacity) capacity += capacity / 2 + 65536;
      bytes.resize(capacity);
      const ssize_t got =
          ::read(fd_, bytes.data() + used, std::min<std::size_t>(capacity - used, 1u << 30));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(path_, "read", errno);
      if (got == 0) break;
      used += static_cast<std::size_t>(got);
      if (used > limit) throw too_large();
    }
    bytes.resize(used);
  } catch (const std::bad_alloc&) {
    throw MemoryError(cat(path_, ": its ", size_, " bytes do not fit into memory"));
  }
  return bytes;
}

std::string read_file(const std::string& path, std::uint64_t limit) {
  return InputFile(path).read_all(limit);
}

void write_pieces(const std::string& path, std::span<const std::string_view> pieces) {
  if (write_in_place(path, pieces)) return;
  TemporaryFile file(resolve(path));
  for (std::string_view piece : pieces) write_all(file.fd(), piece, path);
  file.commit();
}

void write_file(const std::string& path, std::string_view bytes) {
  write_pieces(path, {&bytes, 1});
}

bool is_there(const std::string& path) noexcept {
  return path.find('\0') == std::string::npos && ::access(path.c_str(), F_OK) == 0;
}

void require_visible(const std::string& path) {
  errno = 0;
  if (!is_there(path) && errno != ENOENT && errno != ENOTDIR)
    (void)InputFile(path);  // throws with the reason
}

bool file_exists(const std::string& path) noexcept {
  return path.find('\0') == std::string::npos && ::access(path.c_str(), R_OK) == 0;
}

}  // namespace tenon::io
