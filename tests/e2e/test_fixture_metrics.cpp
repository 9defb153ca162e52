// Metrics compared with scikit-learn, torchmetrics and PyTorch (make_metric_fixtures.py).
#include <cmath>
#include <numeric>
#include <vector>

#include <tenon/metrics.h>
#include <tenon/nn.h>

#include "fixtures.h"

using namespace tenon;

namespace {

constexpr std::int64_t kLeftOut = -100;

enum Metric {
  kAccuracy,
  kTop3,
  kTop5,
  kMacroPrecision,
  kMacroRecall,
  kMacroF1,
  kWeightedF1,
  kBalanced,
  kMatthews,
  kLogLoss,
  kRocAuc,
  kAveragePrecision,
  kCrossEntropy,
  kMetrics
};

struct Case {
  Tensor scores, targets, weights;
  std::vector<double> expected;
};

std::vector<Case> cases() {
  std::map<std::string, Tensor> t;
  for (const auto& [name, tensors] : fixtures::load("metrics")) t[name] = tensors.at("");
  const auto shapes = t["shapes"].to_vector<std::int64_t>();
  const auto expected = t["expected"].to_vector<double>();
  std::vector<Case> out;
  std::int64_t score = 0, target = 0, weight = 0;
  for (std::size_t k = 0; k < shapes.size(); k += 2) {
    const std::int64_t n = shapes[k], c = shapes[k + 1];
    Case one{narrow(t["scores"], 0, score, n * c).reshape({n, c}).eval(),
             narrow(t["targets"], 0, target, n).eval(),
             narrow(t["weights"], 0, weight, c).eval(),
             {}};
    score += n * c, target += n, weight += c;
    const auto row = expected.begin() + static_cast<std::ptrdiff_t>(k / 2 * kMetrics);
    one.expected.assign(row, row + kMetrics);
    out.push_back(std::move(one));
  }
  return out;
}

// An expected NaN is not compared: the other library has no value.
void check_metric(double expected, double found, const char* what) {
  INFO(what);
  if (std::isnan(expected)) return;
  CHECK(found == doctest::Approx(expected).epsilon(1e-9));
}

Tensor kept_rows(const Tensor& x, const std::vector<std::int64_t>& rows) {
  return index_select(x, 0, Tensor::from(rows, {std::ssize(rows)})).eval();
}

}  // namespace

