// Factors are taken out of sums: the gradients of normalisations sum dy once, and are what they
// were.
#include <doctest/doctest.h>

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

TEST_CASE("sums: batch norm's gradient takes dy and dy times x over all samples, nothing else") {
  CHECK(sums_in(gradients({4, 3, 5, 5})) == 4);  // with the mean and the variance
  set_pass_enabled("factors", false);
  CHECK(sums_in(gradients({4, 3, 5, 5})) > 4);
  set_pass_enabled("factors", true);
}

TEST_CASE(
    "sums: layer norm's gradient sums a row's dy and dy times x, which wait for no other sum") {
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
      CHECK(with[i][k] == doctest::Approx(without[i][k]).epsilon(1e-4).scale(10));
}

TEST_CASE("sums: gradients are the same with and without factors taken out") {
  for (const Shape& shape :
       {Shape{4, 3, 5, 5}, Shape{1, 2, 3, 7}, Shape{6, 1, 1, 1}, Shape{5, 4}}) {
    const auto with = values_of(shape, true), without = values_of(shape, false);
    for (std::size_t i = 0; i < with.size(); ++i) {
      for (std::size_t k = 0; k < with[i].size(); ++k)
        CHECK(with[i][k] == doctest::Approx(without[i][k]).epsilon(1e-4).scale(10));
    }
  }
}

TEST_CASE("sums: what changes along the axes of a sum stays in it") {
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
