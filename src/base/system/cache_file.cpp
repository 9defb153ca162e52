// Cache files on POSIX. A writer's file has a unique temporary name and is then renamed, so readers
// and other writers see whole files only.
#include "base/system/cache_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/str.h"
#include "base/system/env.h"
#include "base/system/folder_names.h"
#include "base/system/log.h"

namespace tenon {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
// The permission bits left on a cache's folder that others could write into, and on the folder of
// all caches. Others may read the latter, because the folders in it are closed.
constexpr mode_t kOwnBits = S_IRWXU, kAllButWriting = 07777 & ~kOthersWrite;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Files of root are trusted like the user's own.
bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0; }

std::string belongs_to(const char* what, uid_t owner) {
  return cat(what, " belongs to user ", static_cast<std::int64_t>(owner), ", not to this one (",
             static_cast<std::int64_t>(::geteuid()), ")");
}

void warn_once(const std::string& folder, const std::string& why) {
  static std::mutex mutex;
  static auto* const told = new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!told->insert(folder).second) return;
  }
  log_message(LogLevel::Warning, cat(folder, " is not used as a cache: ", why,
                                     "; set TENON_CACHE to a folder of your own"));
}

// The folders in which cache_folder_of has returned folders. Later calls do not read the
// environment again, because another thread may be changing it.
class Roots {
 public:
  void add(const std::string& root) {
    const std::lock_guard lock(mutex_);
    roots_.insert(root);
  }
  bool holds(const std::string& folder) const {
    const std::lock_guard lock(mutex_);
    return roots_.contains(folder);
  }
  // The known folders that contain `folder`, outermost first, and `folder` itself.
  std::vector<std::string> down_to(const std::string& folder) const {
    std::vector<std::string> out;
    const std::lock_guard lock(mutex_);
    for (const std::string& root : roots_)
      if (folder.starts_with(root + "/")) out.push_back(root);
    out.push_back(folder);
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> roots_;
};

Roots& known_roots() {
  static auto* const roots = new Roots;  // threads may outlive main()
  return *roots;
}

// Creates missing folders with access for their owner alone.
bool make_folders(const std::string& folder) {
  for (std::size_t end = 1; end != std::string::npos;) {
    end = folder.find('/', end + 1);
    if (::mkdir(folder.substr(0, end).c_str(), S_IRWXU) != 0 && errno != EEXIST &&
        end == std::string::npos)
      return false;
  }
  return true;
}

// Opens a folder inside an open one, or by its whole name with AT_FDCWD. Returns -1 if it does not
// exist or is not safe for a cache; `why` then gives the reason. The folder is checked after it is
// opened, so renaming cannot exchange it. If the folder belongs to this user and others may write
// into it, its mode is reduced to these bits; except a sticky folder such as /tmp, which is meant
// to be shared.
int open_trusted(int in, const std::string& name, mode_t left, std::string& why) {
  struct stat link {
  }, target{};
  if (::fstatat(in, name.c_str(), &link, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  if (!is_trusted(link.st_uid)) {
    why = belongs_to("it", link.st_uid);
    return -1;
  }
  const int fd = ::openat(in, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {  // without this folder nothing can be read or created
    if (errno != ENOTDIR && errno != ENOENT)
      why = cat("it cannot be opened: ", std::generic_category().message(errno));
    return -1;
  }
  if (::fstat(fd, &target) != 0)
    why = "its owner cannot be read";
  else if (!is_trusted(target.st_uid))
    why = belongs_to("the target of the link", target.st_uid);
  else if ((target.st_mode & kOthersWrite) != 0 &&
           (target.st_uid != ::geteuid() || (target.st_mode & S_ISVTX) != 0 ||
            ::fchmod(fd, target.st_mode & left) != 0))
    why = "other users can write into it";
  if (why.empty()) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

std::string cache_folder_of(const char* name) {
  const std::string base = user_cache_folder();
  if (!base.empty()) {
    // With a trailing slash a link would be followed.
    const std::string root = base.substr(0, base.find_last_not_of('/') + 1);
    if (!root.empty()) known_roots().add(root);
    return cat(root, "/", name);
  }
  static std::atomic<bool> told{false};
  if (!told.exchange(true))
    log_message(LogLevel::Warning,
                "nothing is cached on disk: neither HOME nor XDG_CACHE_HOME names a folder; set "
                "TENON_CACHE to one");
  return "";
}

std::string unguessable() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bits)) {
    // Early in a system's start random bits may be missing: O_EXCL still keeps planted names from
    // being used.
    static std::atomic<std::uint64_t> counter{0};
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    bits = (static_cast<std::uint64_t>(now) ^ static_cast<std::uint64_t>(::getpid()) << 40) *
               0x9E3779B97F4A7C15ull +
           counter.fetch_add(1);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(bits));
  return text;
}

CacheFolder::CacheFolder(const std::string& path) {
  int in = AT_FDCWD;
  std::size_t begin = 0;  // of the name in the open folder
  for (const std::string& each : known_roots().down_to(path)) {
    std::string why;
    const int fd = open_trusted(in, each.substr(begin),
                                known_roots().holds(each) ? kAllButWriting : kOwnBits, why);
    if (in != AT_FDCWD) ::close(in);
    if (!why.empty()) {
      warn_once(each, why);
      refusal_ = cat(each, ": ", why);
    }
    if (fd < 0) return;
    in = fd;
    begin = each.size() + 1;
  }
  fd_ = in;
}

CacheFolder::~CacheFolder() {
  if (fd_ >= 0) ::close(fd_);
}

bool CacheFolder::holds(const std::string& name) const noexcept {
  struct stat info {};
  return ::fstatat(fd_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

void CacheFolder::touch(const std::string& name, std::int64_t seconds) const noexcept {
  struct stat info {};
  if (::fstatat(fd_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
  // A time in the future was written before the clock was set back; it is ignored.
  const std::int64_t age = ::time(nullptr) - info.st_mtime;
  if (age >= 0 && age < seconds) return;
  ::utimensat(fd_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void CacheFolder::remove(const std::string& name) const noexcept {
  ::unlinkat(fd_, name.c_str(), 0);
}

void CacheFolder::shrink(std::string_view ending, std::int64_t most, std::int64_t left,
                         std::int64_t stale) const {
  struct Entry {
    std::string name;
    timespec time;
    std::int64_t bytes;
  };
  std::vector<Entry> entries;
  std::int64_t total = 0;
  std::error_code error;
  for (std::string& name : names_in(fd_, error)) {
    struct stat info {};
    if (::fstatat(fd_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
      continue;
    // A time far in the future is from a clock that has been set back since.
    const std::int64_t age = ::time(nullptr) - info.st_mtime;
    if (name.ends_with(".tmp") && (age > stale || age < -stale)) remove(name);
    if (!name.ends_with(ending)) continue;
    total += info.st_size;
    entries.push_back({std::move(name), info.st_mtim, info.st_size});
  }
  if (total <= most) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.time.tv_sec, a.time.tv_nsec) < std::pair(b.time.tv_sec, b.time.tv_nsec);
  });
  for (const Entry& entry : entries) {
    if (total <= left) return;
    if (::unlinkat(fd_, entry.name.c_str(), 0) == 0) total -= entry.bytes;
  }
}

std::optional<std::int64_t> CacheFolder::free_bytes() const noexcept {
  struct statvfs space {};
  if (::fstatvfs(fd_, &space) != 0) return std::nullopt;
  return static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize);
}

int open_cache_file(const std::string& path) noexcept try {
  const std::string folder = folder_of(path);
  const CacheFolder open(folder);
  if (open.fd() < 0) return -1;
  const int fd =
      ::openat(open.fd(), name_of(path).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ELOOP) warn_once(folder, cat(path, " is a link"));
    return -1;
  }
  struct stat info {};
  std::string why;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    why = cat(path, " is not a regular file");
  else if (!is_trusted(info.st_uid))
    why = belongs_to(path.c_str(), info.st_uid);
  else if ((info.st_mode & kOthersWrite) != 0)
    why = cat("other users can write into ", path);
  if (why.empty()) return fd;
  ::close(fd);
  warn_once(folder, why);
  return -1;
} catch (const std::exception&) {  // out of memory: treated as missing
  return -1;
}

std::optional<std::string> read_cache_file(const std::string& path, std::size_t most) {
  const int fd = open_cache_file(path);
  if (fd < 0) return std::nullopt;
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } const closer{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0 || static_cast<std::uint64_t>(info.st_size) > most)
    return std::nullopt;
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

CacheFileWriter::CacheFileWriter(std::string path) : path_(std::move(path)) {
  const std::string folder = folder_of(path_);
  // All are checked before anything is created in them.
  for (const std::string& each : known_roots().down_to(folder)) {
    if (!make_folders(each)) {
      fail("make the folder of");
      return;
    }
    folder_.emplace(each);
    if (problem_ = folder_->refusal(); !problem_.empty()) return;
  }
  name_ = cat(name_of(path_), ".", unguessable(), ".tmp");
  fd_ = ::openat(folder_->fd(), name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                 S_IRUSR | S_IWUSR);
  if (fd_ < 0) fail("make");
}

CacheFileWriter::~CacheFileWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlinkat(folder_->fd(), name_.c_str(), 0);
}

void CacheFileWriter::fail(const char* action) {
  problem_ = cat("cannot ", action, " ", path_, ": ", std::generic_category().message(errno));
}

void CacheFileWriter::write(const void* from, std::size_t bytes) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 18;
  buffer_.append(static_cast<const char*>(from), bytes);
  if (buffer_.size() >= kAtOnce) flush();
}

void CacheFileWriter::flush() {
  for (std::string_view rest = buffer_; problem_.empty() && !rest.empty();) {
    const ssize_t done = ::write(fd_, rest.data(), rest.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return fail("write");
    rest.remove_prefix(static_cast<std::size_t>(done));
  }
  buffer_.clear();
}

void CacheFileWriter::commit() {
  flush();
  if (!problem_.empty()) return;
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed == 0 &&
      ::renameat(folder_->fd(), name_.c_str(), folder_->fd(), name_of(path_).c_str()) == 0)
    return;
  fail("write");
  ::unlinkat(folder_->fd(), name_.c_str(), 0);
}

bool write_cache_file(const std::string& path,
                      std::initializer_list<std::string_view> pieces) noexcept try {
  CacheFileWriter file(path);
  for (const std::string_view piece : pieces) file.write(piece.data(), piece.size());
  file.commit();
  return file.problem().empty();
} catch (const std::exception&) {  // out of memory: treated like a full disk
  return false;
}

}  // namespace tenon
