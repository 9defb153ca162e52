// Metrics on host data.
#include <tenon/metrics.h>

#include <algorithm>
#include <cmath>

#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/str.h"

namespace tenon::metrics {
namespace {

std::vector<float> scores_of(const Tensor& scores) {
  if (scores.rank() != 2 || scores.size(1) == 0)
    throw ShapeError(
        cat("metrics: the scores are ", scores.shape(), ", [cases, classes] is needed"));
  return cast(scores, DType::Float32).to_vector<float>();
}

std::vector<std::int64_t> targets_of(const Tensor& targets, const Tensor& scores) {
  if (targets.rank() != 1 || targets.size(0) != scores.size(0))
    throw ShapeError(
        cat("metrics: the targets are ", targets.shape(), " for scores ", scores.shape()));
  if (is_floating(targets.dtype()))
    throw DTypeError(
        cat("metrics: the targets are ", targets.dtype(), ", class numbers are needed"));
  return cast(targets, DType::Int64).to_vector<std::int64_t>();
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::vector<std::int64_t> predictions(const Tensor& scores) {
  const std::vector<float> values = scores_of(scores);
  const std::int64_t classes = scores.size(1);
  std::vector<std::int64_t> out;
  for (auto row = values.begin(); row != values.end(); row += classes)
    out.push_back(std::max_element(row, row + classes) - row);
  return out;
}

double accuracy(const Tensor& scores, const Tensor& targets) {
  return top_k_accuracy(scores, targets, 1);
}

double top_k_accuracy(const Tensor& scores, const Tensor& targets, int k) {
  if (k < 1) throw ValueError(cat("metrics: k is ", k, ", must be at least 1"));
  const std::vector<float> values = scores_of(scores);
  const std::vector<std::int64_t> wanted = targets_of(targets, scores);
  const std::int64_t classes = scores.size(1);
  std::int64_t right = 0;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    const float* row = values.data() + static_cast<std::int64_t>(n) * classes;
    const std::int64_t target = wanted[n];
    if (target < 0 || target >= classes)
      throw ValueError(
          cat("metrics: target ", target, " of case ", n, " is outside the ", classes, " classes"));
    std::int64_t before = 0;  // classes that come before the target; NaN scores never do
    for (std::int64_t c = 0; c < classes; ++c)
      if (row[c] > row[target] || (row[c] == row[target] && c < target)) ++before;
    if (before < k && !std::isnan(row[target])) ++right;
  }
  return ratio(right, static_cast<std::int64_t>(wanted.size()));
}

namespace {
void require_class(std::int64_t c, int classes) {
  if (c < 0 || c >= classes)
    throw ValueError(cat("confusion matrix: class ", c, " is outside its ", classes, " classes"));
}
}  // namespace

ConfusionMatrix::ConfusionMatrix(int classes) : classes_(classes) {
  if (classes < 1 || classes > 100000)
    throw ValueError(cat("confusion matrix: ", classes, " classes, must lie in [1, 100000]"));
  support_.resize(static_cast<std::size_t>(classes));
  predicted_.resize(support_.size());
}

void ConfusionMatrix::add(std::int64_t target, std::int64_t predicted) {
  require_class(target, classes_);
  require_class(predicted, classes_);
  ++counts_[{static_cast<int>(target), static_cast<int>(predicted)}];
  ++support_[static_cast<std::size_t>(target)];
  ++predicted_[static_cast<std::size_t>(predicted)];
  right_ += target == predicted;
  ++total_;
}

void ConfusionMatrix::add(std::span<const std::int64_t> targets,
                          std::span<const std::int64_t> predicted) {
  if (targets.size() != predicted.size())
    throw ShapeError(cat("confusion matrix: ", targets.size(), " targets for ", predicted.size(),
                         " predictions"));
  for (std::size_t n = 0; n < targets.size(); ++n) add(targets[n], predicted[n]);
}

void ConfusionMatrix::add(const Tensor& scores, const Tensor& targets) {
  add(std::span<const std::int64_t>(targets_of(targets, scores)),
      std::span<const std::int64_t>(predictions(scores)));
}

std::int64_t ConfusionMatrix::count(int target, int predicted) const {
  require_class(target, classes_);
  require_class(predicted, classes_);
  const auto found = counts_.find({target, predicted});
  return found == counts_.end() ? 0 : found->second;
}

std::vector<ConfusionMatrix::Cell> ConfusionMatrix::cells() const {
  std::vector<Cell> out;
  out.reserve(counts_.size());
  for (const auto& [pair, count] : counts_) out.push_back({pair.first, pair.second, count});
  return out;
}

std::int64_t ConfusionMatrix::support(int c) const {
  require_class(c, classes_);
  return support_[static_cast<std::size_t>(c)];
}
std::int64_t ConfusionMatrix::predicted(int c) const {
  require_class(c, classes_);
  return predicted_[static_cast<std::size_t>(c)];
}

double ConfusionMatrix::accuracy() const { return ratio(right_, total_); }
double ConfusionMatrix::precision(int c) const { return ratio(count(c, c), predicted(c)); }
double ConfusionMatrix::recall(int c) const { return ratio(count(c, c), support(c)); }

double ConfusionMatrix::f1(int c) const {
  const double p = precision(c), r = recall(c);
  return p + r > 0 ? 2 * p * r / (p + r) : 0;
}

namespace {
template <class F>
double mean_over(int classes, F&& figure) {
  double sum = 0;
  for (int c = 0; c < classes; ++c) sum += figure(c);
  return sum / classes;
}
}  // namespace

double ConfusionMatrix::macro_precision() const {
  return mean_over(classes_, [this](int c) { return precision(c); });
}
double ConfusionMatrix::macro_recall() const {
  return mean_over(classes_, [this](int c) { return recall(c); });
}
double ConfusionMatrix::macro_f1() const {
  return mean_over(classes_, [this](int c) { return f1(c); });
}
double ConfusionMatrix::micro_f1() const { return accuracy(); }

std::string ConfusionMatrix::str() const {
  std::size_t width = std::to_string(classes_ - 1).size();
  for (const Cell& cell : cells()) width = std::max(width, std::to_string(cell.count).size());
  auto cell = [&](const std::string& text) {
    return std::string(width + 1 - text.size(), ' ') + text;
  };
  std::string out(width + 2, ' ');
  for (int p = 0; p < classes_; ++p) out += cell(std::to_string(p));
  for (int t = 0; t < classes_; ++t) {
    out += "\n" + cell(std::to_string(t)) + " ";
    for (int p = 0; p < classes_; ++p)
      out += cell(count(t, p) == 0 && t != p ? "." : std::to_string(count(t, p)));
  }
  return out + "\n";
}

void RegressionErrors::add(const Tensor& predicted, const Tensor& targets) {
  const std::int64_t count = targets.rank() > 0 ? targets.size(0) : 0;
  if (targets.rank() == 0 || predicted.rank() == 0 || predicted.size(0) != count ||
      predicted.numel() != targets.numel())
    throw ShapeError(
        cat("metrics: predictions ", predicted.shape(), " for targets ", targets.shape()));
  if (count == 0) return;
  const auto width = static_cast<std::size_t>(targets.numel() / count);
  if (cases_ > 0 && columns_.size() != width)
    throw ShapeError(
        cat("metrics: targets ", targets.shape(), " after some of ", columns_.size(), " columns"));
  columns_.resize(width);
  const std::vector<double> p = cast(predicted, DType::Float64).to_vector<double>(),
                            t = cast(targets, DType::Float64).to_vector<double>();
  for (std::size_t n = 0; n < t.size(); n += width) {
    ++cases_;
    for (std::size_t k = 0; k < width; ++k) {
      Column& c = columns_[k];
      const double error = p[n + k] - t[n + k], from_mean = t[n + k] - c.mean;
      c.mean += from_mean / static_cast<double>(cases_);
      c.squares += from_mean * (t[n + k] - c.mean);
      c.residual += error * error;
      c.absolute += std::abs(error);
    }
  }
}

double RegressionErrors::mae() const {
  double sum = 0;
  for (const Column& c : columns_) sum += c.absolute;
  return cases_ == 0 ? 0 : sum / static_cast<double>(cases_ * std::ssize(columns_));
}

double RegressionErrors::rmse() const {
  double sum = 0;
  for (const Column& c : columns_) sum += c.residual;
  return cases_ == 0 ? 0 : std::sqrt(sum / static_cast<double>(cases_ * std::ssize(columns_)));
}

double RegressionErrors::r2() const {
  double sum = 0;
  for (const Column& c : columns_)
    sum += c.squares > 0 ? 1 - c.residual / c.squares : c.residual == 0 ? 1 : 0;
  return columns_.empty() ? 0 : sum / static_cast<double>(columns_.size());
}

}  // namespace tenon::metrics
