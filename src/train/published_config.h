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

#include <tenon/notes.h>
#include <tenon/train.h>

namespace tenon::train {

struct PublishedConfig {
  std::string path;          ///< of config.json
  std::string model;         ///< for models::create(): "gpt2:layers=2,heads=4,width=32,context=64"
  std::int64_t classes = 0;  ///< outputs of the published network
  std::vector<std::string> class_names{};  ///< where the file has names, one for each class
  bool regression = false;                 ///< it tells quantities
  std::string normalize{};                 ///< of images, as the setting says it; "": unknown
  Notes notes{};
};

/// The config.json in the folder `weights`, or beside the file; "" where there is none.
std::string config_beside(const std::string& weights);

/// Parses a config for the network that `model` names. Sizes of the name must be the config's, and
/// what the name leaves open is the config's. Throws FormatError for what is no such JSON,
/// NotSupported for a network or a field that Tenon has no match for, ValueError where the name
/// says something else than the config.
PublishedConfig parse_config(const std::string& json, const std::string& path,
                             const std::string& model);

/// That of config_beside(). Nothing where there is none, where the network is one of a file, and
/// where another program's config.json lies beside a file of weights.
std::optional<PublishedConfig> published_config(const std::string& weights,
                                                const std::string& model);

/// The name of the network as the config beside the weights has it; `model` where there is none.
std::string model_as_published(const std::string& weights, const std::string& model);
/// The settings for training with their weights: the model as published, and the tokenizer that
/// lies in the folder of the weights where none was chosen.
Settings as_published(Settings settings);

/// "; the network is gpt2:layers=2 by hub/config.json; 2 unknown fields …", for a note on weights;
/// "" where there is no config.
std::string config_words(const std::string& weights, const std::string& model);

}  // namespace tenon::train
