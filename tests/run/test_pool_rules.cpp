// A ReLU and a bias in front of max pooling: their gradients are computed before the pooling's
// gradient and have the same values. Ties, windows that overlap or extend past the edge, NaN.
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

/// Integers, so that maxima tie and sums are exact.
Tensor some(const Shape& shape, std::uint64_t seed, bool with_nan = false) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<float>(philox(seed, k, 3).v[0] % 9) - 4;
  if (with_nan) values[values.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  return Tensor::from(values, shape);
}

std::vector<Tensor> gradients(const Tensor& image, const Tensor& bias, const Pool2dOptions& pool) {
  const Tensor pooled = max_pool2d(relu(image + reshape(bias, {1, bias.size(0), 1, 1})), pool);
  const std::vector<Tensor> of{image, bias};
  return grad(sum(pooled * some(pooled.shape(), 3)), of);
}

std::vector<std::vector<float>> values_of(const Tensor& image, const Tensor& bias,
                                          const Pool2dOptions& pool, bool rule) {
  set_pass_enabled("before_pooling", rule);
  std::vector<std::vector<float>> values;
  const std::vector<Tensor> grads = gradients(image, bias, pool);
  eval(grads);
  for (const Tensor& g : grads) {
    const float* data = g.data_as<float>();
    values.emplace_back(data, data + g.numel());
  }
  set_pass_enabled("before_pooling", true);
  return values;
}

std::string steps_of(const Pool2dOptions& pool) {
  const std::vector<Tensor> grads = gradients(some({2, 3, 8, 8}, 1), some({3}, 2), pool);
  return plan(grads).graph();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("pooling: masks and sums are computed before the pooling's gradient") {
  const std::string graph = steps_of({});
  CHECK(count(graph, "where(") == 1);
  CHECK(graph.find("bool[2, 3, 4, 4]") != std::string::npos);
  CHECK(graph.find("bool[2, 3, 8, 8]") == std::string::npos);
  CHECK(count(graph, "max_pool2d(") == 1);  // shared with the forward pass
  // A dilated window can miss the image: the gradient that it drops must not be summed.
  const Pool2dOptions dilated{
      .kernel = {2, 2}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {9, 9}};
  CHECK(steps_of(dilated).find("sum(%") != std::string::npos);
}

TEST_CASE("pooling: gradients are the same bits with and without the rule") {
  const Pool2dOptions windows[] = {
      {},
      {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
      {.kernel = {3, 2}, .stride = {1, 2}},
      {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true},
      {.kernel = {2, 2}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {9, 9}},
  };
  for (const Pool2dOptions& pool : windows) {
    for (const Shape& shape : {Shape{2, 3, 8, 8}, Shape{1, 1, 9, 11}, Shape{3, 2, 8, 10}}) {
      const Tensor image = some(shape, 11), bias = some({shape[1]}, 12);
      const auto with = values_of(image, bias, pool, true),
                 without = values_of(image, bias, pool, false);
      CHECK(with == without);
    }
  }
  CHECK(values_of(some({0, 2, 4, 4}, 1), some({2}, 2), {}, true)[1] == std::vector<float>{0, 0});
}

TEST_CASE("pooling: a NaN affects only its window's gradient") {
  const Tensor image = some({1, 2, 6, 6}, 5, true), bias = some({2}, 6);
  const auto with = values_of(image, bias, {}, true), without = values_of(image, bias, {}, false);
  CHECK(with == without);
}
