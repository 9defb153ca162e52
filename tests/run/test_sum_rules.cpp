// Factors move out of sums: the gradients of normalisations sum dy once and have the same values.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "base/philox.h"

using namespace tenon;

namespace {

Tensor some(const Shape& shape, std::uint64_t seed, float offset = 0) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<float>(philox(seed, k, 3).v[0] % 1000) / 500.0f - 1 + offset;
  return Tensor::from(values, shape);
}

std::vector<Tensor> gradients(const Shape& shape) {
  const std::int64_t channels = shape[1];
  const Tensor x = some(shape, 1, 3), weight = some({channels}, 2), bias = some({channels}, 3);
  const Moments m = batch_moments(x);
  const Tensor y = batch_norm(x, m.mean, m.var, weight, bias, 1e-5);
  const std::vector<Tensor> of{x, weight, bias};
  return grad(sum(y * some(shape, 4)), of);
}

std::vector<std::vector<float>> values_of(const Shape& shape, bool rule) {
  set_pass_enabled("factors", rule);
  std::vector<std::vector<float>> values;
  const std::vector<Tensor> grads = gradients(shape);
  eval(grads);
  values.reserve(grads.size());
  for (const Tensor& g : grads) values.push_back(g.to_vector<float>());
  set_pass_enabled("factors", true);
  return values;
}

std::size_t sums_in(const std::vector<Tensor>& wanted) {
  const std::string text = plan(wanted).graph();
  std::size_t n = 0;
  for (std::size_t at = text.find("= sum("); at != std::string::npos;
       at = text.find("= sum(", at + 1))
    ++n;
  return n;
}

}  // namespace

TEST_CASE("sums: batch norm's gradient sums only dy and dy times x over all samples") {
  CHECK(sums_in(gradients({4, 3, 5, 5})) == 4);  // with the mean and the variance
  set_pass_enabled("factors", false);
  CHECK(sums_in(gradients({4, 3, 5, 5})) > 4);
  set_pass_enabled("factors", true);
}

TEST_CASE("sums: layer norm's gradient sums dy and dy times x per row, independent of other sums") {
  const auto wanted = [] {
    const Tensor x = some({6, 8}, 1, 3), weight = some({8}, 2), bias = some({8}, 3);
    const std::vector<Tensor> of{x, weight, bias};
    return grad(sum(layer_norm(x, {8}, weight, bias) * some({6, 8}, 4)), of);
  };
  CHECK(sums_in(wanted()) == 6);  // with the mean, the variance and two over all rows
  const auto values = [&wanted](bool rule) {
    set_pass_enabled("factors", rule);
    std::vector<std::vector<float>> out;
    for (const Tensor& g : wanted()) out.push_back(g.to_vector<float>());
    set_pass_enabled("factors", true);
    return out;
  };
  const auto with = values(true), without = values(false);
  for (std::size_t i = 0; i < with.size(); ++i)
    for (std::size_t k = 0; k < with[i].size(); ++k)
      CHECK(with[i][k] == doctest::Approx(without[i][k]).epsilon(1e-5).scale(1));
}

TEST_CASE("sums: gradients are equal with and without moving factors") {
  for (const Shape& shape :
       {Shape{4, 3, 5, 5}, Shape{1, 2, 3, 7}, Shape{6, 1, 1, 1}, Shape{5, 4}}) {
    const auto with = values_of(shape, true), without = values_of(shape, false);
    for (std::size_t i = 0; i < with.size(); ++i) {
      for (std::size_t k = 0; k < with[i].size(); ++k)
        CHECK(with[i][k] == doctest::Approx(without[i][k]).epsilon(1e-4).scale(10));
    }
  }
}

TEST_CASE("sums: factors that change along the axes of a sum stay in it") {
  const Tensor x = some({4, 6}, 5), row = some({1, 6}, 6), column = some({4, 1}, 7);
  const std::vector<float> a = sum(x * column, {0}).to_vector<float>(),
                           b = sum(-(x * row), {0}).to_vector<float>();
  const std::vector<float> xs = x.to_vector<float>(), rows = row.to_vector<float>(),
                           columns = column.to_vector<float>();
  for (std::size_t j = 0; j < 6; ++j) {
    double want_a = 0, want_b = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      want_a += double{xs[i * 6 + j]} * columns[i];
      want_b -= double{xs[i * 6 + j]} * rows[j];
    }
    CHECK(a[j] == doctest::Approx(want_a).epsilon(1e-5));
    CHECK(b[j] == doctest::Approx(want_b).epsilon(1e-5));
  }
}

TEST_CASE("sums: an empty sum is 0, whatever its factor") {
  const Tensor w = some({3, 2}, 1), b = some({2}, 2), p = some({2, 1, 2}, 3);
  const auto gradient = [](const Tensor& loss, const Tensor& of) {
    return grad(loss, std::vector{of})[0].to_vector<float>();
  };
  CHECK(gradient(mse_loss(matmul(zeros({0, 3}), w) + b, zeros({0, 2})), b) ==
        std::vector<float>{0, 0});
  CHECK(gradient(sum(mean(matmul(zeros({2, 0, 3}), w) * p, {1})), p) ==
        std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("sums: factors are applied in the order in which they were written") {
  const auto summed = [](float x, float first, float second) {
    const Tensor row = full({1, 4}, x, DType::Float32).eval();
    return sum(row * full({1, 1}, first, DType::Float32).eval() *
                   full({1, 1}, second, DType::Float32).eval(),
               {-1})
        .item();
  };
  CHECK(summed(1e-30f, 1e38f, 1e-30f) == doctest::Approx(4e-22).epsilon(1e-5));
  CHECK(summed(1e30f, 1e-30f, 1e30f) == doctest::Approx(4e30).epsilon(1e-5));
}

TEST_CASE("sums: the sum of a centred tensor keeps NaN and rounding errors") {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Tensor row = Tensor::from({1.0f, kNaN, 2.0f, 5.0f}, {1, 4});
  CHECK(std::isnan(sum(row - mean(row, {-1}, true), {-1}).item()));

  // The corrected two-pass variance of Chan, Golub and LeVeque (1983).
  std::vector<float> values(4096);
  double exact_mean = 0, exact = 0;
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = 1e4f + static_cast<float>(k % 7) * 1e-3f, exact_mean += double{values[k]} / 4096;
  for (const float v : values) exact += (v - exact_mean) * (v - exact_mean) / 4096;
  const Tensor x = Tensor::from(values, {1, 4096}), d = x - mean(x, {-1}, true);
  const Tensor corrected = (sum(square(d), {-1}) - square(sum(d, {-1})) / 4096.0) / 4096.0;
  CHECK(corrected.item() == doctest::Approx(exact).epsilon(1e-3));
}
