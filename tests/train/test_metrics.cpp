// Metrics compared with values computed by hand.
#include <doctest/doctest.h>

#include <cmath>

#include <tenon/error.h>
#include <tenon/metrics.h>
#include <tenon/ops.h>

using namespace tenon;
using metrics::ConfusionMatrix;

TEST_CASE("metrics: accuracy and top-k, equal scores and NaN included") {
  const Tensor scores = Tensor::from<float>({0.1f, 0.7f, 0.2f,  //
                                             0.5f, 0.5f, 0.0f,  //
                                             0.2f, 0.3f, 0.5f,  //
                                             NAN, NAN, NAN},
                                            {4, 3});
  const Tensor targets = Tensor::from<std::int64_t>({1, 1, 0, 0}, {4});
  CHECK(metrics::accuracy(scores, targets) == 0.25);  // among equal scores the first class wins
  CHECK(metrics::top_k_accuracy(scores, targets, 2) == 0.5);
  CHECK(metrics::top_k_accuracy(scores, targets, 3) == 0.75);
  CHECK(metrics::top_k_accuracy(scores, targets, 7) ==
        0.75);  // like top 3: there are only three classes
  CHECK(metrics::predictions(Tensor::from<float>({1, 3, 3, 2, 0, 1}, {2, 3})) ==
        std::vector<std::int64_t>{1, 0});
  CHECK(metrics::predictions(Tensor::from<float>({NAN, 1, 1, NAN}, {2, 2})) ==
        std::vector<std::int64_t>{metrics::kNoClass, metrics::kNoClass});
  CHECK(std::isnan(metrics::accuracy(zeros({0, 2}), zeros({0}, DType::Int64))));
  CHECK(std::isnan(metrics::log_loss(zeros({0, 2}), zeros({0}, DType::Int64))));
  CHECK_THROWS_AS(metrics::accuracy(scores, Tensor::from<std::int64_t>({1}, {1})), ShapeError);
  CHECK_THROWS_AS(metrics::accuracy(scores, Tensor::from<std::int64_t>({1, 2, 3, 0}, {4})),
                  ValueError);
  CHECK_THROWS_AS(metrics::top_k_accuracy(scores, targets, 0), ValueError);
}

