// JSON as text: layout, and replacement of bytes that are not UTF-8.
#include "json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace tenon::cli {

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void print(const Json& json, int indent) { fmt::print("{}\n", json_text(json, indent)); }

}  // namespace tenon::cli
