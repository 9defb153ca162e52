// Settings read from TOML: apart from settings.cpp, because the parser's header is heavy.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tenon::train {

struct SettingText {
  std::string key, value;
  int line = 0;
};

/// The `key = value` lines of a TOML text. Throws FormatError naming `source` and the line for what
/// is not TOML or not flat.
std::vector<SettingText> parse_settings(const std::string& text, const std::string& source);

}  // namespace tenon::train