TEST_CASE("fixture metrics: classification equals scikit-learn and torchmetrics") {
  const std::vector<Case> all = cases();
  REQUIRE(all.size() == 400);
  for (std::size_t k = 0; k < all.size(); ++k) {
    CAPTURE(k);
    const Case& one = all[k];
    const std::vector<double>& e = one.expected;
    metrics::ClassMetrics whole(static_cast<int>(one.scores.size(1))), pieces = whole;
    whole.add(one.scores, one.targets, kLeftOut);
    for (std::int64_t n = 0; n < one.scores.size(0); n += 3) {  // the last batch is short
      const std::int64_t count = std::min<std::int64_t>(3, one.scores.size(0) - n);
      pieces.add(narrow(one.scores, 0, n, count), narrow(one.targets, 0, n, count), kLeftOut);
    }
    for (const metrics::ClassMetrics* m : {&whole, &pieces}) {
      const metrics::ConfusionMatrix& matrix = m->confusion();
      check_metric(e[kAccuracy], matrix.accuracy(), "accuracy");
      check_metric(e[kTop3], m->top_k_accuracy(3), "top-3");
      check_metric(e[kTop5], m->top_k_accuracy(5), "top-5");
      check_metric(e[kMacroPrecision], matrix.macro_precision(), "macro precision");
      check_metric(e[kMacroRecall], matrix.macro_recall(), "macro recall");
      check_metric(e[kMacroF1], matrix.macro_f1(), "macro F1");
      check_metric(e[kWeightedF1], matrix.weighted_f1(), "weighted F1");
      check_metric(e[kBalanced], matrix.balanced_accuracy(), "balanced accuracy");
      check_metric(e[kMatthews], matrix.matthews(), "Matthews");
      check_metric(e[kLogLoss], m->log_loss(), "log loss");
      check_metric(e[kRocAuc], *m->roc_auc(), "ROC AUC");
      check_metric(e[kAveragePrecision], *m->average_precision(), "average precision");
      CHECK(std::isnan(e[kRocAuc]) == std::isnan(*m->roc_auc()));
      CHECK(std::isnan(e[kAveragePrecision]) == std::isnan(*m->average_precision()));
    }
    std::vector<std::int64_t> rows;
    const auto targets = one.targets.to_vector<std::int64_t>();
    for (std::size_t n = 0; n < targets.size(); ++n)
      if (targets[n] != kLeftOut) rows.push_back(static_cast<std::int64_t>(n));
    CHECK(whole.ignored() == std::ssize(targets) - std::ssize(rows));
    const Tensor scores = kept_rows(one.scores, rows), kept = kept_rows(one.targets, rows);
    check_metric(e[kAccuracy], metrics::accuracy(scores, kept), "accuracy of scores");
    check_metric(e[kLogLoss], metrics::log_loss(scores, kept), "log loss of scores");
    if (one.scores.size(1) == 2) {
      check_metric(e[kRocAuc], metrics::roc_auc(select(scores, 1, 1) - select(scores, 1, 0), kept),
                   "ROC AUC of scores");
      check_metric(e[kAveragePrecision],
                   metrics::average_precision(select(scores, 1, 1) - select(scores, 1, 0), kept),
                   "average precision of scores");
    }
  }
}

TEST_CASE("fixture metrics: a weighted loss with ignored targets, for any batches") {
  for (const Case& one : cases()) {
    const nn::Loss loss = nn::CrossEntropyLoss{.weight = one.weights, .ignore_index = kLeftOut};
    for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{4}, one.scores.size(0)}) {
      double total = 0, counted = 0;
      for (std::int64_t n = 0; n < one.scores.size(0); n += batch) {
        const std::int64_t count = std::min(batch, one.scores.size(0) - n);
        const nn::LossTerms terms = loss.terms(narrow(one.scores, 0, n, count).to(DType::Float64),
                                               narrow(one.targets, 0, n, count));
        total += terms.total.item();
        counted += terms.counted.item();
      }
      CHECK(total / counted == doctest::Approx(one.expected[kCrossEntropy]).epsilon(1e-9));
    }
  }
}

TEST_CASE("fixture metrics: regression errors equal scikit-learn") {
  std::map<std::string, Tensor> t;
  for (const auto& [name, tensors] : fixtures::load("metrics")) t[name] = tensors.at("");
  const auto columns = t["columns"].to_vector<std::int64_t>();
  const auto errors = t["errors"].to_vector<double>();
  std::int64_t at = 0;
  for (std::size_t k = 0; k < columns.size(); k += 2) {
    CAPTURE(k);
    const std::int64_t n = columns[k], width = columns[k + 1];
    const Tensor predicted = narrow(t["predicted"], 0, at, n * width).reshape({n, width}),
                 truth = narrow(t["truth"], 0, at, n * width).reshape({n, width});
    at += n * width;
    metrics::RegressionErrors whole, pieces;
    whole.add(predicted, truth);
    for (std::int64_t i = 0; i < n; ++i)
      pieces.add(narrow(predicted, 0, i, 1), narrow(truth, 0, i, 1));
    for (const metrics::RegressionErrors* e : {&whole, &pieces}) {
      CHECK(e->mae() == doctest::Approx(errors[k / 2 * 3]).epsilon(1e-9));
      CHECK(e->mse() == doctest::Approx(errors[k / 2 * 3 + 1]).epsilon(1e-9));
      CHECK(e->r2() == doctest::Approx(errors[k / 2 * 3 + 2]).epsilon(1e-7));
    }
  }
}
