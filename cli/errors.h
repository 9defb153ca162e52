// Error reporting: one place maps error types to exit codes and prints them.
//
// The codes are documented in docs/errors.md; scripts depend on them.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <tenon/error.h>

namespace tenon::cli {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kData = 3,
  kIo = 4,
  kNumeric = 5,
  kMemory = 6,
  kUnsupported = 7,
  kInterrupted = 130,
  kTerminated = 143,
};

/// A command line or settings file that cannot be understood. The hint says what to do instead.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message, std::string hint = "")
      : Error(message), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

/// Prints "note: …" to stderr, or nothing where that cannot be written.
void print_note(std::string_view message);
/// From now on what the library warns of is printed so.
void show_notes();

/// Prints "error: …" and, where there is something to add, "hint: …" to stderr; returns the exit
/// code.
int report(const std::exception& error);

/// Where nothing can be thrown any more, as in destructors that find no memory, the program ends
/// with the message and the exit code of what failed, not as if it had crashed.
void report_what_cannot_be_thrown();

/// Writes out what was printed to standard output. False when that, or anything before it, could
/// not be written: finish_output() says so in the end.
bool flush_output();
/// Flushes at the end of the command, and prints "error: …" when something could not be written.
/// Returns its exit code: the given one, kIo in place of kOk when results were lost.
int finish_output(int code);

}  // namespace tenon::cli
