// What --json prints: nlohmann's values, members in the order in which they were written.
//
// Numbers that are not finite become null; bytes that are no UTF-8 (in names of files) become
// U+FFFD.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tenon::cli {

using Json = nlohmann::ordered_json;

/// With `indent` 0 or more one value a line, otherwise all on one line.
std::string json_text(const Json& json, int indent = -1);
void print(const Json& json, int indent = -1);

}  // namespace tenon::cli
