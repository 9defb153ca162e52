// Metrics: how predictions compare with targets, computed on the host in float64.
//
// Definitions are scikit-learn's; docs/evaluation.md has a table of the names. A metric of no
// samples is NaN. Of equal scores the lower class index comes first.
//
// One rule for NaN: a row of scores that holds NaN, in any column, predicts no class (kNoClass).
// What counts predictions (accuracy, top-k, precision, recall, F1, Matthews, the confusion matrix)
// counts the row as wrong; what is computed from the scores themselves (log loss, ROC AUC, average
// precision) is NaN. Errors of quantities and R2 are NaN where a prediction or a target is.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/tensor.h>

namespace tenon::metrics {

/// The prediction of a row of scores that holds NaN.
constexpr std::int64_t kNoClass = -1;

/// Share of rows of scores [N, C] whose largest element is the target's. Targets [N] are class
/// indices. Throws ShapeError or DTypeError for others, ValueError for a target outside [0, C).
TENON_API double accuracy(const Tensor& scores, const Tensor& targets);
/// Share of rows whose target is among the k largest scores. A k beyond C counts as C. Throws
/// ValueError for a k below 1, else as accuracy().
TENON_API double top_k_accuracy(const Tensor& scores, const Tensor& targets, int k);
/// Index of the largest score of each row of [N, C], or kNoClass.
TENON_API std::vector<std::int64_t> predictions(const Tensor& scores);
/// Mean of -log softmax(scores)[target]: scores [N, C] are those before softmax, or logarithms of
/// probabilities. NaN where a score is NaN.
TENON_API double log_loss(const Tensor& scores, const Tensor& targets);
/// Area under the ROC curve. Scores are [N], or [N, 2] of which column 1 ranks the samples, with
/// targets 0 and 1; or [N, C]: column c ranks the samples for class c, and the result is the
/// unweighted mean over the classes, each against the rest, that have both samples and others. NaN
/// where there is no such class, or any score, of whichever column, is NaN. Throws as accuracy().
TENON_API double roc_auc(const Tensor& scores, const Tensor& targets);
/// Average precision, the sum of (R_k - R_k-1) P_k over the thresholds k; of [N, C] the unweighted
/// mean over the classes that have samples. Arguments, NaN and errors as roc_auc().
TENON_API double average_precision(const Tensor& scores, const Tensor& targets);

/// Counts by (true class, predicted class), and what follows from them. Memory grows with the
/// classes and with the pairs that occur. Precision, recall and F1 of a class are 0 where their
/// denominator is; macro and weighted means are over the classes that occur, as a target or as a
/// prediction.
class TENON_API ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int classes);
  /// Throws ValueError for a class outside [0, classes). A prediction may be kNoClass: the sample
  /// then counts for its true class, and for none that was predicted.
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
  std::int64_t undecided() const { return undecided_; }  ///< cases predicted as kNoClass
  double accuracy() const;
  double precision(int c) const;  ///< of those predicted as c, the share that are
  double recall(int c) const;     ///< of those that are c, the share predicted so
  double f1(int c) const;
  std::int64_t support(int c) const;    ///< cases of class c
  std::int64_t predicted(int c) const;  ///< cases predicted as c
  double macro_precision() const;
  double macro_recall() const;
  double macro_f1() const;
  double weighted_f1() const;        ///< classes count by their support
  double micro_f1() const;           ///< equals accuracy where every case has one class
  double balanced_accuracy() const;  ///< mean recall of the classes that have cases
  /// Matthews correlation coefficient, of any number of classes: 1 is perfect, 0 no better than
  /// chance. 0 where all targets or all predictions are of one class.
  double matthews() const;
  /// A table: rows are true classes, columns predicted ones.
  std::string str() const;

 private:
  int classes_;
  std::map<std::pair<int, int>, std::int64_t> counts_;  // by class and prediction
  std::vector<std::int64_t> support_, predicted_;
  std::int64_t right_ = 0, total_ = 0, undecided_ = 0;
};

/// Metrics of a classifier from its scores [N, C] before softmax, batch after batch.
class TENON_API ClassMetrics {
 public:
  /// Probabilities are kept for roc_auc() and average_precision() as long as they are at most so
  /// many numbers: one a sample of two classes, else C.
  static constexpr std::int64_t kMostKept = std::int64_t{1} << 24;
  explicit ClassMetrics(int classes);
  /// Samples whose target is `ignored` count for nothing. Throws as accuracy(), and ShapeError for
  /// other than C scores a sample.
  void add(const Tensor& scores, const Tensor& targets, std::optional<std::int64_t> ignored = {});

  const ConfusionMatrix& confusion() const { return confusion_; }
  std::int64_t samples() const { return confusion_.total(); }
  std::int64_t ignored() const { return ignored_; }
  double top_k_accuracy(int k) const;  ///< for a k from 1 to kMostRanks
  static constexpr int kMostRanks = 10;
  double log_loss() const;  ///< as metrics::log_loss()
  /// As the functions of these names, of softmax(scores). Unset where more than kMostKept numbers
  /// would have to be kept.
  std::optional<double> roc_auc() const;
  std::optional<double> average_precision() const;

 private:
  void add_row(const double* scores, std::int64_t target);
  ConfusionMatrix confusion_;
  std::int64_t ignored_ = 0;
  std::vector<std::int64_t> of_rank_;  // samples whose target's score has this rank
  double lost_ = 0;                    // the sum of -log p
  std::vector<double> probabilities_;  // of each sample, and its target
  std::vector<std::int64_t> targets_;
  bool too_many_ = false;
};

/// How far predictions of quantities are from their targets. R2 is 1 less the share of the targets'
/// variance that is left, the unweighted mean over columns: 1 is perfect, 0 no better than the
/// mean. A column whose targets are all equal counts as 1 where it is met exactly and as 0
/// elsewhere. The variance is summed around the running mean, so that far offsets cost no digits.
/// All are NaN of no cases, and R2 of one.
class TENON_API RegressionErrors {
 public:
  /// Both [N] or [N, …] with as many columns; throws ShapeError for others.
  void add(const Tensor& predicted, const Tensor& targets);
  std::int64_t cases() const { return cases_; }
  double mae() const;   ///< mean of |predicted - target|
  double mse() const;   ///< mean of its square
  double rmse() const;  ///< root of mse()
  double r2() const;

 private:
  struct Column {
    double mean = 0, squares = 0;       // of targets: their mean, squared distances from it
    double residual = 0, absolute = 0;  // of predictions: squared and absolute distances
  };
  std::int64_t cases_ = 0;
  std::vector<Column> columns_;
};

/// A mean that grows by weighted values; NaN of none.
class RunningMean {
 public:
  void add(double value, double weight = 1) { sum_ += value * weight, weight_ += weight; }
  double value() const {
    return weight_ > 0 ? sum_ / weight_ : std::numeric_limits<double>::quiet_NaN();
  }
  double weight() const { return weight_; }
  void reset() { sum_ = weight_ = 0; }

 private:
  double sum_ = 0, weight_ = 0;
};

}  // namespace tenon::metrics
