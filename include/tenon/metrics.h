// Metrics: comparisons of predictions with targets, computed on the host in float64.
//
// Definitions are those of scikit-learn; docs/evaluation.md has a table of the names. A metric of
// no samples is NaN. Of equal scores the lower class index comes first.
//
// Rule for NaN: a row of scores that has NaN in any column predicts no class (kNoClass). Metrics
// that count predictions (accuracy, top-k accuracy, precision, recall, F1, Matthews, the confusion
// matrix) count the row as wrong. Metrics that are computed from the scores (log loss, ROC AUC,
// average precision) are NaN. Regression errors and R2 are NaN if a prediction or a target is.
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

/// Metrics of classifiers and regressions.
namespace tenon::metrics {

/// The prediction for a row of scores that has NaN.
constexpr std::int64_t kNoClass = -1;

/// Share of the samples whose largest score is that of the target (scikit-learn: accuracy_score).
///
/// @param scores   [N, C]
/// @param targets  class indices [N]
/// @return from 0 to 1. Throws ShapeError or DTypeError for other tensors, ValueError for a target
///         outside [0, C).
TENON_API double accuracy(const Tensor& scores, const Tensor& targets);
/// Share of the samples whose target is among the k largest scores (scikit-learn:
/// top_k_accuracy_score). A k above C counts as C. Throws ValueError for a k below 1, else as
/// accuracy().
TENON_API double top_k_accuracy(const Tensor& scores, const Tensor& targets, int k);
/// Index of the largest score in each row of [N, C]; kNoClass for a row that has NaN.
TENON_API std::vector<std::int64_t> predictions(const Tensor& scores);
/// Mean of -log softmax(scores)[target] (scikit-learn: log_loss). Scores [N, C] are logits, or
/// logarithms of probabilities; targets are class indices [N]. NaN if a score is NaN.
TENON_API double log_loss(const Tensor& scores, const Tensor& targets);
/// Area under the ROC curve (scikit-learn: roc_auc_score). For several classes it is the unweighted
/// mean over all classes that have both samples and other samples, each class against the rest. NaN
/// if there is no such class, or if any score in any column is NaN. Throws as accuracy().
///
/// @param scores   two classes: [N], or [N, 2] whose column 1 ranks the samples; several classes:
///                 [N, C], whose column c ranks the samples for class c
/// @param targets  class indices [N]; 0 and 1 for two classes
TENON_API double roc_auc(const Tensor& scores, const Tensor& targets);
/// Average precision, the sum of (R_k - R_k-1) P_k over the thresholds k, where R is recall and P
/// precision (scikit-learn: average_precision_score). For several classes it is the unweighted mean
/// over the classes that have samples. Arguments, NaN and errors as roc_auc().
TENON_API double average_precision(const Tensor& scores, const Tensor& targets);

/// Counts by true and predicted class, and the metrics that follow from them. Memory grows with the
/// number of classes and of pairs that occur.
///
/// Precision, recall and F1 of a class are 0 if their denominator is 0. Macro and weighted means
/// are over the classes that occur as a target or as a prediction.
class TENON_API ConfusionMatrix {
 public:
  /// An empty matrix. Throws ValueError for a number of classes outside 1 to 100,000.
  explicit ConfusionMatrix(int classes);
  /// Counts one sample. A prediction of kNoClass counts for the true class and for no predicted
  /// class. Throws ValueError for a class outside [0, classes).
  void add(std::int64_t target, std::int64_t predicted);
  /// Counts samples, given their classes.
  void add(std::span<const std::int64_t> targets, std::span<const std::int64_t> predicted);
  /// Counts samples, given scores [N, C] and class indices [N].
  void add(const Tensor& scores, const Tensor& targets);

  /// Number of classes.
  int classes() const { return classes_; }
  /// Samples of class `target` that were predicted as `predicted`.
  std::int64_t count(int target, int predicted) const;
  /// A pair of classes that occurred.
  struct Cell {
    int target;          ///< true class
    int predicted;       ///< predicted class
    std::int64_t count;  ///< number of samples
  };
  /// The pairs that occurred, row by row.
  std::vector<Cell> cells() const;
  std::int64_t total() const { return total_; }          ///< all samples
  std::int64_t undecided() const { return undecided_; }  ///< samples predicted as kNoClass
  double accuracy() const;              ///< share of the samples predicted as their class
  double precision(int c) const;        ///< of the samples predicted as c, the share that is c
  double recall(int c) const;           ///< of the samples of class c, the share predicted as c
  double f1(int c) const;               ///< harmonic mean of precision and recall of c
  std::int64_t support(int c) const;    ///< samples of class c
  std::int64_t predicted(int c) const;  ///< samples predicted as c
  double macro_precision() const;       ///< unweighted mean of the classes' precision
  double macro_recall() const;          ///< unweighted mean of the classes' recall
  double macro_f1() const;              ///< unweighted mean of the classes' F1
  double weighted_f1() const;           ///< mean of the classes' F1, weighted by support
  double micro_f1() const;              ///< equals accuracy, because every sample has one class
  double balanced_accuracy() const;     ///< mean recall of the classes that have samples
  /// Matthews correlation coefficient, for any number of classes: 1 is perfect, 0 is no better than
  /// chance. 0 if all targets or all predictions are of one class.
  double matthews() const;
  /// A table: rows are true classes, columns are predicted classes.
  std::string str() const;

