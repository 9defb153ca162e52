// Scores, targets, loss and accuracy of tokens.
#include "train/tasks/tokens.h"

#include <tenon/distillation.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

class TokenMeter final : public Meter {
 public:
  void add(const MeasuredBatch& batch) override { correct_ += batch.correct; }
  void finish(Evaluation& out) const override {
    out.accuracy = quotient(static_cast<double>(correct_), static_cast<double>(out.targets));
  }

 private:
  std::int64_t correct_ = 0;
};

// A token is a class.
const Classification& of_classes() {
  static const Classification task;
  return task;
}

}  // namespace

std::int64_t TokenTask::outputs(const data::Dataset& set) const { return set.classes(); }
std::int64_t TokenTask::least_scores(const data::Dataset& set) const { return set.classes(); }

nn::Loss TokenTask::loss(const TaskNetwork& network) const {
  if (!has_padding()) return nn::CrossEntropyLoss{network.label_smoothing};
  return nn::CrossEntropyLoss{.label_smoothing = network.label_smoothing,
                              .ignore_index = data::kIgnoredTarget};
}

Tensor TokenTask::scores(const Tensor& output) const {
  if (output.rank() != 3)
    throw make_error<ShapeError>("Trainer: the network gives ", output.shape(),
                                 ", must be [N, T, classes]: scores for each token");
  return reshape(output, {output.size(0) * output.size(1), output.size(2)});
}

Tensor TokenTask::targets(const Tensor& target) const { return flatten(target); }

// Padding does not count in the mean.
Tensor TokenTask::distillation(const Tensor& scores, const Tensor& teacher, const Tensor& target,
                               double temperature) const {
  const Tensor counts = cast(ge(target, 0), scores.dtype());
  const Tensor lost = distillation_loss(scores, teacher, temperature, Reduction::None);
  return sum(lost * counts) / maximum(sum(counts), scalar(1, scores.dtype()));
}

Tensor TokenTask::drawn_targets(const Tensor& scores, const Tensor& target) const {
  return of_classes().drawn_targets(scores, target);
}

Tensor TokenTask::random_targets(const Shape& scores) const {
  return of_classes().random_targets(scores);
}

Tensor TokenTask::correct(const Tensor& scores, const Tensor& target, const Tensor& kept) const {
  return of_classes().correct(scores, target, kept);
}

bool TokenTask::has_training_accuracy(const data::Dataset& set) const { return set.classes() > 0; }

std::unique_ptr<Meter> TokenTask::meter(const data::Dataset&) const {
  return std::make_unique<TokenMeter>();
}

Tensor TokenTask::predictions(const Tensor& scores) const { return softmax(scores); }

}  // namespace tenon::train
