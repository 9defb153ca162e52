// Regression: squared error, and the metrics of metrics::RegressionErrors.
#include <optional>

#include <tenon/train.h>

#include "base/str.h"
#include "data/samples/not_finite_samples.h"
#include "train/adapting/standardized.h"
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

constexpr char kMae[] = "mae", kR2[] = "r2";

// Measures nothing if the number of outputs differs from that of the targets.
class ErrorMeter final : public Meter {
 public:
  void add(const MeasuredBatch& batch) override {
    targets_ += batch.target.numel();
    if (batch.scores.numel() != batch.target.numel() || batch.target.rank() == 0) return;
    if (!errors_) errors_.emplace();
    errors_->add(batch.scores, batch.target);
  }
  void finish(Evaluation& out) const override {
    out.targets = targets_;
    out.errors = errors_;
    if (!errors_) return;
    out.metrics.set(kMae, errors_->mae());
    out.metrics.set(kR2, errors_->r2());
  }

 private:
  std::int64_t targets_ = 0;
  std::optional<metrics::RegressionErrors> errors_;
};

}  // namespace

std::shared_ptr<const Task> regression_task() { return std::make_shared<Regression>(); }

std::string Regression::name() const { return "regression"; }

TaskWords Regression::words(const models::Info&) const {
  return {.does = "predicts numbers",
          .command = "predict",
          .evaluation = "error of its predictions on the test part"};
}

void Regression::set_reading(data::SourceOptions& options) const { options.classes = false; }

// One target that is not finite makes the loss of every step NaN.
void Regression::check_data(const TaskData& data, data::Split part) const {
  Task::check_data(data, part);
  if (!data.set.in_memory()) return;
  const data::NotFiniteSamples found = data::not_finite_samples(data.set);
  if (found.targets > 0) data::refuse_not_finite(found, part, data.settings.data);
}

std::int64_t Regression::outputs(const data::Dataset& set) const {
  return set.target_shape().numel();
}

void Regression::check_outputs(const TaskData& data, const Shape& output) const {
  const std::int64_t given = output.numel() / 2, wanted = data.settings.classes;
  if (given != wanted) refuse_outputs(data, output, wanted == 1 ? "target" : "targets");
}

std::string Regression::network_for(const data::Dataset& set) const {
  if (has_tokens(set) || !is_floating(set.target_dtype())) return "";
  return cat("mlp:", set.input_shape().numel(), "-64-", set.target_shape().numel());
}

nn::Loss Regression::loss(const TaskNetwork& network) const {
  return StandardizedLoss{target_deviation(network.net)};
}

// In the order in which they are printed.
std::vector<MetricInfo> Regression::metrics() const {
  return {{.name = kR2, .label = "R2"},
          {.name = kMae, .label = "MAE", .form = MetricForm::Quantity, .higher_is_better = false}};
}

std::unique_ptr<Meter> Regression::meter(const data::Dataset&) const {
  return std::make_unique<ErrorMeter>();
}

std::vector<EvaluationRow> Regression::rows(const Evaluation& evaluation) const {
  if (!evaluation.errors) return {};
  const metrics::RegressionErrors& errors = *evaluation.errors;
  return {{.title = "R2", .key = kR2, .value = errors.r2(), .headline = true},
          {"mean abs. error", kMae, errors.mae(), MetricForm::Quantity},
          {"", "mse", errors.mse(), MetricForm::Quantity},
          {"rms error", "rmse", errors.rmse(), MetricForm::Quantity}};
}

}  // namespace tenon::train
