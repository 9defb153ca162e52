// Signal handling. The handler touches lock-free atomics and signal dispositions, and writes to
// stderr, only.
#include "interrupt.h"

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
std::atomic<bool> over_status_line{false};  // which the words take the place of
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

// What cannot be written is lost.
void say(const char* text) {
  [[maybe_unused]] const auto done = write(STDERR_FILENO, text, std::strlen(text));
}

void on_signal(int signal) {
  const int error = errno;
  cause = signal;
  stop = true;
  if (const char* words = said; words != nullptr) {
    if (over_status_line) say("\r\x1b[K");
    say(words);
    say("\n");
  }
  errno = error;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
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
