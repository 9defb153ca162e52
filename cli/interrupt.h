// Ctrl-C and SIGTERM: the first signal asks the command to finish cleanly, the second ends the
// process.
#pragma once

#include <atomic>

namespace tenon::cli {

/// Becomes true with the first SIGINT or SIGTERM after catch_interrupts().
const std::atomic<bool>& interrupted();
/// Installs the handlers. A closed pipe no longer ends the process. The first signal immediately
/// prints `words` to stderr.
void catch_interrupts(const char* words = nullptr);
/// 130 after SIGINT, 143 after SIGTERM.
int interrupt_code();

/// Records the start time of the process; call it first.
void note_start();
/// Seconds since note_start().
double seconds_since_start();

}  // namespace tenon::cli
