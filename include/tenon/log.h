// What the library has to say beside its results: notes that a program may show, keep or ignore.
//
// The library itself never prints. Without a sink, messages go nowhere; nothing depends on them.
#pragma once

#include <string_view>

#include <tenon/export.h>

namespace tenon {

enum class LogLevel { Debug, Info, Warning };

/// Called for every message, from any thread, one call at a time. Must not call back into
/// set_log_sink.
using LogSink = void (*)(LogLevel level, std::string_view message, void* context);

/// Installs the receiver of messages; nullptr discards them. Returns once no call of the former
/// sink is under way.
TENON_API void set_log_sink(LogSink sink, void* context = nullptr);

}  // namespace tenon
