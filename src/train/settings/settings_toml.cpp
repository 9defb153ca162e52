// Reads flat TOML: strings, integers, floating-point numbers, booleans.
#include "train/settings/settings.h"

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/text/toml.h"

namespace tenon::train {
namespace {

std::string text_of_setting(const std::string& key, const io::TomlValue& value,
                            const std::string& source) {
  using Kind = io::TomlValue::Kind;
  if (value.is(Kind::String)) return value.text;
  if (value.is(Kind::Integer)) return cat(value.whole);
  if (value.is(Kind::Real)) return cat(value.real);
  if (value.is(Kind::Boolean)) return value.truth ? "true" : "false";
  throw make_error<FormatError>(
      FileName{source}, ", line ", LineNumber{value.line}, ", '", key,
      "': a setting must be a string, a number or a boolean; tables and lists are not allowed");
}

/// Files of earlier builds have other names for a setting and for one of its values.
void use_present_names(SettingText& line) {
  if (line.key == "picture") line.key = "preprocess";
  if (line.key == "augment_on" && line.value == "card") line.value = "gpu";
}

}  // namespace

std::vector<SettingText> settings_of(const io::TomlValue& table, const std::string& source) {
  std::vector<SettingText> out;
  out.reserve(table.entries.size());
  for (const auto& [key, value] : table.entries) {
    out.push_back({key, text_of_setting(key, value, source), value.line});
    use_present_names(out.back());
  }
  return out;
}

std::vector<SettingText> parse_settings(const std::string& text, const std::string& source) {
  return settings_of(io::parse_toml(text, source), source);
}

}  // namespace tenon::train
