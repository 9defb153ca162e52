// Steps of a bottleneck network in 16 bits on a GPU: sums over the columns of products, which start
// in the products' epilogues on Hopper, against the CPU in float32 and against separate kernels.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "cuda/device/driver.h"
#include "device_check.h"
#include "made_on.h"

using namespace tenon;
using test::check_near;
using test::DeviceCheck;
using test::made_on;
using test::Values;

namespace {

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

/// Moments, sums and sums of squares of images of whole numbers that 16 bits hold, products of
/// convolutions by 1x1; those by 3x3 before them leave images as they are.
std::vector<Tensor> known_columns(std::int64_t images, std::int64_t side) {
  constexpr std::int64_t kChannels = 64, kColumns = 256;
  const auto whole = [](const Shape& shape, std::int64_t step, std::int64_t most) {
    std::vector<float> all;
    for (std::int64_t k = 0; k < shape.numel(); ++k)
      all.push_back(static_cast<float>(k * step % 997 % (2 * most + 1) - most));
    return Tensor::from(all, shape);
  };
  std::vector<float> same(kChannels * kChannels * 9);
  for (std::size_t c = 0; c < kChannels; ++c) same[(c * kChannels + c) * 9 + 4] = 1;
  Tensor x = whole({images, kChannels, side, side}, 101, 2);
  for (int k = 0; k < 3; ++k)
    x = conv2d(k > 0 ? relu(x) : x, Tensor::from(same, {kChannels, kChannels, 3, 3}), {},
               {.padding = {1, 1}});
  const auto columns = [&](std::int64_t step) {
    return conv2d(x, whole({kColumns, kChannels, 1, 1}, step, 1));
  };
  const Tensor y = columns(37), z = columns(53);
  const Moments m = batch_moments(y);
  const Tensor sums = sum(z, {0, 2, 3}, true), squares = sum(square(z), {0, 2, 3}, true);
  return {m.mean, m.var, batch_norm(y, m.mean, m.var, {}, {}, 1e-5), sums, squares, z * sums};
}

using Step = std::vector<Tensor> (*)(std::int64_t images, std::int64_t side);

/// Calls with the step and what the CPU makes of it in float32: of images whose rows are multiples
/// of 64 and of others, of small ones where the GPU is emulated.
template <class Check>
void at_sizes(Step step, Check&& check) {
  const bool is_gpu = cuda::has_tensor_maps();
  for (const std::int64_t side :
       is_gpu ? std::vector<std::int64_t>{28, 27} : std::vector<std::int64_t>{4}) {
    CAPTURE(side);
    const auto make = [&] { return step(is_gpu ? 24 : 2, side); };
    check(make, made_on("cpu", Precision::Fp32, make));
  }
}

}  // namespace

TEST_CASE("cuda product columns: gradients of bottlenecks equal the CPU's") {
  if (!DeviceCheck::can_run()) return;
  at_sizes(bottlenecks, [](const auto& make, const Values& wanted) {
    const Values got = made_on("cuda", Precision::Bf16, make);
    CHECK(made_on("cuda", Precision::Bf16, make) == got);
    set_pass_enabled("reductions", false);
    const Values apart = made_on("cuda", Precision::Bf16, make);
    set_pass_enabled("reductions", true);
    check_near(got, wanted, 0.5);
    // Sums in another order: roundings to 16 bits of what follows differ now and then.
    check_near(got, apart, 0.1);
  });
}

TEST_CASE("cuda product columns: sums of integers are exact") {
  if (!DeviceCheck::can_run()) return;
  at_sizes(known_columns, [](const auto& make, const Values& wanted) {
    const Values got = made_on("cuda", Precision::Bf16, make);
    REQUIRE(got.size() == wanted.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      CAPTURE(k);
      // Sums that lack a row are farther from what is wanted; images may be rounded.
      const bool is_image = got[k].size() > 256;
      CHECK(test::distance(got[k], wanted[k]) <= (is_image ? 1e-2 : 1e-5));
    }
  });
}
