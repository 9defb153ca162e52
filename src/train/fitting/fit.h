// One call of Trainer::fit(): epochs of steps, evaluation, checkpoints, logs, stopping.
//
// The position of a run is its number of steps. Epoch, position in the epoch, learning rate and
// sample order follow from that number; everything else (weights, moments, random generator,
// running sums of the current epoch) is in the checkpoint. Therefore a resumed run ends with the
// same bits as an uninterrupted one.
//
// fit.cpp has the epochs and their evaluation, fit_steps.cpp the steps, fit_state.cpp the files of
// the run folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/averaging.h>
#include <tenon/data.h>
#include <tenon/train.h>

#include "run/tuning/tune.h"
#include "train/batches/batches.h"
#include "train/batches/curvature.h"
#include "train/batches/kept_modes.h"
#include "train/fitting/evaluate.h"
#include "train/fitting/step.h"
#include "train/runs/records.h"
#include "train/runs/run_folder.h"
#include "train/tasks/tasks.h"

namespace tenon::train {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Throughput over about the last second.
class Speedometer {
 public:
  void add(std::int64_t items) {
    items_ += items;
    const double passed = seconds_since(mark_);
    if (passed < 0.25 && speed_ > 0) return;
    const double now = static_cast<double>(items_) / std::max(passed, 1e-9);
    speed_ = speed_ > 0 ? 0.6 * speed_ + 0.4 * now : now;
    restart();
  }
  void restart() { items_ = 0, mark_ = Clock::now(); }
  double speed() const { return speed_; }

 private:
  std::int64_t items_ = 0;
  double speed_ = 0;
  Clock::time_point mark_ = Clock::now();
};

/// Advice against steps that are too large, as the end of a sentence.
std::string smaller_steps(double lr);

/// Whether all values are finite; true for integer types.
bool is_finite(const Tensor& t);
bool is_finite(const StateDict& state);

struct Trainer::Impl {
  Impl(const nn::AnyModule& module, nn::Loss l, optim::Optimizer& o, TrainOptions opts)
      : first{module, &o}, net(module), loss(std::move(l)), options(std::move(opts)) {
    options.task = task_of(options, loss);
    check_metrics(*options.task);
    begin(first);
  }

  // The programs of one stage; nothing is kept from earlier stages.
  void begin(const Stage& stage) {
    net = stage.net;
    optimizer = stage.optimizer;
    average.reset();
    if (options.averaging.any()) average.emplace(net, options.averaging);
    train_step.emplace(net, loss, *optimizer, options);
    eval_step.emplace(kept_net(), options.evaluation_loss ? options.evaluation_loss : loss,
                      options.task);
    curvature.reset();
    if (const auto* rule = dynamic_cast<const optim::Levenberg*>(optimizer))
      curvature.emplace(net, loss, *rule, options.task);
  }

  /// The network that is measured and saved: the averaged one if there is one.
  const nn::AnyModule& kept_net() const { return average ? average->net() : net; }
  Evaluation evaluate(data::Loader& loader, data::Split part) {
    return train::evaluate(*eval_step, loader,
                           [this, part](std::int64_t batch, std::int64_t batches) {
                             tell([&](Callback& c) { c.on_evaluation(part, batch, batches); });
                           });
  }
  bool stop_asked() const { return options.stop && options.stop(); }
  template <class F>
  void tell(F&& f) {
    for (const std::shared_ptr<Callback>& callback : options.callbacks) f(*callback);
  }

  const Context context = current_context();  // context of all computation, whichever thread calls
  const Stage first;                          // its loaders are not set
  nn::AnyModule net;                          // network of the current stage
  nn::Loss loss;
  optim::Optimizer* optimizer = nullptr;
  TrainOptions options;  // its task is set
  std::optional<optim::AveragedModel> average;
  std::optional<TrainStep> train_step;
  std::optional<EvalStep> eval_step;
  std::optional<Curvature> curvature;  // curvature estimate of the levenberg optimizer
};

// One call of fit(): from the current position of the run to its end.
class Fit {
 public:
  Fit(Trainer::Impl& impl, data::Loader& train, data::Loader* validation, data::Loader* test)
      : t_(impl),
        o_(impl.options),
        task_(task_for(*impl.options.task, train.dataset())),
        train_(&train),
        batches_(std::in_place, train),
        validation_(validation),
        test_(test) {
    modes_.emplace_back(impl.first.net);
    if (o_.teacher) modes_.emplace_back(*o_.teacher);
  }
  TrainResult run();

