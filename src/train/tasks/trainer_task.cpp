// The task of a Trainer that is given none: classification if the data has classes, else
// regression.
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

class ByData final : public Task {
 public:
  std::string name() const override { return "by_data"; }
  std::int64_t least_scores(const data::Dataset& set) const override {
    return of(set).least_scores(set);
  }
  // Classification handles both kinds, by the dtype of the tensors.
  Tensor mean_over_views(const Tensor& scores, std::int64_t views, DType targets) const override {
    return classification_.mean_over_views(scores, views, targets);
  }
  Tensor drawn_targets(const Tensor& scores, const Tensor& target) const override {
    return classification_.drawn_targets(scores, target);
  }
  Tensor correct(const Tensor& scores, const Tensor& target, const Tensor& kept) const override {
    return classification_.correct(scores, target, kept);
  }
  bool has_training_accuracy(const data::Dataset& set) const override {
    return of(set).has_training_accuracy(set);
  }
  std::unique_ptr<Meter> meter(const data::Dataset& set) const override {
    return of(set).meter(set);
  }

  const Task& of(const data::Dataset& set) const {
    return set.classes() > 0 ? static_cast<const Task&>(classification_) : regression_;
  }

 private:
  Classification classification_;
  Regression regression_;
};

}  // namespace

std::shared_ptr<const Task> task_of(const TrainOptions& options, const nn::Loss& loss) {
  if (options.task != nullptr) return options.task;
  if (!loss.task().empty()) return find_task(loss.task());
  static const std::shared_ptr<const Task> by_data = std::make_shared<ByData>();
  return by_data;
}

const Task& task_for(const Task& task, const data::Dataset& set) {
  const auto* by_data = dynamic_cast<const ByData*>(&task);
  return by_data != nullptr ? by_data->of(set) : task;
}

}  // namespace tenon::train
