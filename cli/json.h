// What --json prints: nlohmann's values, members in the order in which they were written.
//
// Numbers that are not finite become null; bytes that are no UTF-8 (in names of files) become
// U+FFFD.
#pragma once

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>

namespace tenon::cli {

using Json = nlohmann::ordered_json;

/// With `indent` 0 or more one value a line, otherwise all on one line.
inline std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}
inline void print(const Json& json, int indent = -1) {
  fmt::print("{}\n", json_text(json, indent));
}

}  // namespace tenon::cli
