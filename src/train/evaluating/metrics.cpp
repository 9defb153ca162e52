// Metrics, computed on the host.
#include <tenon/metrics.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/str.h"

namespace tenon::metrics {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> scores_of(const Tensor& scores) {
  if (scores.rank() != 2 || scores.size(1) == 0)
    throw ShapeError(
        cat("metrics: the scores are ", scores.shape(), ", [cases, classes] is needed"));
  return cast(scores, DType::Float64).to_vector<double>();
}

std::vector<std::int64_t> targets_of(const Tensor& targets, const Tensor& scores) {
  if (targets.rank() != 1 || scores.rank() == 0 || targets.size(0) != scores.size(0))
    throw ShapeError(
        cat("metrics: the targets are ", targets.shape(), " for scores ", scores.shape()));
  if (is_floating(targets.dtype()))
    throw DTypeError(
        cat("metrics: the targets are ", targets.dtype(), ", class numbers are needed"));
  return cast(targets, DType::Int64).to_vector<std::int64_t>();
}

void require_target(std::int64_t target, std::int64_t classes, std::size_t n) {
  if (target < 0 || target >= classes)
    throw ValueError(
        cat("metrics: target ", target, " of case ", n, " is outside the ", classes, " classes"));
}

double ratio(std::int64_t part, std::int64_t whole, double of_none = 0) {
  return whole == 0 ? of_none : static_cast<double>(part) / static_cast<double>(whole);
}

bool has_nan(const double* row, std::int64_t classes) {
  return std::any_of(row, row + classes, [](double score) { return std::isnan(score); });
}

std::int64_t predicted_of(const double* row, std::int64_t classes) {
  return has_nan(row, classes) ? kNoClass : std::max_element(row, row + classes) - row;
}

// The number of classes ranked before the target; all of them if a score is NaN.
std::int64_t rank_of(const double* row, std::int64_t classes, std::int64_t target) {
  if (has_nan(row, classes)) return classes;
  std::int64_t before = 0;
  for (std::int64_t c = 0; c < classes; ++c)
    before += row[c] > row[target] || (row[c] == row[target] && c < target);
  return before;
}

// The softmax of a row. The order of the classes does not change its sum. So equal probabilities
// are equal bit for bit, and a ranking treats them as equal.
struct Softmax {
  double most = 0, sum = 0;
  std::vector<double> shares;  // not yet divided by the sum; all NaN if a score is NaN

  Softmax(const double* row, std::int64_t classes) : shares(row, row + classes) {
    if (has_nan(row, classes)) {
      shares.assign(shares.size(), kNan);
      sum = kNan;
      return;
    }
    most = *std::max_element(row, row + classes);
    for (double& x : shares) x = x == most ? 1 : std::exp(x - most);
    std::vector<double> ascending = shares;
    std::sort(ascending.begin(), ascending.end());
    for (const double x : ascending) sum += x;
  }
  double lost_on(double score) const {
    // without the comparison, two infinities would give NaN
    return (score == most ? 0 : most - score) + std::log(sum);
  }
};

// Samples in descending order of their scores; equal scores share one threshold.
struct Ranking {
  // Score, and whether the sample belongs to the class.
  std::vector<std::pair<double, bool>> samples;
  std::int64_t own = 0, others = 0;

  void add(double score, bool is_own) {
    samples.emplace_back(score, is_own);
    ++(is_own ? own : others);
  }
  // Calls visit(samples of the class, other samples) for each threshold.
  template <class F>
  void thresholds(F&& visit) {
    std::sort(samples.begin(), samples.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t k = 0; k < samples.size();) {
      std::int64_t met = 0, missed = 0;
      for (const double score = samples[k].first; k < samples.size() && samples[k].first == score;
           ++k)
        ++(samples[k].second ? met : missed);
      visit(static_cast<double>(met), static_cast<double>(missed));
    }
  }
  // The share of pairs (sample of the class, other sample) in the right order; a pair of equal
  // scores counts half.
  double roc_auc() {
    double above = 0, right = 0;
    thresholds([&](double met, double missed) {
      right += missed * (above + met / 2);
      above += met;
    });
    return right / (static_cast<double>(own) * static_cast<double>(others));
  }
  double average_precision() {
    double met_so_far = 0, so_far = 0, sum = 0;
    thresholds([&](double met, double missed) {
      met_so_far += met;
      so_far += met + missed;
      sum += met * met_so_far / so_far;
    });
    return sum / static_cast<double>(own);
  }
};

using RankingMetric = double (Ranking::*)();

// The mean of a metric over the classes that it is defined for; NaN where any score is. Scores are
// [samples, columns]: one column for two classes, with the score of the second.
double over_classes(const std::vector<double>& scores, std::int64_t columns,
                    const std::vector<std::int64_t>& targets, RankingMetric metric) {
  if (has_nan(scores.data(), std::ssize(scores))) return kNan;
  const bool binary = columns == 1;
  double sum = 0;
  std::int64_t classes = 0;
  for (std::int64_t c = 0; c < columns; ++c) {
    Ranking ranking;
    ranking.samples.reserve(targets.size());
    for (std::size_t n = 0; n < targets.size(); ++n)
      ranking.add(scores[n * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c)],
                  targets[n] == (binary ? 1 : c));
    if (ranking.own == 0 || (ranking.others == 0 && metric == &Ranking::roc_auc)) continue;
    sum += (ranking.*metric)();
    ++classes;
  }
  return classes == 0 ? kNan : sum / static_cast<double>(classes);
}

