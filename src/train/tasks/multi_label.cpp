// Multi-label classification: any number of labels of a sample are right. Targets are 0 or 1 for
// each label, outputs are logits.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/sample_pieces.h"
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

constexpr char kF1[] = "f1", kExact[] = "exact", kLabelAccuracy[] = "accuracy";

struct LabelLoss {
  Reduction reduction = Reduction::Mean;
  Tensor operator()(const Tensor& scores, const Tensor& target) const {
    if (scores.shape() != target.shape())
      throw make_error<ShapeError>("multi_label: the network gives ", scores.shape(),
                                   " for targets ", target.shape(),
                                   ": it needs one output for each label");
    return binary_cross_entropy_with_logits(scores, cast(target, scores.dtype()),
                                            BinaryLossOptions{.reduction = reduction});
  }
};

bool is_label(double value) { return value >= 0 && value <= 1; }

[[noreturn]] void refuse_label(double value, const std::string& source, const std::string& sample) {
  throw ValueError(cat("'", source, "': ", sample, " has the target ", value,
                       ": a label is 0 or 1, or a probability; for other numbers, use --task "
                       "regression"));
}

// A label is predicted if its logit is above 0, its probability above one half.
class LabelMeter final : public Meter {
 public:
  explicit LabelMeter(std::string source) : source_(std::move(source)) {}
  void add(const MeasuredBatch& batch) override {
    const std::vector<double> scores = cast(batch.scores, DType::Float64).to_vector<double>(),
                              targets = cast(batch.target, DType::Float64).to_vector<double>();
    if (scores.size() != targets.size())
      throw make_error<ShapeError>("multi_label: the network gives ", batch.scores.shape(),
                                   " for targets ", batch.target.shape());
    const std::size_t rows = static_cast<std::size_t>(batch.target.size(0)),
                      labels = targets.size() / std::max<std::size_t>(rows, 1);
    for (std::size_t row = 0; row < rows; ++row) {
      bool all = true;
      for (std::size_t k = row * labels; k < (row + 1) * labels; ++k) {
        if (!is_label(targets[k])) refuse_label(targets[k], source_, "a sample");
        const bool predicted = scores[k] > 0, wanted = targets[k] > 0.5;
        // A score that is NaN predicts nothing, and is wrong.
        const bool right = predicted == wanted && !std::isnan(scores[k]);
        right_ += right;
        all = all && right;
        both_ += predicted && wanted;
        either_ += int{predicted} + int{wanted};
      }
      exact_ += all;
    }
    rows_ += static_cast<std::int64_t>(rows);
    labels_ += static_cast<std::int64_t>(targets.size());
  }
  void finish(Evaluation& out) const override {
    out.targets = labels_;
    out.accuracy = quotient(static_cast<double>(right_), static_cast<double>(labels_));
    out.metrics.set(kF1, quotient(2.0 * static_cast<double>(both_), static_cast<double>(either_)));
    out.metrics.set(kExact, quotient(static_cast<double>(exact_), static_cast<double>(rows_)));
    out.metrics.set(kLabelAccuracy, out.accuracy);
  }

 private:
  std::string source_;
  std::int64_t right_ = 0, exact_ = 0, both_ = 0, either_ = 0, rows_ = 0, labels_ = 0;
};

// Checks data in memory only: other data would have to be read twice.
void require_labels(const data::Dataset& set, const std::string& source) {
  if (!set.in_memory()) return;
  const auto width = static_cast<std::size_t>(set.target_shape().numel());
  data::for_each_piece(set, [&](std::string_view, std::string_view targets, const auto& numbers) {
    const Tensor labels = Tensor::from_data(
        targets.data(), {std::ssize(numbers), set.target_shape().numel()}, set.target_dtype());
    const std::vector<double> values = cast(labels, DType::Float64).to_vector<double>();
    for (std::size_t k = 0; k < values.size(); ++k)
      if (!is_label(values[k]))
        refuse_label(values[k], source, set.sample_name(numbers[k / width]));
  });
}

class MultiLabel final : public Task {
 public:
  std::string name() const override { return "multi_label"; }
  TaskWords words(const models::Info&) const override {
    return {.does = "labels inputs",
            .command = "predict",
            .evaluation = "F1, and shares of labels and of samples that are right"};
  }
  void set_reading(data::SourceOptions& options) const override { options.classes = false; }
  void check_data(const TaskData& data, data::Split part) const override {
    Task::check_data(data, part);
    if (!is_floating(data.set.target_dtype()))
      throw ShapeError(cat("'", data.settings.data, "' has targets ", data.set.target_dtype(), " ",
                           data.set.target_shape(),
                           ": multi_label needs a number from 0 to 1 for each label, as in --data "
                           "npy:X,Y with a float32 Y [N, labels]"));
    require_labels(data.set, data.settings.data);
  }
  std::int64_t outputs(const data::Dataset& set) const override {
    return set.target_shape().numel();
  }
  void check_outputs(const TaskData& data, const Shape& output) const override {
    const std::int64_t given = output.numel() / 2;
    if (given != data.settings.classes) refuse_outputs(data, output, "labels");
  }
  nn::Loss loss(const TaskNetwork&) const override { return LabelLoss{}; }
  Tensor random_targets(const Shape& scores) const override {
    return cast(randint(0, 2, scores), DType::Float32);
  }
  Tensor correct(const Tensor& scores, const Tensor& target, const Tensor&) const override {
    return sum(eq(gt(scores, 0), gt(target, 0.5)));
  }
  bool has_training_accuracy(const data::Dataset&) const override { return true; }
  std::vector<MetricInfo> metrics() const override {
    return {{.name = kF1, .label = "F1", .form = MetricForm::Share},
            {.name = kExact, .label = "all labels right", .form = MetricForm::Share},
            {.name = kLabelAccuracy, .label = "labels right", .form = MetricForm::Share}};
  }
  std::string monitored() const override { return kF1; }
  std::unique_ptr<Meter> meter(const data::Dataset& set) const override {
    return std::make_unique<LabelMeter>(set.describe());
  }
  OutputForm output_form() const override { return OutputForm::Labels; }
  Tensor predictions(const Tensor& scores) const override { return sigmoid(scores); }
};

}  // namespace

std::shared_ptr<const Task> multi_label_task() { return std::make_shared<MultiLabel>(); }

}  // namespace tenon::train
