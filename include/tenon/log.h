// Log messages of the library. A program may show, store or ignore them.
//
// The library never prints. Without a receiver, messages are discarded; nothing depends on them.
#pragma once

#include <string_view>

#include <tenon/export.h>

namespace tenon {

/// Severity of a log message.
enum class LogLevel {
  Debug,   ///< details for debugging
  Info,    ///< normal operation
  Warning  ///< something unexpected that is no error
};

/// Receives log messages: called from any thread, by one thread at a time, with the `context` that
/// set_log_sink() got. It must not call set_log_sink().
using LogSink = void (*)(LogLevel level, std::string_view message, void* context);

/// Sets the receiver of log messages; null discards them. Returns when no call of the previous
/// receiver is running. Every call of `sink` gets `context`.
TENON_API void set_log_sink(LogSink sink, void* context = nullptr);

}  // namespace tenon