 private:
  void prepare();
  void require_whole(const Checkpoint& checkpoint) const;
  void require_nothing_kept() const;
  void require_same_training(const Checkpoint& checkpoint) const;
  void restore(Checkpoint checkpoint);
  void save_engines();
  void write_settings() const;
  bool stage_due(const Progress& progress) const {
    return !staged_ && o_.stage_epochs > 0 && progress.epochs_in(progress.step) >= o_.stage_epochs;
  }
  void lay_out_steps();
  void take_other_cut(const Progress& saved);
  void change_stage();
  void require_parts_fit();
  void continue_in_next_stage();
  void open_steps();
  bool epoch();
  // A queued step whose results have not been read.
  struct Queued {
    Tensor input, target;  // a batch; or the numbers of samples, and no target
    Tensor figures;
    std::int64_t row = 0;  // row in the inputs and results that the steps of one launch share
    std::int64_t items = 0;
    double lr = 0;
    std::uint64_t seed = 0, counter = 0;  // state of the random generator before the step
  };
  bool begin_steps();
  bool begin_step_on_batch();
  Tensor begin_checked(const std::function<Tensor()>& begin);
  std::int64_t steps_of_launch() const;
  std::int64_t steps_until_curvature(std::int64_t more) const;
  Tensor mix_of(std::int64_t steps) const;
  void drain();
  void account(const Queued& step);
  /// Number of queued steps, whether or not their results have been read.
  std::int64_t begun() const { return p_.step + static_cast<std::int64_t>(queue_.size()); }
  std::string fault_of_samples(const Tensor& input, const Tensor& target) const;
  [[noreturn]] void not_finite(const Queued& step, double loss);
  [[noreturn]] void fail(std::int64_t step, const std::string& culprit, const std::string& what);
  void watch_finite();
  void require_finite();
  const nn::NamedTensor* first_not_finite() const;
  void report_step(const Queued& step, double loss);
  double mean_loss() const;
  std::optional<double> train_accuracy() const;
  void end_epoch();
  void validate(EpochReport& report);
  bool averages_in(std::int64_t epoch) const;
  void average_epoch(const EpochReport& report);
  void measure_average();
  std::int64_t validated() const;
  void note_best(EpochReport& report);
  void name_best(const EpochReport* top);
  /// Whether the weights of the best epoch are kept.
  bool keeps_best() const { return o_.keep_best && validation_ != nullptr; }
  TestReport measure_test(const EpochReport& kept);
  void test(const EpochReport& kept);
  io::Metadata metadata(io::Metadata more) const;
  Checkpoint state();
  void checkpoint();
  void checkpoint_in_background();
  void settle_checkpoint();
  void before_results() const {
    if (o_.before_results) o_.before_results();
  }
  bool due() const;
  bool stop_asked() const {
    return (o_.stop_after > 0 && begun() >= o_.stop_after) || t_.stop_asked();
  }
  bool finished() const { return p_.step >= total_ || early_stop(); }
  bool early_stop() const;
  /// Name of the metric that decides the best epoch.
  std::string figure() const;
  /// A metric that compares epochs.
  struct Monitored {
    std::string name;
    double value;
    bool higher_is_better;
    bool better_than(const Monitored& other) const {
      return higher_is_better ? value > other.value : value < other.value;
    }
  };
  /// The task's metric before the loss, validation before training.
  Monitored monitored(const EpochReport& e) const;
  const EpochReport* best() const;
  void save_best(int epoch) const;
  void forget_lost_best();
  void finish();

  Trainer::Impl& t_;
  const TrainOptions& o_;
  const Task& task_;  // for the training data
  data::Loader* train_;
  std::optional<Batches> batches_;
  data::Loader *validation_, *test_;
  std::deque<KeptModes> modes_;  // modes of the modules of each stage
  std::unique_ptr<optim::Schedule> schedule_;
  std::unique_ptr<RunFolder> folder_;
  std::future<std::string> aside_;       // checkpoint that another thread writes
  std::unique_ptr<TuneRecord> engines_;  // engine choices that the run uses
  std::size_t engines_saved_ = 0;        // rows
  Progress p_;
  std::int64_t total_ = 0;
  StateDict best_weights_;
  std::int64_t average_measured_ = -1;  // last step after which measure_average() ran
  int best_lost_ = 0;  // last epoch at which the best weights so far could not be read
  std::deque<Queued> queue_;
  std::size_t ahead_ = 1;     // number of steps queued before the oldest is read
  std::int64_t at_once_ = 1;  // steps per launch
  Clock::time_point drained_ = Clock::now();
  Speedometer speed_;
  Clock::time_point start_ = Clock::now(), epoch_start_, last_checkpoint_;
  std::int64_t last_saved_ = -1;
  std::int64_t checked_ = 0;                  // last step whose values require_finite() has checked
  std::vector<nn::NamedTensor> kept_finite_;  // tensors to check for finite values after a step
  double evaluation_seconds_ = 0;
  double waited_before_ = 0;     // time spent waiting for batches before this epoch
  double waited_earlier_ = 0;    // the same for earlier stages
  bool staged_ = false;          // the next stage has begun
  bool epoch_is_whole_ = false;  // the checkpoint's epoch is complete under the changed drop_last
  bool asked_to_stop_ = false;   // a callback has asked to stop
  TrainResult result_;
};

}  // namespace tenon::train
