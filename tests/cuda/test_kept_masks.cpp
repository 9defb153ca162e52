// ReLU masks on a GPU, real or emulated: recomputed from the feature map, which the next weight
// gradient reads, or stored; the gradients have the same bits.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "gpu.h"
#include "made_on.h"

using namespace tenon;
using test::made_on;
using test::Values;

namespace {

Tensor numbers(const Shape& shape, double scale) {
  const Tensor k = arange(0, shape.numel());
  const Tensor x = cast(remainder(k * k * 31 + k * 7919, 1009), DType::Float32) / 504 - 1;
  return (x * scale).reshape(Ints(shape.begin(), shape.end())).eval();
}

/// Gradients of a network of three blocks whose input is added before the last rectifier; where
/// masks are stored, they are asked for. All sums are a convolution's: what asks for masks changes
/// no other's order.
std::vector<Tensor> gradients(std::int64_t window, bool stores_masks) {
  constexpr std::int64_t kChannels = 16;
  std::vector<Tensor> filters, masks;
  const auto convolved = [&](const Tensor& image, std::int64_t size) {
    filters.push_back(numbers({kChannels, kChannels, size, size}, 0.1));
    return conv2d(image, filters.back(), {}, {.padding = {size / 2, size / 2}});
  };
  Tensor x = relu(convolved(numbers({2, kChannels, 9, 12}, 1), 3));
  for (int k = 0; k < 3; ++k) {
    x = relu(x + convolved(relu(convolved(x, 3)), window));
    if (stores_masks) masks.push_back(le(x, 0));
  }
  const Tensor out = convolved(x, 3), loss = sum(out * numbers(out.shape(), 1));
  std::vector<Tensor> all = grad(loss, filters);
  const std::size_t count = all.size();
  all.insert(all.end(), masks.begin(), masks.end());
  eval(all);
  all.resize(count);
  return all;
}

}  // namespace

TEST_CASE("kept masks: gradients have the same bits as with stored masks") {
  if (!test::has_gpu()) return;
  for (const Precision precision : {Precision::Bf16, Precision::Fp16})
    for (const std::int64_t window : {1, 3}) {
      CAPTURE(window);
      const auto by = [&](bool stores_masks) {
        return made_on("cuda", precision, [&] { return gradients(window, stores_masks); });
      };
      const Values made_again = by(false);
      CHECK(made_again == by(true));
      test::check_near(made_again,
                       made_on("cpu", Precision::Fp32, [&] { return gradients(window, false); }),
                       precision == Precision::Bf16 ? 0.2 : 0.05);
    }
}
