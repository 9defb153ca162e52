// The base of tasks with a target for each token of a sequence: scores [N, T, classes] and targets
// [N, T] are N * T samples to the loss and the metrics.
#pragma once

#include <memory>

#include <tenon/task.h>

namespace tenon::train {

class TokenTask : public Task {
 public:
  std::int64_t outputs(const data::Dataset& set) const override;
  std::int64_t least_scores(const data::Dataset& set) const override;
  bool takes_teacher() const override { return true; }
  bool takes_mixing() const override { return false; }
  nn::Loss loss(const TaskNetwork& network) const override;
  /// Throws ShapeError unless the output is [N, T, classes].
  Tensor scores(const Tensor& output) const override;
  Tensor targets(const Tensor& target) const override;
  Tensor distillation(const Tensor& scores, const Tensor& teacher, const Tensor& target,
                      double temperature) const override;
  Tensor drawn_targets(const Tensor& scores, const Tensor& target) const override;
  Tensor random_targets(const Shape& scores) const override;
  Tensor correct(const Tensor& scores, const Tensor& target, const Tensor& kept) const override;
  bool has_training_accuracy(const data::Dataset& set) const override;
  /// Scores of a large vocabulary stay on the device.
  bool needs_scores() const override { return false; }
  std::unique_ptr<Meter> meter(const data::Dataset& set) const override;
  Tensor predictions(const Tensor& scores) const override;

 protected:
  /// Whether some targets are data::kIgnoredTarget, which the loss leaves out.
  virtual bool has_padding() const { return false; }
};

/// A language model: the target of each token is the next one. Windows of text up to the network's
/// context.
class Language : public TokenTask {
 public:
  std::string name() const override { return "language"; }
  TaskWords words(const models::Info& model) const override;
  void check_data(const TaskData& data, data::Split part) const override;
  std::string network_for(const data::Dataset& set) const override;
  std::vector<EvaluationRow> rows(const Evaluation& evaluation) const override;
  OutputForm output_form() const override { return OutputForm::NextToken; }
};

}  // namespace tenon::train