double ranked(const Tensor& scores, const Tensor& targets, RankingMetric metric) {
  if (scores.rank() != 1 && (scores.rank() != 2 || scores.size(1) < 2))
    throw ShapeError(cat("metrics: the scores are ", scores.shape(),
                         ", must be [cases] or [cases, classes] of at least 2 classes"));
  const std::vector<std::int64_t> wanted = targets_of(targets, scores);
  const std::int64_t classes = scores.rank() == 1 ? 2 : scores.size(1);
  for (std::size_t n = 0; n < wanted.size(); ++n) require_target(wanted[n], classes, n);
  std::vector<double> values = cast(scores, DType::Float64).to_vector<double>();
  if (scores.rank() == 2 && classes == 2) {  // rank by column 1; NaN if either score is NaN
    for (std::size_t n = 0; n < wanted.size(); ++n)
      values[n] = std::isnan(values[2 * n]) ? kNan : values[2 * n + 1];
    values.resize(wanted.size());
  }
  return over_classes(values, classes == 2 ? 1 : classes, wanted, metric);
}

}  // namespace

std::vector<std::int64_t> predictions(const Tensor& scores) {
  const std::vector<double> values = scores_of(scores);
  const std::int64_t classes = scores.size(1);
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(scores.size(0)));
  for (std::int64_t n = 0; n < scores.size(0); ++n)
    out.push_back(predicted_of(values.data() + n * classes, classes));
  return out;
}

double accuracy(const Tensor& scores, const Tensor& targets) {
  return top_k_accuracy(scores, targets, 1);
}

double top_k_accuracy(const Tensor& scores, const Tensor& targets, int k) {
  if (k < 1) throw ValueError(cat("metrics: k is ", k, ", must be at least 1"));
  const std::vector<double> values = scores_of(scores);
  const std::vector<std::int64_t> wanted = targets_of(targets, scores);
  const std::int64_t classes = scores.size(1);
  std::int64_t right = 0;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    require_target(wanted[n], classes, n);
    right += rank_of(values.data() + static_cast<std::int64_t>(n) * classes, classes, wanted[n]) <
             std::min<std::int64_t>(k, classes);
  }
  return ratio(right, std::ssize(wanted), kNan);
}

double log_loss(const Tensor& scores, const Tensor& targets) {
  const std::vector<double> values = scores_of(scores);
  const std::vector<std::int64_t> wanted = targets_of(targets, scores);
  const std::int64_t classes = scores.size(1);
  double sum = 0;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    require_target(wanted[n], classes, n);
    const double* row = values.data() + static_cast<std::int64_t>(n) * classes;
    sum += Softmax(row, classes).lost_on(row[wanted[n]]);
  }
  return wanted.empty() ? kNan : sum / static_cast<double>(wanted.size());
}

double roc_auc(const Tensor& scores, const Tensor& targets) {
  return ranked(scores, targets, &Ranking::roc_auc);
}

