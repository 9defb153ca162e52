// Session: the objects that Settings describe: data, network, optimizer, trainer options.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/data.h>
#include <tenon/train.h>

#include "train/settings/resolved.h"

namespace tenon::train {

struct Checkpoint;

/// The current context with the settings applied: threads (if set), precision, device (which is
/// opened), tuning, and a generator of its own with the settings' seed.
Context context_of(const ResolvedModel& model);

/// The parts of the data. The validation or test set is null if the source has none.
struct DataSets {
  std::shared_ptr<const data::Dataset> train, validation, test;
  std::shared_ptr<const data::Tokenizer> tokenizer{};  // for tokenized text
};
/// Opens the data. A run that already exists in `run_dir` uses its stored tokenizer. Throws
/// ShapeError if the data does not fit the model, and FormatError if settings.strict is on and
/// reading the data produced a note.
DataSets open_data(const ResolvedRun& run, const std::string& run_dir = "");

/// Null if the settings name no tokenizer; else the copy in the run folder, or if there is none the
/// file of the settings.
std::shared_ptr<const data::Tokenizer> tokenizer_of(const Settings& settings,
                                                    const std::string& run_dir);

/// Options with which the model opens a data source.
data::SourceOptions source_options(const ResolvedModel& model,
                                   std::shared_ptr<const data::TableColumns> columns,
                                   std::shared_ptr<const data::Tokenizer> tokenizer);

/// Builds the network of the settings. Throws ValueError for a layer name that the network does not
/// have.
nn::AnyModule make_net(const ResolvedModel& model, std::int64_t classes);

/// The task's loss.
nn::Loss loss_of(const ResolvedModel& model, const nn::AnyModule& net, double label_smoothing);

struct Session {
  /// Must be called in the context of the settings, whose generator initializes the weights. With
  /// `resume` no weight file is read, because the checkpoint has the weights.
  Session(const ResolvedRun& run, const DataSets& sets, bool resume = false);
  /// Computes the outputs of frozen layers once and replaces the samples by them, using the weights
  /// of the checkpoint on resume. Reports progress to `watched`, which may stop it.
  void keep_frozen(const std::optional<Checkpoint>& checkpoint, const RunOptions& watched = {});
  /// Sets the batch size of validation and test; 0: the default.
  void measure_in_batches(std::int64_t batch);
  /// Trainer options of this run in this folder ("": none).
  TrainOptions options(const std::string& dir, bool resume);

  ResolvedRun run;  // includes the number of classes and the place where images are augmented
  DataSets sets;
  nn::AnyModule net;
  std::optional<nn::AnyModule> adapted;  // network with LoRA adapters, if the settings ask for them
  std::optional<nn::AnyModule> teacher;
  std::string teacher_digest;  // digest of the teacher's weights
  nn::Loss loss;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<data::Loader> train, validation, test;
  std::shared_ptr<const data::Tokenizer> tokenizer;
  std::vector<std::string> notes;  // messages about decisions that the settings do not state
  std::function<void(const std::string&)> tell{};  // the same, during the run

 private:
  void check_outputs(const data::Dataset& set) const;
  void open_teacher(const data::Dataset& set);
  void make_optimizer();
  void make_loaders();
  void make_measuring_loaders();
  Stage unfreeze();

  DataSets measured_;  // evaluated by `validation` and `test`
  std::int64_t measured_batch_ = 0;
};

/// A loader for evaluation: in order, with the run's scaling.
std::unique_ptr<data::Loader> test_loader(const ResolvedModel& model,
                                          std::shared_ptr<const data::Dataset> set,
                                          std::int64_t batch);

}  // namespace tenon::train
