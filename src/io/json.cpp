// The three ways through nlohmann's parser and printer that this library goes.
#include "io/json.h"

#include <nlohmann/json.hpp>

namespace tenon::io {

Json parse_json(std::string_view text) { return Json::parse(text.begin(), text.end()); }

Json parse_json_or_discard(std::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::string json_text(const Json& json, int indent, NoUtf8 bytes) {
  return json.dump(
      indent, ' ', false,
      bytes == NoUtf8::Throws ? Json::error_handler_t::strict : Json::error_handler_t::replace);
}

}  // namespace tenon::io
