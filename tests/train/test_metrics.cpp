// Metrics against figures worked out by hand.
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
  CHECK(metrics::accuracy(scores, targets) == 0.25);  // of equals the first counts
  CHECK(metrics::top_k_accuracy(scores, targets, 2) == 0.5);
  CHECK(metrics::top_k_accuracy(scores, targets, 3) == 0.75);
  CHECK(metrics::top_k_accuracy(scores, targets, 7) == 0.75);  // as of 3: there are no more classes
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
  ConfusionMatrix many(100'000);  // as many pairs would not fit
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

TEST_CASE("metrics: a running mean weighs its values") {
  metrics::RunningMean mean;
  CHECK(std::isnan(mean.value()));
  mean.add(1, 3);
  mean.add(5);
  CHECK(mean.value() == 2);
  CHECK(mean.weight() == 4);
}
