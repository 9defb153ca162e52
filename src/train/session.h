// Session: the objects that Settings describe: data, network, optimizer, trainer options.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/eval.h>
#include <tenon/train.h>

namespace tenon::train {

struct Checkpoint;

/// The current context with what the settings say: threads (when they give a number), precision,
/// device (which is opened), tuning, and a generator of its own with the settings' seed.
Context context_of(const Settings& settings);

/// The parts of the data. There is no validation or test set where the source has no such part.
struct DataSets {
  std::shared_ptr<const data::Dataset> train, validation, test;
  std::shared_ptr<const data::Tokenizer> tokenizer{};  // of text by one
};
/// A run that is in `run_dir` already has its tokenizer there. Throws ShapeError when the data does
/// not suit the model, and with settings.strict FormatError where reading it noted anything.
DataSets open_data(const Settings& settings, const std::string& run_dir = "");

/// The run's own, or the one that the settings name, or null.
std::shared_ptr<const data::Tokenizer> tokenizer_of(const Settings& settings,
                                                    const std::string& run_dir);

/// How the model reads a data source.
data::SourceOptions source_options(const Settings& settings,
                                   std::shared_ptr<const data::TableColumns> columns,
                                   std::shared_ptr<const data::Tokenizer> tokenizer);

/// The network that the settings describe. Throws ValueError for a layer that it does not have.
nn::AnyModule make_net(const Settings& settings, std::int64_t classes);

/// The loss that the settings train with: of a regression the squared error in units of the
/// targets' deviation where the network is standardized.
nn::Loss loss_of(const Settings& settings, const nn::AnyModule& net, double label_smoothing);

struct Session {
  /// In the context of the settings, from whose generator the weights are drawn; with `resume` no
  /// file of weights is read, for a checkpoint has them.
  Session(const Settings& settings, const DataSets& sets, bool resume = false);
  /// What frozen parts give of the samples is computed, once, and takes the samples' place: with
  /// the weights of the checkpoint that a run goes on from. `watched` may be told of it and stop
  /// it.
  void keep_frozen(const std::optional<Checkpoint>& checkpoint, const RunOptions& watched = {});
  /// The validation and test parts are measured by so many samples at a time; 0: as many as usual.
  void measure_in_batches(std::int64_t batch);
  /// Options for a trainer of this run in this folder ("" : none).
  TrainOptions options(const std::string& dir, bool resume);

  Settings settings;
  DataSets sets;
  nn::AnyModule net;
  std::optional<nn::AnyModule> adapted;  // the network with adapters, where the settings want them
  std::optional<nn::AnyModule> teacher;
  nn::Loss loss;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<data::Loader> train, validation, test;
  std::shared_ptr<const data::Tokenizer> tokenizer;
  std::vector<std::string> notes;  // for people, on what was done beside the settings
  std::function<void(const std::string&)> tell{};  // the same, while the run is under way

 private:
  void check_outputs(const data::Dataset& set) const;
  void open_teacher(const data::Dataset& set);
  void make_optimizer();
  void make_loaders();
  void make_measuring_loaders();
  Stage unfreeze();

  DataSets measured_;  // by `validation` and `test`
  std::int64_t measured_batch_ = 0;
};

/// A loader of test data: in order, scaled as the run scales.
std::unique_ptr<data::Loader> test_loader(const Settings& settings,
                                          std::shared_ptr<const data::Dataset> set,
                                          std::int64_t batch);

}  // namespace tenon::train
