// Tasks: what a network is trained for.
//
// A task checks the data, has the loss, measures the metrics, turns outputs into predictions, and
// has the words for people. The library has the tasks of task_names(). A program adds its own with
// register_task(), or gives one to TrainOptions::task.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/data.h>
#include <tenon/models.h>
#include <tenon/nn.h>

namespace tenon::train {

struct Evaluation;
struct Settings;

/// How a metric is printed.
enum class MetricForm {
  Share,    ///< 0 to 1, printed in percent: "91.50 %"
  Figure,   ///< printed with four decimals: "0.9150"
  Quantity  ///< in the unit of the targets, printed with five digits: "12.345"
};

/// What is known of a metric that a task measures after each epoch.
struct MetricInfo {
  /// The metric's key: "accuracy" gives "validation_accuracy" and "test_accuracy" in the logs.
  /// Every metric of a task has its own key, without commas, quotes and line breaks; "loss" and
  /// "samples" are reserved.
  std::string name;
  std::string label{};                   ///< the metric's name for people; "": `name`
  MetricForm form = MetricForm::Figure;  ///< how the value is printed
  bool higher_is_better = true;          ///< whether the largest value is the best
  /// `label`, or `name` without one.
  const std::string& shown() const { return label.empty() ? name : label; }
};

/// Values of metrics by name, in the order in which they were set.
class TENON_API Metrics {
 public:
  /// The value of a metric; unset if it was not measured.
  std::optional<double> operator[](std::string_view name) const;
  /// Sets a value, or replaces the value of that name.
  void set(const std::string& name, double value);
  bool empty() const;                             ///< whether there is no metric
  auto begin() const { return values_.begin(); }  ///< the first (name, value)
  auto end() const { return values_.end(); }      ///< behind the last (name, value)

 private:
  std::vector<std::pair<std::string, double>> values_;
};

/// One batch of an evaluation.
struct MeasuredBatch {
  Tensor scores{};           ///< Task::scores(); undefined unless Task::needs_scores()
  Tensor target{};           ///< the targets as the dataset gives them
  std::int64_t correct = 0;  ///< Task::correct(); 0 if Task::needs_scores()
  std::int64_t targets = 0;  ///< targets that the loss does not ignore
  /// The class whose targets the loss ignores; unset if there is none.
  std::optional<std::int64_t> ignored{};
};

/// Measures the metrics of one evaluation, batch after batch.
class TENON_API Meter {
 public:
  virtual ~Meter();
  /// Takes a batch.
  virtual void add(const MeasuredBatch& batch) = 0;
  /// Sets the results in `out`: Evaluation::metrics, and the other members that the task knows. The
  /// counts and the loss are set already.
  virtual void finish(Evaluation& out) const = 0;
};

/// The data of a run and the network that is to learn from it.
struct TaskData {
  const Settings& settings;   ///< the settings of the run
  const models::Info& model;  ///< what is known of the network
  const data::Dataset& set;   ///< the data
};

/// The network of a run, for its loss.
struct TaskNetwork {
  const Settings& settings;    ///< the settings of the run
  const models::Info& model;   ///< what is known of the network
  const nn::AnyModule& net;    ///< the network
  double label_smoothing = 0;  ///< label smoothing; 0 in an evaluation
};

/// Kinds of predictions, which decide how they are printed and written.
enum class OutputForm {
  Classes,      ///< probabilities of named classes, one of which is right
  Labels,       ///< a probability for each label; any number of them may be right
  Values,       ///< numbers
  HiddenToken,  ///< probabilities of tokens in the place of a hidden one
  NextToken,    ///< probabilities of the next token (TrainedModel::generate())
  Translation,  ///< a text (TrainedModel::translate())
  Answer        ///< a span of a text (TrainedModel::answer())
};

/// Words of a task for people. The command prints them.
struct TaskWords {
  std::string does;          ///< completes "it …": "classifies inputs"
  std::string command{};     ///< the command that shows it: "predict"
  std::string arguments{};   ///< what to give that command: "--text TEXT"; "": a file of samples
  std::string first{};       ///< the same after training; "": `arguments`
  std::string purpose{};     ///< what that command then does: "classify a text"; "": not shown
  std::string evaluation{};  ///< what an evaluation prints: "accuracy, confusion matrix"
};

/// A row of an evaluation's table.
struct EvaluationRow {
  std::string title;                     ///< name for people
  std::string key;                       ///< key in JSON; "": only printed
  double value = 0;                      ///< the value
  MetricForm form = MetricForm::Figure;  ///< how the value is printed
  bool headline = false;                 ///< whether it is emphasized
};

/// What a network is trained for. Override what differs from the defaults; name() is the only
/// function without one. Derive from Classification or Regression if your task is one of these with
/// another loss or other metrics.
///
/// A task is shared and has no state: all functions are const, and several threads may call them.
class TENON_API Task {
 public:
  virtual ~Task();
  /// The task's name, the value of the setting "task": lower-case letters, digits and underscores.
  virtual std::string name() const = 0;
  /// Words for people about a network that does the task.
  virtual TaskWords words(const models::Info& model) const;

