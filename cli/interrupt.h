// Ctrl-C and SIGTERM: the first signal asks the command to finish cleanly, the second ends the
// process.
#pragma once

#include <atomic>

namespace tenon::cli {

/// Becomes true with the first SIGINT or SIGTERM after catch_interrupts().
const std::atomic<bool>& interrupted();
/// From now on signals are caught. A pipe closed by its reader no longer ends the process. The
/// first signal says `words` on stderr at once, whatever the process is at.
void catch_interrupts(const char* words = nullptr);
/// 130 after SIGINT, 143 after SIGTERM.
int interrupt_code();

/// Remembers when the process began; call it first.
void note_start();
/// Seconds since note_start().
double seconds_since_start();

}  // namespace tenon::cli
