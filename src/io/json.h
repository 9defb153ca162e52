// JSON's parser and printer, compiled once: each file that made them from nlohmann's templates for
// itself took three seconds longer. Values are nlohmann's, members in the order of their text; who
// looks into them includes <nlohmann/json.hpp>.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tenon::io {

using Json = nlohmann::ordered_json;

/// Throws Json::parse_error for what is no whole JSON, or nests more than 512 deep. Time and memory
/// are linear in the text; of repeated keys the last value counts.
Json parse_json(std::string_view text);
/// The same, but what is no whole JSON gives a value that is_discarded(), of no type.
Json parse_json_or_discard(std::string_view text);

enum class NoUtf8 { Throws, IsReplaced };  // Json::type_error, or U+FFFD for each wrong byte
/// With `indent` 0 or more one value a line, otherwise all on one line.
std::string json_text(const Json& json, int indent = -1, NoUtf8 bytes = NoUtf8::Throws);

}  // namespace tenon::io
