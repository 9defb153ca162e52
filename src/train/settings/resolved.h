// Settings as typed values: the network that they describe, and the settings whose text has several
// parts, such as the data source, LoRA options, milestones and augmentation.
//
// A command or a run resolves its settings once and passes the result on: the constructors consume
// the settings. Code that uses the result parses no text and looks up no network. What a run
// changes afterwards, it changes in the result. Files contain settings in their flat form.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/optim.h>
#include <tenon/task.h>
#include <tenon/train.h>

#include "models/network.h"
#include "train/adapting/kept.h"
#include "train/adapting/lora.h"
#include "train/settings/data_source.h"
#include "train/settings/image_settings.h"

namespace tenon::train {

/// How numbers are computed.
struct ComputeSettings {
  Precision precision = Precision::Fp32;
  std::vector<std::pair<std::string, Precision>> layer_precision{};  ///< exceptions, by layer
  Tune tune = Tune::Read;
  int threads = 0;  ///< 0: those of the context
  std::uint64_t seed = 0;
};

/// The optimizer and its learning rates.
struct OptimizerSettings {
  std::string name;
  optim::OptimizerOptions options{};
  std::vector<std::pair<std::string, double>> rates{};  ///< layers with factors of the rate
};

/// The learning-rate schedule.
struct ScheduleSettings {
  std::string name;                  ///< a name that optim::create_schedule() takes
  optim::ScheduleOptions options{};  ///< the numbers of steps are not set: they depend on the data
  /// Whether the rates depend on the results on the validation part.
  bool follows_validation() const { return name == "plateau"; }
};

/// When checkpoints are written, and how many are kept.
struct CheckpointSettings {
  int keep = 2;            ///< the newest ones
  std::int64_t steps = 0;  ///< steps between checkpoints inside an epoch; 0: by time
  double seconds = 30;     ///< seconds between checkpoints inside an epoch; 0: by steps
};

/// Layers that do not learn.
struct FrozenSettings {
  std::vector<std::string> layers{};  ///< empty: all layers learn
  int until_epoch = 0;                ///< the last epoch in which they are frozen; 0: all
  KeepOptions keep{};  ///< how their outputs are kept; folder and callbacks are not set
};

/// The settings that a trained model needs.
struct ResolvedModel {
  /// `source` is the setting `data` if it is parsed already. Throws ValueError for a setting that
  /// holds something else than it may, and as Settings::model_info().
  explicit ResolvedModel(Settings&& given, std::optional<DataSource> source = std::nullopt);

  /// Sets a setting of image preprocessing ("preprocess", "normalize", "background").
  void set_image_setting(const std::string& key, const std::string& value);
  /// Computes in another precision.
  void set_precision(Precision precision);

  /// The facts about the network.
  const models::Info& info() const { return network.info(); }

  Settings settings;
  DataSource data;
  models::Network network;
  std::shared_ptr<const Task> task;  ///< not null
  ComputeSettings compute;
  std::optional<LoraOptions> lora;  ///< empty: no adapters
  ImageSettings images;
};

/// The settings that a run needs in addition.
struct ResolvedRun : ResolvedModel {
  explicit ResolvedRun(Settings&& given, std::optional<DataSource> source = std::nullopt);

  /// The run once its frozen layers learn.
  ResolvedRun released() const;
  void set_threads(int threads);
  /// Writes checkpoints inside an epoch every `steps` steps, none by time.
  void set_checkpoint_steps(std::int64_t steps);

  AugmentChoice augmentation;  ///< augmentation of the training data
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  CheckpointSettings checkpoints;
  FrozenSettings frozen;
};

}  // namespace tenon::train