TEST_CASE("metrics: confusion matrix, precision, recall, F1") {
  ConfusionMatrix m(3);
  const std::vector<std::int64_t> targets{0, 0, 0, 1, 1, 2}, predicted{0, 0, 1, 1, 0, 1};
  m.add(targets, predicted);
  CHECK(m.total() == 6);
  CHECK(m.count(0, 1) == 1);
  CHECK(m.support(0) == 3);
  CHECK(m.accuracy() == doctest::Approx(0.5));
  CHECK(m.precision(0) == doctest::Approx(2.0 / 3));
  CHECK(m.recall(1) == doctest::Approx(0.5));
  CHECK(m.f1(1) == doctest::Approx(2 * (1.0 / 3) * 0.5 / (1.0 / 3 + 0.5)));
  CHECK(m.precision(2) == 0);
  CHECK(m.f1(2) == 0);
  CHECK(m.macro_recall() == doctest::Approx((2.0 / 3 + 0.5 + 0) / 3));
  CHECK(m.macro_f1() == doctest::Approx((m.f1(0) + m.f1(1) + m.f1(2)) / 3));
  CHECK(m.micro_f1() == doctest::Approx(0.5));
  CHECK(m.str().find('2') != std::string::npos);
  CHECK_THROWS_AS(m.add(3, 0), ValueError);
  CHECK_THROWS_AS(m.add(0, -2), ValueError);
  CHECK_THROWS_AS(m.count(0, 3), ValueError);
  for (const int wrong : {-1, 3}) {
    CHECK_THROWS_AS(m.support(wrong), ValueError);
    CHECK_THROWS_AS(m.predicted(wrong), ValueError);
    CHECK_THROWS_AS(m.precision(wrong), ValueError);
    CHECK_THROWS_AS(m.recall(wrong), ValueError);
  }
  const std::vector<ConfusionMatrix::Cell> cells = m.cells();
  CHECK(cells.size() == 5);
  CHECK((cells[0].target == 0 && cells[0].predicted == 0 && cells[0].count == 2));
  CHECK(m.predicted(1) == 3);
  ConfusionMatrix many(100'000);  // a full matrix would not fit in memory
  many.add(99'999, 7);
  CHECK(many.precision(7) == 0);
  CHECK(many.cells().size() == 1);
  CHECK(many.macro_f1() == 0);
  CHECK_THROWS_AS(ConfusionMatrix(0), ValueError);
  for (const double none :
       {ConfusionMatrix(2).accuracy(), ConfusionMatrix(2).macro_f1(), ConfusionMatrix(2).matthews(),
        ConfusionMatrix(2).balanced_accuracy(), ConfusionMatrix(2).weighted_f1()})
    CHECK(std::isnan(none));
  ConfusionMatrix undecided(2);
  undecided.add(0, 0);
  undecided.add(1, metrics::kNoClass);
  CHECK(undecided.accuracy() == 0.5);
  CHECK(undecided.undecided() == 1);
  CHECK(undecided.recall(1) == 0);
}

TEST_CASE("metrics: a running mean weights its values") {
  metrics::RunningMean mean;
  CHECK(std::isnan(mean.value()));
  mean.add(1, 3);
  mean.add(5);
  CHECK(mean.value() == 2);
  CHECK(mean.weight() == 4);
}

TEST_CASE("metrics: a NaN score predicts no class and makes score metrics NaN") {
  std::uint64_t state = 7;
  const auto draw = [&](std::uint64_t below) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::int64_t>((state >> 33) % below);
  };
  for (int round = 0; round < 200; ++round) {
    const std::int64_t classes = 2 + draw(4), count = 4 + draw(8);
    std::vector<float> scores;
    std::vector<std::int64_t> targets;
    for (std::int64_t n = 0; n < count; ++n) {
      targets.push_back(n < 2 ? n : draw(static_cast<std::uint64_t>(classes)));
      for (std::int64_t c = 0; c < classes; ++c)
        scores.push_back(static_cast<float>(draw(7)) - 3 + (draw(20) == 0 ? INFINITY : 0.0f));
    }
    const auto measure = [&](const std::vector<float>& values) {
      const Tensor s = Tensor::from<float>(values, {count, classes}),
                   t = Tensor::from<std::int64_t>(targets, {count});
      metrics::ClassMetrics all(static_cast<int>(classes));
      all.add(s, t);
      const bool none = std::isnan(metrics::roc_auc(s, t));
      CHECK(none == std::isnan(metrics::average_precision(s, t)));
      CHECK(none == std::isnan(metrics::log_loss(s, t)));
      CHECK(none == std::isnan(all.log_loss()));
      CHECK(none == std::isnan(all.roc_auc().value()));
      CHECK(none == std::isnan(all.average_precision().value()));
      CHECK(none == (all.confusion().undecided() > 0));
      CHECK(std::isfinite(metrics::accuracy(s, t)));
      CHECK(metrics::accuracy(s, t) == all.confusion().accuracy());
      return none;
    };
    CHECK_FALSE(measure(scores));
    // One NaN at any position.
    scores[static_cast<std::size_t>(draw(static_cast<std::uint64_t>(count * classes)))] = NAN;
    CHECK(measure(scores));
  }
  const Tensor target = Tensor::from<std::int64_t>({0, 1}, {2});
  CHECK(std::isnan(metrics::roc_auc(Tensor::from<float>({NAN, 1, 0, 2}, {2, 2}), target)));
  CHECK(std::isnan(metrics::roc_auc(Tensor::from<float>({NAN, 1}, {2}), target)));
  // Regression, too, even if all targets are equal.
  for (const float other : {1.0f, 2.0f}) {
    metrics::RegressionErrors errors;
    errors.add(Tensor::from<float>({NAN, 1}, {2}), Tensor::from<float>({1, other}, {2}));
    for (const double figure : {errors.mae(), errors.mse(), errors.rmse(), errors.r2()})
      CHECK(std::isnan(figure));
  }
}
