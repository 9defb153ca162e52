// The library's side of log.h: where a room leaves a message. Errors are thrown, not logged.
#pragma once

#include <tenon/log.h>

namespace tenon {

void log_message(LogLevel level, std::string_view message);

}  // namespace tenon
