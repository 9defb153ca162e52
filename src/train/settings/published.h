// Settings that follow from the config.json in the folder of pretrained weights.
#pragma once

#include <string>

#include <tenon/train.h>

namespace tenon::train {

/// The network's name according to the config beside the weights; `model` if there is none.
std::string model_as_published(const std::string& weights, const std::string& model);
/// Completes settings for training with pretrained weights: the model as published, and the
/// tokenizer in the folder of the weights if none was chosen.
Settings as_published(Settings settings);

/// Throws FormatError for what was skipped or assumed when the weights of a network and the config
/// beside them were read.
void refuse_weight_notes(const Notes& of_file, const std::string& weights,
                         const std::string& model);

/// "; the network is gpt2:layers=2 by hub/config.json; 2 unknown fields …", for a note on weights;
/// "" if there is no config.
std::string config_words(const std::string& weights, const std::string& model);

}  // namespace tenon::train
