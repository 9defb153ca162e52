// Memory-mapped files. Another process may truncate a file while it is read; access to a page
// beyond the new end raises SIGBUS, which would terminate the program.
//
// The signal handler maps zero pages there and records the loss. A reader calls require_whole()
// after reading, before it uses the values. The handler is installed when the first file is mapped,
// and forwards faults outside mapped files to the previous handler. A handler that a program
// installs later takes precedence and should forward to the previous one, too.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <system_error>

#include <tenon/error.h>

#include "base/make_error.h"
#include "io/file.h"

namespace tenon::io {

/// A range of addresses whose pages may be lost. Reused, but never freed, because the handler may
/// read it at any time.
struct MappedFile::Watched {
  std::atomic<bool> taken{true};
  std::atomic<const char*> begin{nullptr};
  std::atomic<std::size_t> size{0};
  std::atomic<bool> lost{false};
  Watched* next = nullptr;
};

namespace {

std::atomic<MappedFile::Watched*> all_watched{nullptr};
std::uintptr_t page_size = 4096;
struct sigaction handler_before {};

static_assert(std::atomic<const char*>::is_always_lock_free &&
              std::atomic<std::size_t>::is_always_lock_free);

// True if the address is in a mapped file and can be read now.
bool replace_lost(const char* place) {
  for (MappedFile::Watched* w = all_watched.load(std::memory_order_acquire); w != nullptr;
       w = w->next) {
    const char* const begin = w->begin.load(std::memory_order_acquire);
    const std::size_t size = w->size.load(std::memory_order_relaxed);
    if (begin == nullptr || place < begin || place >= begin + size) continue;
    const char* const first = place - reinterpret_cast<std::uintptr_t>(place) % page_size;
    // Mappings start and end at page boundaries.
    const std::size_t mapped = (size + page_size - 1) / page_size * page_size;
    w->lost.store(true, std::memory_order_release);
    return ::mmap(const_cast<char*>(first), mapped - static_cast<std::size_t>(first - begin),
                  PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

// Forwards faults outside mapped files to the previous handler.
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool done = info->si_code > 0 && replace_lost(static_cast<const char*>(info->si_addr));
  errno = error;
  if (done) return;
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(signal, info, context);
  } else if (handler_before.sa_handler == SIG_IGN && info->si_code <= 0) {
    return;  // sent by a process; a real fault cannot be ignored
  } else if (handler_before.sa_handler == SIG_DFL || handler_before.sa_handler == SIG_IGN) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
  } else {
    handler_before.sa_handler(signal);
  }
}

void watch_bus_errors() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction handler {};
    handler.sa_sigaction = on_bus_error;
    handler.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&handler.sa_mask);
    // The previous handler must be known before ours can be called on any thread.
    ::sigaction(SIGBUS, nullptr, &handler_before);
    ::sigaction(SIGBUS, &handler, nullptr);
  });
}

MappedFile::Watched* take_watched() {
  MappedFile::Watched* const first = all_watched.load(std::memory_order_acquire);
  for (MappedFile::Watched* w = first; w != nullptr; w = w->next)
    if (!w->taken.exchange(true)) return w;
  auto* made = new MappedFile::Watched;
  made->next = first;
  while (!all_watched.compare_exchange_weak(made->next, made)) {
  }
  return made;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : MappedFile(std::make_unique<InputFile>(path)) {}

MappedFile::MappedFile(std::unique_ptr<const InputFile> file) : file_(std::move(file)) {
  const auto size = static_cast<std::size_t>(file_->size());
  if (size == 0) return;  // mmap refuses an empty file
  watch_bus_errors();
  watched_ = take_watched();
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_->fd(), 0);
  if (at == MAP_FAILED) {
    const int code = errno;
    watched_->taken = false;
    throw make_error<IoError>(FileName{file_->path()},
                              ": cannot map: ", std::generic_category().message(code));
  }
  bytes_ = {static_cast<const char*>(at), size};
  watched_->lost = false;
  watched_->size = size;
  watched_->begin = bytes_.data();
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  watched_->begin = nullptr;
  ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  watched_->taken = false;
}

void MappedFile::require_whole() const {
  struct stat info {};
  const bool shrunk =
      ::fstat(file_->fd(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) < bytes_.size();
  if (!shrunk && (watched_ == nullptr || !watched_->lost.load(std::memory_order_acquire))) return;
  throw make_error<FormatError>(FileName{file_->path()}, ": was truncated from ", bytes_.size(),
                                " to ", static_cast<std::int64_t>(info.st_size),
                                " bytes while it was read: write new content to another file, and "
                                "then rename that file");
}

}  // namespace tenon::io
