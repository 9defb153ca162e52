// Parsing of settings from text.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tenon/precision.h>

namespace tenon::io {
struct TomlValue;
}
namespace tenon::models {
class Network;
}

namespace tenon::train {

struct Settings;

constexpr std::uint64_t kMostSettingsText = 8 << 20;  ///< bytes of a file with its network
/// The setting with the network's text; written, and spoken of, only where there is one.
constexpr char kNetworkKey[] = "network";

struct SettingText {
  std::string key, value;
  int line = 0;
};

/// The `key = value` lines of a TOML text. Throws FormatError naming `source` and the line for what
/// is not TOML or not flat.
std::vector<SettingText> parse_settings(const std::string& text, const std::string& source);

/// The same for a parsed table.
std::vector<SettingText> settings_of(const io::TomlValue& table, const std::string& source);

/// The network that settings describe. It is looked up or parsed once for all copies of settings
/// that have kept it. If `model` or `network` were assigned since, it is found again.
struct SettingsNetwork {
  /// Throws as models::info().
  static models::Network find(const Settings& settings);
  /// Keeps it in these settings and in later copies of them.
  static const models::Network& keep(Settings& settings);
};

/// Checks settings whose members a program has assigned directly: throws ValueError, like
/// Settings::set(), for a number out of range.
void require_in_range(const Settings& settings);

/// Parses "fc3=fp32,conv1=tf32": layers with their precisions. Throws ValueError.
std::vector<std::pair<std::string, Precision>> parse_layer_precision(const std::string& text);

/// Parses "features=0.1,fc=2": layers with factors of the learning rate. Throws ValueError.
std::vector<std::pair<std::string, double>> parse_rates(const std::string& text);

/// Milestones of the schedule multistep.
struct Milestones {
  std::vector<double> epochs;   ///< in ascending order
  std::vector<double> factors;  ///< one per milestone, or none
};
/// Parses "3,6.5" or "3=0.4,6.5=0.2". Throws ValueError.
Milestones parse_milestones(const std::string& text);

}  // namespace tenon::train
