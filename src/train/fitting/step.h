// The two programs of training: the training step (forward, loss, number of correct predictions,
// gradients, guarded update) and the evaluation of a batch.
//
// Queueing a step and reading its results are separate calls: on a GPU, steps are queued ahead and
// many results are read together later. After the first loss that is not finite, a guard in the
// program blocks all further updates, so queued steps cannot change the weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tenon/averaging.h>
#include <tenon/compute.h>
#include <tenon/data.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/train.h>

#include "train/batches/resident.h"

namespace tenon::train {

struct StepOutcome {
  double loss = 0;  ///< 0 if no target counts
  std::int64_t correct = 0;
  /// Weight of the step in a mean of losses, and number of targets that are not ignored. Unset:
  /// each sample has weight 1.
  std::optional<double> counted{};
  /// With `counted`: the weighted sum of the losses. It can be nonzero although `counted` is 0, for
  /// example with smoothed labels and class weights of 0.
  std::optional<double> total{};
  std::optional<std::int64_t> targets{};
  /// With loss scaling: the first parameter whose gradient overflowed, so that the step made no
  /// update; "" if none did.
  std::string overflow{};
};

/// Loss scaling, so that small gradients do not underflow in float16: doubled after kGrowth steps
/// without overflow, halved after an overflow (Micikevicius et al., "Mixed precision training",
/// ICLR 2018).
struct LossScale {
  static constexpr double kStart = 65536, kMost = 16777216;
  static constexpr int kGrowth = 2000;
  Tensor scale, good_steps;  // float32 variables
  LossScale();
};

class TrainStep {
 public:
  /// Throws ValueError if the optimizer has none of the network's parameters.
  TrainStep(const nn::AnyModule& net, const nn::Loss& loss, optim::Optimizer& optimizer,
            const TrainOptions& options);
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  /// Takes batches from a dataset on the GPU; none: batches are passed to begin().
  void use(std::optional<ResidentSet> set);
  const std::optional<ResidentSet>& set() const { return set_; }
  /// Requires the network to return scores of at least this many classes; 0: no check.
  void require_classes(std::int64_t count) { least_scores_ = count; }
  /// Queues a step on a batch (input, target), mixed according to `mix` (train/batches/mixing.h) if
  /// the options ask for it. Pass the returned results to read().
  Tensor begin(const Tensor& input, const Tensor& target, const Tensor& mix);
  /// Queues one step for each row of `numbers` (sample numbers of the dataset), all in one launch.
  /// Step r uses learning rate `rates[r]` and row r of `mix`; its results are row r.
  Tensor begin(const Tensor& numbers, const std::vector<double>& rates, const Tensor& mix);
  StepOutcome read(const Tensor& figures, std::int64_t row) const;
  /// Plans the step for a full batch of the loader. Other threads then compile its kernels while
  /// the caller continues. While the plan is held, an equal step reuses it.
  Plan plan(const data::Loader& loader);
  /// Updates this average in each step from now on; null: none.
  void average(const optim::AveragedModel* average);
  /// Null unless gradients are accumulated.
  optim::GradientAccumulator* accumulator() { return accumulator_ ? &*accumulator_ : nullptr; }
  /// Reopens the guard that a non-finite loss has closed.
  void reopen();
  /// Null unless the precision is fp16.
  const LossScale* loss_scale() const { return scale_ ? &*scale_ : nullptr; }

 private:
  void compile_steps();
  std::vector<Tensor> trace(const Tensor& given, const Tensor& target, const Tensor& mix,
                            const Tensor& rates, bool queued);
  void scale_gradients(std::vector<Tensor>& grads, const Tensor& any, Tensor& guard,
                       std::vector<Tensor>& figures, std::vector<Tensor>& updates);

  std::vector<Tensor> step_updates(std::vector<Tensor> grads, Tensor guard, const Tensor& rates,
                                   const std::vector<Tensor>& renewed);
  Tensor with_teacher(const Tensor& loss, const Tensor& scores, const Tensor& input,
                      const Tensor& target);
  void require_own_parameters() const;
  void require_reached(const Tensor& loss) const;

  nn::AnyModule net_;
  nn::Loss loss_;
  std::optional<nn::AnyModule> teacher_;
  double temperature_, distill_weight_;
  optim::Optimizer& optimizer_;
  double clip_norm_, clip_value_;
  std::shared_ptr<const Task> task_;
  bool guarded_, mixes_;
  bool counts_vary_ = false;  // whether the number of counted targets varies between batches
  std::int64_t least_scores_ = 0;
  std::optional<ResidentSet> set_;
  std::optional<LossScale> scale_;
  std::optional<optim::GradientAccumulator> accumulator_;
  const optim::AveragedModel* average_ = nullptr;
  Tensor open_;  // bool variable: false after the first non-finite loss
  CompiledFunction on_batch_, on_numbers_;
};

struct EvalOutcome {
  double total = 0, counted = 0;          ///< like nn::LossTerms
  std::int64_t correct = 0, targets = 0;  ///< without ignored targets
  Tensor scores;                          ///< undefined unless Task::needs_scores()
};

class EvalStep {
 public:
  EvalStep(const nn::AnyModule& net, const nn::Loss& loss, std::shared_ptr<const Task> task);
  const Task& task() const { return *task_; }
  std::optional<std::int64_t> ignored() const { return loss_.ignored(); }
  /// With more than one view per sample, inputs are [N, views, …], and Task::mean_over_views()
  /// averages the scores.
  void set_views(std::int64_t views);
  EvalOutcome operator()(const data::Batch& batch);
  /// Throws what evaluating a batch of the loader would throw, without evaluating, also if the
  /// network has fewer outputs than Task::least_scores().
  void require_fits(const data::Loader& loader);
  /// Plans a batch of `batch` samples of this loader's dataset.
  Plan plan(const data::Loader& loader, std::int64_t batch);

 private:
  nn::AnyModule net_;
  nn::Loss loss_;
  std::shared_ptr<const Task> task_;
  std::int64_t views_ = 0;
  CompiledFunction function_;
};

}  // namespace tenon::train
