// config.json next to pretrained weights: identifies the network, and everything besides the tensor
// values that affects its results.
//
// Reads the formats of Hugging Face (model_type) and timm (architecture). A field that changes the
// results selects an option of the network or is refused by name. Fields without effect are listed
// in published_config.cpp. Any other field produces a note.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/published_weights.h>

namespace tenon::models {

struct PublishedConfig {
  std::string path;          ///< of config.json
  std::string model;         ///< for create(): "gpt2:layers=2,heads=4,width=32,context=64"
  std::int64_t classes = 0;  ///< outputs of the published network
  std::vector<std::string> class_names{};  ///< if the file has them, one per class
  bool regression = false;                 ///< regression instead of classification
  std::string normalize{};                 ///< setting 'normalize' of images; "": unknown
  Notes notes{};
};

/// The config.json in the folder `weights`, or next to the file; "" if there is none.
std::string config_path(const std::string& weights);

/// Parses a config for the network `model`. Sizes in the name must equal the config's; sizes that
/// the name omits come from the config. Throws FormatError for invalid JSON, NotSupported for a
/// network or field without a counterpart in Tenon, ValueError if name and config disagree.
PublishedConfig parse_config(const std::string& json, const std::string& path,
                             const std::string& model);

/// The network of config_path(). Empty if there is no config, if the network is a network file,
/// and if the config.json next to the weights belongs to another program.
std::optional<PublishedConfig> published_config(const std::string& weights,
                                                const std::string& model);

}  // namespace tenon::models
