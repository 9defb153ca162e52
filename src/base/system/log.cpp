// The message sink, behind a mutex: messages are rare, and a sink need not be thread-safe.
#include "base/system/log.h"

#include <mutex>

namespace tenon {
namespace {

struct Sink {
  std::mutex mutex;
  LogSink call = nullptr;
  void* context = nullptr;
};

Sink& sink() {
  static Sink instance;
  return instance;
}

}  // namespace

void set_log_sink(LogSink call, void* context) {
  const std::lock_guard lock(sink().mutex);
  sink().call = call;
  sink().context = context;
}

void log_message(LogLevel level, std::string_view message) {
  const std::lock_guard lock(sink().mutex);
  if (sink().call != nullptr) sink().call(level, message, sink().context);
}

}  // namespace tenon
