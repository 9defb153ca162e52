// Output of --json: nlohmann values whose members keep the order in which they were added.
//
// Numbers that are not finite become null. Bytes that are not UTF-8 (in file names) become U+FFFD.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tenon::cli {

using Json = nlohmann::ordered_json;

/// With `indent` of at least 0 one value a line, otherwise all on one line.
std::string json_text(const Json& json, int indent = -1);
void print(const Json& json, int indent = -1);

}  // namespace tenon::cli