double average_precision(const Tensor& scores, const Tensor& targets) {
  return ranked(scores, targets, &Ranking::average_precision);
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
  if (predicted != kNoClass) require_class(predicted, classes_);
  ++support_[static_cast<std::size_t>(target)];
  ++total_;
  if (predicted == kNoClass) {
    ++undecided_;
    return;
  }
  ++counts_[{static_cast<int>(target), static_cast<int>(predicted)}];
  ++predicted_[static_cast<std::size_t>(predicted)];
  right_ += target == predicted;
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

double ConfusionMatrix::accuracy() const { return ratio(right_, total_, kNan); }
double ConfusionMatrix::precision(int c) const { return ratio(count(c, c), predicted(c)); }
double ConfusionMatrix::recall(int c) const { return ratio(count(c, c), support(c)); }

double ConfusionMatrix::f1(int c) const {
  const double p = precision(c), r = recall(c);
  return p + r > 0 ? 2 * p * r / (p + r) : 0;
}

namespace {
// The mean of a metric over the classes that occur; NaN if none occurs.
template <class F>
double mean_over(const ConfusionMatrix& m, F&& figure) {
  double sum = 0;
  std::int64_t classes = 0;
  for (int c = 0; c < m.classes(); ++c) {
    if (m.support(c) + m.predicted(c) == 0) continue;
    sum += figure(c);
    ++classes;
  }
  return classes == 0 ? kNan : sum / static_cast<double>(classes);
}
}  // namespace

double ConfusionMatrix::macro_precision() const {
  return mean_over(*this, [this](int c) { return precision(c); });
}
double ConfusionMatrix::macro_recall() const {
  return mean_over(*this, [this](int c) { return recall(c); });
}
double ConfusionMatrix::macro_f1() const {
  return mean_over(*this, [this](int c) { return f1(c); });
}

double ConfusionMatrix::weighted_f1() const {
  double sum = 0;
  for (int c = 0; c < classes_; ++c) sum += f1(c) * static_cast<double>(support(c));
  return total_ == 0 ? kNan : sum / static_cast<double>(total_);
}

double ConfusionMatrix::balanced_accuracy() const {
  double sum = 0;
  std::int64_t classes = 0;
  for (int c = 0; c < classes_; ++c) {
    if (support(c) == 0) continue;
    sum += recall(c);
    ++classes;
  }
  return classes == 0 ? kNan : sum / static_cast<double>(classes);
}

// Gorodkin's form: the correlation of the indicators of true and of predicted classes.
double ConfusionMatrix::matthews() const {
  if (total_ == 0) return kNan;
  const auto total = static_cast<double>(total_), none = static_cast<double>(undecided_);
  double both = 0, of_true = 0, of_predicted = none * none;
  for (int c = 0; c < classes_; ++c) {
    const auto t = static_cast<double>(support(c)), p = static_cast<double>(predicted(c));
    both += t * p;
    of_true += t * t;
    of_predicted += p * p;
  }
  const double variances = (total * total - of_true) * (total * total - of_predicted);
  return variances > 0 ? (static_cast<double>(right_) * total - both) / std::sqrt(variances) : 0;
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

ClassMetrics::ClassMetrics(int classes) : confusion_(classes), of_rank_(kMostRanks) {}

void ClassMetrics::add_row(const double* scores, std::int64_t target) {
  const std::int64_t classes = confusion_.classes();
  confusion_.add(target, predicted_of(scores, classes));
  if (const std::int64_t rank = rank_of(scores, classes, target); rank < kMostRanks)
    ++of_rank_[static_cast<std::size_t>(rank)];
  const Softmax softmax(scores, classes);
  lost_ += softmax.lost_on(scores[target]);
  const std::int64_t columns = classes == 2 ? 1 : classes;
  too_many_ = too_many_ || std::ssize(probabilities_) + columns > kMostKept;
  if (too_many_) {
    probabilities_ = {};
    targets_ = {};
    return;
  }
  targets_.push_back(target);
  if (classes == 2) {  // the difference orders like the probability, which would round to 1
    probabilities_.push_back(scores[1] == scores[0] ? 0 : scores[1] - scores[0]);
    return;
  }
  for (const double share : softmax.shares) probabilities_.push_back(share / softmax.sum);
}

void ClassMetrics::add(const Tensor& scores, const Tensor& targets,
                       std::optional<std::int64_t> ignored) {
  const std::vector<double> values = scores_of(scores);
  const std::vector<std::int64_t> wanted = targets_of(targets, scores);
  const std::int64_t classes = confusion_.classes();
  if (scores.size(1) != classes)
    throw ShapeError(
        cat("metrics: the scores are ", scores.shape(), " where there are ", classes, " classes"));
  for (std::size_t n = 0; n < wanted.size(); ++n)
    if (!ignored || wanted[n] != *ignored) require_target(wanted[n], classes, n);
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    if (ignored && wanted[n] == *ignored)
      ++ignored_;
    else
      add_row(values.data() + static_cast<std::int64_t>(n) * classes, wanted[n]);
  }
}

double ClassMetrics::top_k_accuracy(int k) const {
  if (k < 1 || k > kMostRanks)
    throw ValueError(cat("metrics: k is ", k, ", must lie in [1, ", kMostRanks, "]"));
  std::int64_t right = 0;
  for (int rank = 0; rank < std::min(k, confusion_.classes()); ++rank)
    right += of_rank_[static_cast<std::size_t>(rank)];
  return ratio(right, samples(), kNan);
}

double ClassMetrics::log_loss() const {
  return samples() == 0 ? kNan : lost_ / static_cast<double>(samples());
}

std::optional<double> ClassMetrics::roc_auc() const {
  const int classes = confusion_.classes();
  if (too_many_ || classes < 2) return std::nullopt;
  return over_classes(probabilities_, classes == 2 ? 1 : classes, targets_, &Ranking::roc_auc);
}

std::optional<double> ClassMetrics::average_precision() const {
  const int classes = confusion_.classes();
  if (too_many_ || classes < 2) return std::nullopt;
  return over_classes(probabilities_, classes == 2 ? 1 : classes, targets_,
                      &Ranking::average_precision);
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
  return cases_ == 0 ? kNan : sum / static_cast<double>(cases_ * std::ssize(columns_));
}

double RegressionErrors::mse() const {
  double sum = 0;
  for (const Column& c : columns_) sum += c.residual;
  return cases_ == 0 ? kNan : sum / static_cast<double>(cases_ * std::ssize(columns_));
}

double RegressionErrors::rmse() const { return std::sqrt(mse()); }

double RegressionErrors::r2() const {
  if (cases_ < 2) return kNan;
  double sum = 0;
  for (const Column& c : columns_)
    // If the residual is NaN, the result is NaN.
    sum += c.squares != 0 ? 1 - c.residual / c.squares : c.residual > 0 ? 0 : 1 + c.residual;
  return sum / static_cast<double>(columns_.size());
}

}  // namespace tenon::metrics
