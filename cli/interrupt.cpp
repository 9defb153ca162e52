// Signal handling. The handler touches lock-free atomics and signal dispositions only.
#include "interrupt.h"

#include <chrono>
#include <csignal>

#include "errors.h"

namespace tenon::cli {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> cause{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  cause = signal;
  stop = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

std::chrono::steady_clock::time_point start;

}  // namespace

const std::atomic<bool>& interrupted() { return stop; }

void catch_interrupts() {
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
