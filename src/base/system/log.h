// The library's internal interface to log.h, through which the library writes messages. Errors are
// thrown, not logged.
#pragma once

#include <tenon/log.h>

namespace tenon {

void log_message(LogLevel level, std::string_view message);

}  // namespace tenon