  // ---- Data and network
  /// Sets how a data source is read, for instance SourceOptions::classes. Default: nothing.
  virtual void set_reading(data::SourceOptions& options) const;
  /// Throws ShapeError if the network or the task cannot take the data. Called before a run for
  /// each part that exists. Default: the training part's inputs must have the network's shape.
  virtual void check_data(const TaskData& data, data::Split part) const;
  /// The number of outputs that the network needs. Default: the classes of the data, or without
  /// classes the number of values of a target.
  virtual std::int64_t outputs(const data::Dataset& set) const;
  /// Throws ShapeError if outputs of shape `output` for two samples do not suit the task.
  /// Settings::classes has the number of outputs. Not called for networks that take tokens.
  /// Default: nothing.
  virtual void check_outputs(const TaskData& data, const Shape& output) const;
  /// The least number of scores for each target; 0: any. Default: 0.
  virtual std::int64_t least_scores(const data::Dataset& set) const;
  /// A network of models::list() that learns this task from the data, for advice in errors; "": the
  /// data is for another task. Default: "".
  virtual std::string network_for(const data::Dataset& set) const;
  /// Whether a run on a table scales targets by their mean and standard deviation (the setting
  /// "standardize"). Default: false.
  virtual bool scales_targets() const { return false; }
  /// Whether distillation from a teacher network makes sense. Default: false.
  virtual bool takes_teacher() const { return false; }
  /// Whether the inputs of a batch can be mixed (TrainOptions::mixing). Default: true.
  virtual bool takes_mixing() const { return true; }

  // ---- Loss
  /// The loss of a run. Default: throws NotSupported, for a task that is used with a Trainer only,
  /// which is given its loss.
  virtual nn::Loss loss(const TaskNetwork& network) const;
  /// The scores that loss and metrics get, from the network's output. Default: the output.
  virtual Tensor scores(const Tensor& output) const;
  /// The targets that loss and metrics get, from the dataset's. Default: the same.
  virtual Tensor targets(const Tensor& target) const;
  /// The mean of the scores of several views of each sample. Default: mean_of_views() with
  /// `quantities`.
  ///
  /// @param scores   [N * views, …], all views of the first sample first
  /// @param views    views of each sample
  /// @param targets  data type of the targets
  virtual Tensor mean_over_views(const Tensor& scores, std::int64_t views, DType targets) const;
  /// The distillation loss, a scalar. Default: the mean of distillation_loss().
  virtual Tensor distillation(const Tensor& scores, const Tensor& teacher, const Tensor& target,
                              double temperature) const;
  /// Targets drawn from the distribution that the scores describe; the optimizer levenberg
  /// measures the curvature with them. Default: the targets themselves.
  virtual Tensor drawn_targets(const Tensor& scores, const Tensor& target) const;
  /// Random targets, as targets() gives them, for a step that is timed or planned without data.
  /// Default: normal numbers, one for each score.
  ///
  /// @param scores  the shape of scores()
  virtual Tensor random_targets(const Shape& scores) const;

  // ---- Metrics
  /// The number of correct predictions in a batch, an int64 scalar that is computed with the step.
  /// Default: 0.
  ///
  /// @param scores  scores()
  /// @param target  targets()
  /// @param kept    bool, of the targets' shape: which are not ignored; undefined: all
  virtual Tensor correct(const Tensor& scores, const Tensor& target, const Tensor& kept) const;
  /// Whether training reports an accuracy: the share of correct() of all targets. Default: false.
  virtual bool has_training_accuracy(const data::Dataset& set) const;
  /// Whether metrics need the scores on the host. False: they need correct() only, which saves the
  /// copy. Default: true.
  virtual bool needs_scores() const { return true; }
  /// What is known of the metrics in Evaluation::metrics. Default: none; the loss is always
  /// measured.
  virtual std::vector<MetricInfo> metrics() const;
  /// The name of the metric that chooses the best epoch and ends training early, one of metrics();
  /// "": the loss. Default: "".
  virtual std::string monitored() const;
  /// Starts to measure the metrics on a dataset; null: nothing but the loss. Default: null.
  virtual std::unique_ptr<Meter> meter(const data::Dataset& set) const;
  /// Adds metrics that need the network itself, for instance to translate the texts.
  /// TrainedModel::evaluate() calls it once. Default: nothing.
  virtual void measure_network(const nn::AnyModule& net, const data::Dataset& set,
                               Evaluation& out) const;
  /// The table of an evaluation. Default: a row for each of metrics() that was measured, the
  /// monitored one first.
  virtual std::vector<EvaluationRow> rows(const Evaluation& evaluation) const;

