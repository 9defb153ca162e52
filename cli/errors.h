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

/// An invalid command line or settings file. The hint says what to do instead.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message, std::string hint = "")
      : Error(message), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

/// Prints "note: …" to stderr; write errors are ignored.
void print_note(std::string_view message);
/// From now on, prints the library's warnings as notes.
void show_notes();

/// Prints "error: …" and a "hint: …", if there is one, to stderr; returns the exit code.
int report(const std::exception& error);

/// If an exception cannot propagate (such as out of memory in a destructor), ends the program with
/// the message and exit code of the failure instead of an abort.
void report_what_cannot_be_thrown();

/// Flushes at the end of the command, and prints "error: …" if output could not be written. Returns
/// the exit code: the given one, or kIo instead of kOk if results were lost.
int finish_output(int code);

}  // namespace tenon::cli
