// Maps error types to exit codes and hints.
#include "errors.h"

#include <fmt/core.h>
#include <tenon/log.h>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "output.h"
#include "terminal.h"

namespace tenon::cli {
namespace {

struct Verdict {
  int code;
  const char* hint;
};

template <class T>
bool is(const std::exception& error) {
  return dynamic_cast<const T*>(&error) != nullptr;
}

Verdict verdict(const std::exception& error) {
  if (is<ValueError>(error)) return {kUsage, ""};
  if (is<FormatError>(error)) return {kData, ""};
  if (is<ShapeError>(error) || is<DTypeError>(error))
    return {kData,
            "where data does not fit a network, 'tenon data info SPEC' and "
            "'tenon summary MODEL' show both shapes"};
  if (is<IoError>(error) || is<std::filesystem::filesystem_error>(error)) return {kIo, ""};
  if (is<NumericError>(error))
    return {kNumeric, "a lower --lr, a warm-up (--set warmup=1) or --precision fp32 usually helps"};
  if (is<MemoryError>(error))
    return {kMemory, "'tenon summary MODEL --batch N' shows what a batch needs before you train"};
  if (is<std::bad_alloc>(error))
    return {kMemory, "the system has no more memory; a smaller --batch needs less"};
  if (is<NotSupported>(error)) return {kUnsupported, ""};
  if (is<DeviceError>(error))
    return {kUnsupported, "'tenon doctor' shows what this machine offers"};
  if (is<InternalError>(error))
    return {kFailed,
            "this is a fault of Tenon; please report it with the command line and 'tenon doctor'"};
  return {kFailed, ""};
}

// File names and file contents may contain control characters. Only compiler messages of kernels
// may have several lines.
std::string message_of(const std::exception& error) {
  if (is<std::bad_alloc>(error)) return "out of memory";
  return is<NotSupported>(error) ? printable_lines(error.what()) : printable(error.what());
}

// If stderr is closed (2>&1 | head), the message is lost; the exit code stays.
template <class F>
void say(const F& print) {
  try {
    print();
  } catch (const std::system_error&) {  // fmt reports failed writes so
  }
}

}  // namespace

void print_note(std::string_view message) {
  say([&] {
    clear_status_line();
    fmt::print(stderr, "{} {}\n", stderr_terminal().paint(TextStyle::Yellow, "note:"),
               printable(message));
  });
}

void show_notes() {
  set_log_sink([](LogLevel level, std::string_view message, void*) {
    if (level == LogLevel::Warning) print_note(message);
  });
}

namespace {

// Printing could run out of memory as well.
[[noreturn]] void end_without_memory() {
  constexpr std::string_view words = "error: out of memory\n";
  [[maybe_unused]] const auto done = ::write(STDERR_FILENO, words.data(), words.size());
  std::_Exit(kMemory);
}

// With so little memory an exception cannot even be made, and there is none.
bool no_exception_can_be_made() {
  void* const room = std::malloc(1024);
  std::free(room);
  return room == nullptr;
}

}  // namespace

void report_what_cannot_be_thrown() {
  std::set_terminate([] {
    try {
      if (std::current_exception() != nullptr) throw;
      if (no_exception_can_be_made()) end_without_memory();
    } catch (const std::bad_alloc&) {
      end_without_memory();
    } catch (const std::exception& error) {
      fmt::print(stderr, "error: {}\n", message_of(error));
    } catch (...) {
    }
    std::abort();
  });
}

int finish_output(int code) {
  if (flush_output()) return code;
  // A reader that has closed the pipe (| head) needs no error.
  if (output_failure() != EPIPE)
    say([] {
      clear_status_line();
      fmt::print(stderr, "{} standard output cannot be written: {}\n",
                 stderr_terminal().paint(TextStyle::Red, "error:"),
                 std::strerror(output_failure()));
    });
  return code == kOk ? kIo : code;
}

int report(const std::exception& error) {
  say([] { clear_status_line(); });
  const bool written = flush_output();
  const auto* print =
      dynamic_cast<const std::system_error*>(&error);  // a failed write, reported by fmt
  if (!written && print != nullptr && !is<std::filesystem::filesystem_error>(error)) {
    if (output_failure() == 0) output_failure() = print->code().value();
    return finish_output(kOk);
  }
  const auto* usage = dynamic_cast<const UsageError*>(&error);
  const Verdict known = usage != nullptr ? Verdict{kUsage, usage->hint().c_str()} : verdict(error);
  say([&] {
    const Terminal& terminal = stderr_terminal();
    fmt::print(stderr, "{} {}\n", terminal.paint(TextStyle::Red, "error:"), message_of(error));
    if (known.hint[0] != '\0')
      fmt::print(stderr, "{} {}\n", terminal.paint(TextStyle::Cyan, "hint:"), known.hint);
  });
  return known.code;
}

}  // namespace tenon::cli
