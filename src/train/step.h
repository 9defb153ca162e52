// The two programs of training: the training step (forward, loss, number of correct predictions,
// gradients, guarded update) and the evaluation of a batch.
//
// Queueing a step and reading its results are separate calls: on a GPU, steps are queued ahead and
// many results are read together later. After the first loss that is not finite, a guard in the
// program blocks all further updates, so queued steps cannot change the weights.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/data.h>
#include <tenon/eval.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/train.h>

#include "train/resident.h"

namespace tenon::train {

/// Throws ShapeError for scores that are not [N, C] of at least so many classes.
void require_scores(const Tensor& scores, std::int64_t classes);

/// Scores [N, T, classes] as those of N · T samples. Throws ShapeError for others.
Tensor places_of(const Tensor& scores);

struct StepOutcome {
  double loss = 0;  ///< 0 where no target counts
  std::int64_t correct = 0;
  /// What the step counts in a mean of losses, and how many of its targets are not left out. Unset:
  /// as much as every other step for each of its samples.
  std::optional<double> counted{};
  /// With `counted`: the sum of the losses, each times what it counts. Where nothing counts there
  /// may be losses all the same, as smoothed labels beside class weights of 0 give.
  std::optional<double> total{};
  std::optional<std::int64_t> targets{};
  /// With a scaled loss: the first parameter whose gradient overflowed, and so left the step
  /// without an update; "" when none did.
  std::string overflow{};
};

/// Multiplies the loss, so that small gradients survive float16: doubled after kGrowth steps that
/// went well, halved by one that overflowed (Micikevicius et al., "Mixed precision training", ICLR
/// 2018).
struct LossScale {
  static constexpr double kStart = 65536, kMost = 16777216;
  static constexpr int kGrowth = 2000;
  Tensor scale, good_steps;  // float32 variables
  LossScale();
};

class TrainStep {
 public:
  /// Throws ValueError where the optimizer has none of the network's parameters.
  TrainStep(const nn::AnyModule& net, const nn::Loss& loss, optim::Optimizer& optimizer,
            const TrainOptions& options);
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  /// Takes batches from a set on the GPU; none: from what begin() is given.
  void use(std::optional<ResidentSet> set);
  const std::optional<ResidentSet>& set() const { return set_; }
  /// The network must give scores for as many classes; 0: any.
  void require_classes(std::int64_t count) { least_scores_ = count; }
  /// Queues a step on a batch (input, target), which is mixed as `mix` says (train/mixing.h) where
  /// the options ask for it. The figures are for read().
  Tensor begin(const Tensor& input, const Tensor& target, const Tensor& mix);
  /// Queues a step for each row of `numbers`, of samples of the set, in one launch. Step r learns
  /// at rate `rates[r]` from a batch mixed by row r of `mix`; its figures are row r.
  Tensor begin(const Tensor& numbers, const std::vector<double>& rates, const Tensor& mix);
  StepOutcome read(const Tensor& figures, std::int64_t row) const;
  /// Plans the step on a whole batch of the loader's, whose kernels are then compiled by others
  /// while the caller goes on. While the plan is held, an equal step takes it as its own.
  Plan plan(const data::Loader& loader);
  /// Opens the guard that a loss which was not finite has shut.
  void reopen();
  /// Null unless the precision is fp16.
  const LossScale* loss_scale() const { return scale_ ? &*scale_ : nullptr; }

 private:
  std::vector<Tensor> trace(const Tensor& given, const Tensor& target, const Tensor& mix,
                            const Tensor& rates, bool queued);
  void scale_gradients(std::vector<Tensor>& grads, const Tensor& any, Tensor& guard,
                       std::vector<Tensor>& figures, std::vector<Tensor>& updates);

  Tensor with_teacher(const Tensor& loss, const Tensor& scores, const Tensor& input,
                      const Tensor& target) const;
  void require_own_parameters() const;
  void require_reached(const Tensor& loss) const;

  nn::AnyModule net_;
  nn::Loss loss_;
  std::optional<nn::AnyModule> teacher_;
  double temperature_, distill_weight_;
  optim::Optimizer& optimizer_;
  double clip_norm_, clip_value_;
  bool guarded_, classes_, tokens_, mixes_;
  bool counts_vary_ = false;  // of the steps that were traced
  std::int64_t least_scores_ = 0;
  std::optional<ResidentSet> set_;
  std::optional<LossScale> scale_;
  Tensor open_;  // bool variable: no loss so far was anything but finite
  CompiledFunction on_batch_, on_numbers_;
};

struct EvalOutcome {
  double total = 0, counted = 0;          ///< as nn::LossTerms
  std::int64_t correct = 0, targets = 0;  ///< of the targets that are not left out
  Tensor scores;                          ///< undefined for sequences of tokens
};

class EvalStep {
 public:
  EvalStep(const nn::AnyModule& net, const nn::Loss& loss, bool tokens);
  bool tokens() const { return tokens_; }
  std::optional<std::int64_t> ignored() const { return loss_.ignored(); }
  /// Inputs are [N, views, …] where there is more than one view of each sample: their scores are
  /// brought together by mean_of_views().
  void set_views(std::int64_t views);
  EvalOutcome operator()(const data::Batch& batch);
  /// Throws what a batch of the loader's would throw, without evaluating anything; with `classes`
  /// where the network has fewer outputs than the set has classes, too.
  void require_fits(const data::Loader& loader, bool classes);
  /// The plan for `batch` samples of this loader's set.
  Plan plan(const data::Loader& loader, std::int64_t batch);

 private:
  nn::AnyModule net_;
  nn::Loss loss_;
  bool tokens_;
  std::int64_t views_ = 0;
  CompiledFunction function_;
};

}  // namespace tenon::train
