// Steps of a network of bottlenecks in 16 bits on a card: sums over the columns of products, which
// on Hopper begin in their epilogues, against the CPU in float32.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "cuda/device/driver.h"
#include "device_check.h"

using namespace tenon;
using test::DeviceCheck;

namespace {

using Values = std::vector<std::vector<float>>;

/// Tensors of numbers that repeat.
class Numbers {
 public:
  Tensor operator()(const Shape& shape, double scale) {
    std::vector<float> all;
    ++seed_;
    for (std::int64_t k = 0; k < shape.numel(); ++k)
      all.push_back(static_cast<float>(
          scale * std::sin(static_cast<double>(k * (2 * seed_ + 1) % 997 + seed_))));
    return Tensor::from(all, shape);
  }

 private:
  std::int64_t seed_ = 0;
};

/// Gradients of three bottlenecks, with normalisation and smooth functions: no choice turns on a
/// rounding.
std::vector<Tensor> bottlenecks(std::int64_t images, std::int64_t side) {
  Numbers numbers;
  std::vector<Tensor> weights;
  const auto layer = [&](const Tensor& x, std::int64_t filters, std::int64_t taps) {
    const double terms = static_cast<double>(x.size(1) * taps * taps);
    weights.push_back(numbers({filters, x.size(1), taps, taps}, std::sqrt(2 / terms)));
    const Tensor y = conv2d(x, weights.back(), {}, {.padding = {taps / 2, taps / 2}});
    const Tensor scale = numbers({filters}, 0.2) + 1.0, bias = numbers({filters}, 0.1);
    weights.insert(weights.end(), {scale, bias});
    const Moments m = batch_moments(y);
    return batch_norm(y, m.mean, m.var, scale, bias, 1e-5);
  };
  Tensor x = tanh(layer(numbers({images, 8, side, side}, 1), 64, 3));
  for (int block = 0; block < 3; ++block) {
    const Tensor inner = tanh(layer(tanh(layer(x, 64, 1)), 64, 3));
    x = tanh(layer(inner, 256, 1) + (block == 0 ? layer(x, 256, 1) : x));
  }
  return grad(sum(mean(x, {2, 3}) * numbers({images, 256}, 8)), weights);
}

Values made_on(const char* device, Precision precision, std::int64_t images, std::int64_t side) {
  set_device(device);
  set_precision(precision);
  const std::vector<Tensor> all = bottlenecks(images, side);
  eval(all);
  Values values;
  values.reserve(all.size());
  for (const Tensor& t : all) values.push_back(t.to_vector<float>());
  set_precision(Precision::Fp32);
  set_device("cpu");
  return values;
}

double relative_distance(const std::vector<float>& got, const std::vector<float>& wanted) {
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    apart += std::pow(got[i] - wanted[i], 2);
    size += std::pow(wanted[i], 2);
  }
  return std::sqrt(apart / size);
}

}  // namespace

TEST_CASE("cuda product columns: gradients of bottlenecks are the CPU's") {
  if (!DeviceCheck::can_run()) return;
  const bool is_card = cuda::has_tensor_maps();
  // Rows in multiples of 64 and others.
  for (const std::int64_t side :
       is_card ? std::vector<std::int64_t>{28, 27} : std::vector<std::int64_t>{4}) {
    const std::int64_t images = is_card ? 24 : 2;
    CAPTURE(side);
    const Values wanted = made_on("cpu", Precision::Fp32, images, side),
                 got = made_on("cuda", Precision::Bf16, images, side);
    CHECK(made_on("cuda", Precision::Bf16, images, side) == got);
    REQUIRE(got.size() == wanted.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      CAPTURE(k);
      REQUIRE(got[k].size() == wanted[k].size());
      const double d = relative_distance(got[k], wanted[k]);
      CHECK(d <= 0.5);
    }
  }
}
