// Figures about predictions, worked out on host data: accuracy, top-k, confusion matrix, precision,
// recall, F1, running means.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/tensor.h>

namespace tenon::metrics {

/// Share of rows of scores [N, C] whose largest element (the first of equals) is the target's.
TENON_API double accuracy(const Tensor& scores, const Tensor& targets);
/// Share of rows whose target is among the k largest scores; of equal scores the lower index comes
/// first.
TENON_API double top_k_accuracy(const Tensor& scores, const Tensor& targets, int k);
/// Index of the largest score of each row of [N, C].
TENON_API std::vector<std::int64_t> predictions(const Tensor& scores);

/// Counts by (true class, predicted class), and what follows from them. A ratio without cases is 0.
/// Memory grows with the classes and with the pairs that occur.
class TENON_API ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int classes);
  /// Throws ValueError for a class outside [0, classes).
  void add(std::int64_t target, std::int64_t predicted);
  void add(std::span<const std::int64_t> targets, std::span<const std::int64_t> predicted);
  void add(const Tensor& scores, const Tensor& targets);

  int classes() const { return classes_; }
  std::int64_t count(int target, int predicted) const;
  struct Cell {
    int target, predicted;
    std::int64_t count;
  };
  /// The pairs that occurred, row by row.
  std::vector<Cell> cells() const;
  std::int64_t total() const { return total_; }
  double accuracy() const;
  double precision(int c) const;  ///< of those predicted as c, the share that are
  double recall(int c) const;     ///< of those that are c, the share predicted so
  double f1(int c) const;
  std::int64_t support(int c) const;    ///< cases of class c
  std::int64_t predicted(int c) const;  ///< cases predicted as c
  double macro_precision() const;
  double macro_recall() const;
  double macro_f1() const;
  double micro_f1() const;  ///< equals accuracy where every case has one class
  /// A table: rows are true classes, columns predicted ones.
  std::string str() const;

 private:
  int classes_;
  std::map<std::pair<int, int>, std::int64_t> counts_;  // by class and prediction
  std::vector<std::int64_t> support_, predicted_;
  std::int64_t right_ = 0, total_ = 0;
};

/// How far predictions of quantities are from their targets. R2 is 1 less the share of the targets'
/// variance that is left, the mean over columns: 1 is perfect, 0 no better than the mean. A column
/// whose targets are all equal counts as 1 where it is met exactly and as 0 elsewhere.
class TENON_API RegressionErrors {
 public:
  /// Both [N] or [N, …] with as many columns; throws ShapeError for others.
  void add(const Tensor& predicted, const Tensor& targets);
  std::int64_t cases() const { return cases_; }
  double mae() const;   ///< mean of |predicted - target|
  double rmse() const;  ///< root of the mean of its square
  double r2() const;

 private:
  struct Column {
    double mean = 0, squares = 0;       // of targets: their mean, squared distances from it
    double residual = 0, absolute = 0;  // of predictions: squared and absolute distances
  };
  std::int64_t cases_ = 0;
  std::vector<Column> columns_;
};

/// A mean that grows by weighted values.
class RunningMean {
 public:
  void add(double value, double weight = 1) { sum_ += value * weight, weight_ += weight; }
  double value() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  double weight() const { return weight_; }
  void reset() { sum_ = weight_ = 0; }

 private:
  double sum_ = 0, weight_ = 0;
};

}  // namespace tenon::metrics
