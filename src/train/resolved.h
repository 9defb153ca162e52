// Settings with their meaning: the network that they describe, and the values that they hold as
// text, such as LoRA options, milestones and augmentation, as typed values.
//
// A command or a run resolves its settings once and passes the result on. What uses it parses no
// text and looks no network up. Settings in their flat form stay what files hold.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/optim.h>
#include <tenon/train.h>

#include "models/network.h"
#include "train/images.h"
#include "train/lora.h"

namespace tenon::train {

/// What a trained model needs.
struct ResolvedModel {
  /// Throws ValueError for a setting that holds something else than it may, and as
  /// Settings::model_info().
  explicit ResolvedModel(Settings given);

  /// What is known of the network.
  const models::Info& info() const { return network.info(); }
  bool is_regression() const { return settings.task == "regression"; }

  Settings settings;
  models::Network network;
  std::vector<std::pair<std::string, Precision>> layer_precision;  ///< layers with exceptions
  std::optional<LoraOptions> lora;                                 ///< empty: no adapters
  ImageSettings images;
};

/// What a run needs in addition.
struct ResolvedRun : ResolvedModel {
  explicit ResolvedRun(Settings given);

  AugmentChoice augmentation;                         ///< of the training data
  std::vector<std::string> frozen;                    ///< layers that do not learn
  std::vector<std::pair<std::string, double>> rates;  ///< layers with factors of the learning rate
  optim::OptimizerOptions optimizer;
  optim::ScheduleOptions schedule;  ///< without numbers of steps, which depend on the data
};

}  // namespace tenon::train
