// Settings read from TOML: apart from settings.cpp, because the parser's header is heavy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tenon/nn.h>
#include <tenon/train.h>

namespace tenon::train {

struct SettingText {
  std::string key, value;
  int line = 0;
};

/// The `key = value` lines of a TOML text. Throws FormatError naming `source` and the line for what
/// is not TOML or not flat.
std::vector<SettingText> parse_settings(const std::string& text, const std::string& source);

/// "fc3=fp32,conv1=tf32" as layers with their precisions. Throws ValueError.
std::vector<std::pair<std::string, Precision>> parse_layer_precision(const std::string& text);

/// The network that the settings describe. Throws ValueError for a layer that it does not have.
nn::AnyModule make_net(const Settings& settings, std::int64_t classes);

}  // namespace tenon::train
