// Signal handling. The handler only uses lock-free atomics, changes signal dispositions and writes
// to stderr.
#include "interrupt.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "errors.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> cause{0};
std::atomic<const char*> said{nullptr};
std::atomic<bool> over_status_line{false};  // the message replaces the status line
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

// Text that cannot be written at once is dropped: a handler that waited for the reader of stderr
// could not be interrupted.
void say(const char* text) {
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  const bool ready = poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0;
  [[maybe_unused]] const auto done = ready ? write(STDERR_FILENO, text, std::strlen(text)) : 0;
}

void on_signal(int signal) {
  const int error = errno;
  cause = signal;
  stop = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (const char* words = said; words != nullptr) {
    if (over_status_line) say("\r\x1b[K");
    say(words);
    say("\n");
  }
  errno = error;
}

std::chrono::steady_clock::time_point start;

}  // namespace

const std::atomic<bool>& interrupted() { return stop; }

void catch_interrupts(const char* words) {
  said = words;
  over_status_line = stderr_terminal().interactive;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGPIPE, SIG_IGN);
}

int interrupt_code() { return cause == SIGTERM ? kTerminated : kInterrupted; }

void note_start() { start = std::chrono::steady_clock::now(); }

double seconds_since_start() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace tenon::cli