  // ---- Predictions
  // predictions() and mean_over_views() may run while a function is traced (tenon/compute.h):
  // TrainedModel calls them once for each shape of a request. Build their result from the arguments
  // by operations; read no values of them on the host.
  /// The kind of the predictions. Default: OutputForm::Values.
  virtual OutputForm output_form() const { return OutputForm::Values; }
  /// Predictions from scores(). Default: the scores.
  virtual Tensor predictions(const Tensor& scores) const;

  /// What is known of one of metrics(); of another name, the name alone.
  MetricInfo metric(const std::string& name) const;
};

/// Classification: a target is the number of its class, and predictions are probabilities. The loss
/// is the cross-entropy, the metric "accuracy".
class TENON_API Classification : public Task {
 public:
  std::string name() const override;
  TaskWords words(const models::Info& model) const override;
  void check_data(const TaskData& data, data::Split part) const override;
  std::int64_t outputs(const data::Dataset& set) const override;
  void check_outputs(const TaskData& data, const Shape& output) const override;
  std::int64_t least_scores(const data::Dataset& set) const override;
  std::string network_for(const data::Dataset& set) const override;
  bool takes_teacher() const override { return true; }
  nn::Loss loss(const TaskNetwork& network) const override;
  Tensor mean_over_views(const Tensor& scores, std::int64_t views, DType targets) const override;
  Tensor drawn_targets(const Tensor& scores, const Tensor& target) const override;
  Tensor random_targets(const Shape& scores) const override;
  Tensor correct(const Tensor& scores, const Tensor& target, const Tensor& kept) const override;
  bool has_training_accuracy(const data::Dataset& set) const override;
  std::vector<MetricInfo> metrics() const override;
  std::string monitored() const override;
  std::unique_ptr<Meter> meter(const data::Dataset& set) const override;
  OutputForm output_form() const override { return OutputForm::Classes; }
  Tensor predictions(const Tensor& scores) const override;
};

/// Regression: targets are numbers. The loss is the mean squared error, of a table with
/// standardized targets in units of their standard deviation. The metrics are the mean absolute
/// error "mae" and the coefficient of determination "r2"; the loss chooses the best epoch.
class TENON_API Regression : public Task {
 public:
  std::string name() const override;
  TaskWords words(const models::Info& model) const override;
  void set_reading(data::SourceOptions& options) const override;
  /// Also throws FormatError if a target in memory is NaN or infinite.
  void check_data(const TaskData& data, data::Split part) const override;
  std::int64_t outputs(const data::Dataset& set) const override;
  void check_outputs(const TaskData& data, const Shape& output) const override;
  std::string network_for(const data::Dataset& set) const override;
  bool scales_targets() const override { return true; }
  nn::Loss loss(const TaskNetwork& network) const override;
  std::vector<MetricInfo> metrics() const override;
  std::unique_ptr<Meter> meter(const data::Dataset& set) const override;
  std::vector<EvaluationRow> rows(const Evaluation& evaluation) const override;
};

/// Adds a task under its name, for the setting "task", nn::Loss::for_task() and find_task(). Throws
/// ValueError for a null pointer, for a name that is empty or has other characters than lower-case
/// letters, digits and underscores, and for the name of another task.
TENON_API void register_task(std::shared_ptr<const Task> task);
/// The task of a name. Throws ValueError that lists the names.
TENON_API std::shared_ptr<const Task> find_task(const std::string& name);
/// The names of all tasks: those of the library, then the registered ones in order.
TENON_API std::vector<std::string> task_names();
/// The task of a run: Settings::task, or where that has its default the network's own task
/// (models::Info::task()), if it has one. Throws as find_task().
TENON_API std::shared_ptr<const Task> task_of(const Settings& settings);

}  // namespace tenon::train
