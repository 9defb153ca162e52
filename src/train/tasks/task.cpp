// Default implementations of the functions of Task.
#include <tenon/task.h>

#include <algorithm>

#include <tenon/distillation.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "base/str.h"
#include "train/tasks/tasks.h"

namespace tenon::train {

std::optional<double> Metrics::operator[](std::string_view name) const {
  for (const auto& [key, value] : values_)
    if (key == name) return value;
  return std::nullopt;
}

bool Metrics::empty() const { return values_.empty(); }

void Metrics::set(const std::string& name, double value) {
  for (auto& [key, old] : values_)
    if (key == name) {
      old = value;
      return;
    }
  values_.emplace_back(name, value);
}

Meter::~Meter() = default;
Task::~Task() = default;

TaskWords Task::words(const models::Info&) const {
  return {.does = cat("is trained for the task '", name(), "'"),
          .command = "predict",
          .evaluation = "loss and metrics on the test part"};
}

void Task::set_reading(data::SourceOptions&) const {}

void Task::check_data(const TaskData& data, data::Split part) const {
  if (part == data::Split::Train && !data.model.takes_tokens()) require_input(*this, data);
}

std::int64_t Task::outputs(const data::Dataset& set) const {
  return set.classes() > 0 ? set.classes() : set.target_shape().numel();
}

void Task::check_outputs(const TaskData&, const Shape&) const {}
std::int64_t Task::least_scores(const data::Dataset&) const { return 0; }
std::string Task::network_for(const data::Dataset&) const { return ""; }

nn::Loss Task::loss(const TaskNetwork&) const {
  throw NotSupported(cat("task '", name(),
                         "' has no loss for a run: override Task::loss(), or train with a Trainer, "
                         "which is given its loss"));
}

Tensor Task::scores(const Tensor& output) const { return output; }
Tensor Task::targets(const Tensor& target) const { return target; }

Tensor Task::mean_over_views(const Tensor& scores, std::int64_t views, DType) const {
  return mean_of_views(scores, views, true);
}

Tensor Task::distillation(const Tensor& scores, const Tensor& teacher, const Tensor&,
                          double temperature) const {
  return distillation_loss(scores, teacher, temperature);
}

Tensor Task::drawn_targets(const Tensor&, const Tensor& target) const { return target; }

Tensor Task::correct(const Tensor&, const Tensor&, const Tensor&) const {
  return scalar(0, DType::Int64);
}

Tensor Task::random_targets(const Shape& scores) const { return randn(scores); }

bool Task::has_training_accuracy(const data::Dataset&) const { return false; }
std::vector<MetricInfo> Task::metrics() const { return {}; }
std::string Task::monitored() const { return ""; }
std::unique_ptr<Meter> Task::meter(const data::Dataset&) const { return nullptr; }
void Task::measure_network(const nn::AnyModule&, const data::Dataset&, Evaluation&) const {}

std::vector<EvaluationRow> Task::rows(const Evaluation& evaluation) const {
  std::vector<EvaluationRow> out;
  for (const MetricInfo& metric : metrics())
    if (const std::optional<double> value = evaluation.metrics[metric.name])
      out.push_back({.title = metric.shown(),
                     .key = metric.name,
                     .value = *value,
                     .form = metric.form,
                     .headline = metric.name == monitored()});
  std::stable_partition(out.begin(), out.end(),
                        [](const EvaluationRow& row) { return row.headline; });
  return out;
}

MetricInfo Task::metric(const std::string& name) const {
  for (const MetricInfo& metric : metrics())
    if (metric.name == name) return metric;
  return {.name = name};
}

Tensor Task::predictions(const Tensor& scores) const { return scores; }

}  // namespace tenon::train