 private:
  int classes_;
  std::map<std::pair<int, int>, std::int64_t> counts_;  // by true and predicted class
  std::vector<std::int64_t> support_, predicted_;
  std::int64_t right_ = 0, total_ = 0, undecided_ = 0;
};

/// Metrics of a classifier from its logits [N, C], batch after batch.
class TENON_API ClassMetrics {
 public:
  /// The most probabilities that are stored for roc_auc() and average_precision(): one for each
  /// sample of two classes, else C for each sample.
  static constexpr std::int64_t kMostKept = std::int64_t{1} << 24;
  /// Metrics of no samples, for this number of classes.
  explicit ClassMetrics(int classes);
  /// Adds a batch of logits [N, C] and class indices [N]. Samples whose target is `ignored` do not
  /// count. Throws as accuracy(), and ShapeError if C is not the number of classes.
  void add(const Tensor& scores, const Tensor& targets, std::optional<std::int64_t> ignored = {});

  /// The confusion matrix.
  const ConfusionMatrix& confusion() const { return confusion_; }
  std::int64_t samples() const { return confusion_.total(); }  ///< samples that count
  std::int64_t ignored() const { return ignored_; }            ///< samples that were ignored
  double top_k_accuracy(int k) const;    ///< as metrics::top_k_accuracy(), k from 1 to kMostRanks
  static constexpr int kMostRanks = 10;  ///< the largest k of top_k_accuracy()
  double log_loss() const;               ///< as metrics::log_loss()
  /// metrics::roc_auc() of softmax(scores). Unset if more than kMostKept numbers would have to be
  /// stored.
  std::optional<double> roc_auc() const;
  /// metrics::average_precision() of softmax(scores). Unset as roc_auc().
  std::optional<double> average_precision() const;

 private:
  void add_row(const double* scores, std::int64_t target);
  ConfusionMatrix confusion_;
  std::int64_t ignored_ = 0;
  std::vector<std::int64_t> of_rank_;  // by rank: samples whose target's score has this rank
  double lost_ = 0;                    // the sum of -log p
  std::vector<double> probabilities_;  // sample after sample
  std::vector<std::int64_t> targets_;  // of the samples in probabilities_
  bool too_many_ = false;
};

/// Errors of a regression. R2, the coefficient of determination, is 1 minus the unexplained share
/// of the targets' variance, as an unweighted mean over columns: 1 is perfect, 0 is no better than
/// the mean (scikit-learn: r2_score). A column whose targets are all equal counts as 1 if every
/// prediction is exact, else as 0. The variance is summed around the running mean, so a large
/// offset of the targets costs no digits. All metrics are NaN for no samples, R2 is NaN for one
/// sample.
class TENON_API RegressionErrors {
 public:
  /// Adds a batch. Both tensors are [N], or [N, …] with the same number of columns; throws
  /// ShapeError for others.
  void add(const Tensor& predicted, const Tensor& targets);
  std::int64_t cases() const { return cases_; }  ///< samples
  double mae() const;                            ///< mean absolute error
  double mse() const;                            ///< mean squared error
  double rmse() const;                           ///< root of the mean squared error
  double r2() const;                             ///< coefficient of determination

 private:
  struct Column {
    double mean = 0, squares = 0;       // of targets: their mean, squared distances from it
    double residual = 0, absolute = 0;  // of predictions: squared and absolute distances
  };
  std::int64_t cases_ = 0;
  std::vector<Column> columns_;
};

/// A weighted mean of values that are added one by one; NaN without values.
class RunningMean {
 public:
  /// Adds a value.
  void add(double value, double weight = 1) { sum_ += value * weight, weight_ += weight; }
  /// The mean.
  double value() const {
    return weight_ > 0 ? sum_ / weight_ : std::numeric_limits<double>::quiet_NaN();
  }
  double weight() const { return weight_; }  ///< sum of the weights
  void reset() { sum_ = weight_ = 0; }       ///< removes all values

 private:
  double sum_ = 0, weight_ = 0;
};

}  // namespace tenon::metrics
