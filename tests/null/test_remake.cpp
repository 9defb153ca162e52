// Values that are recomputed where they are read instead of kept from the forward pass: decisions
// and bytes on a GPU; and the host recomputes cheap values.
#include <doctest/doctest.h>

#include <algorithm>

#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "base/index.h"
#include "planning.h"

using namespace tenon;
using test::leaf;
using test::planned;

namespace {

// The number of values with this many elements that steps store for other steps.
int values_of(const Program& p, std::int64_t count) {
  int found = 0;
  for (const Value& v : p.values)
    found += v.kind == Value::Kind::Arena && v.shape.numel() == count ? 1 : 0;
  return found;
}

std::vector<Tensor> gradients(const Tensor& loss, const std::vector<Tensor>& of) {
  return grad(loss, of);
}

}  // namespace

TEST_CASE(
    "recompute: an activation's derivative is computed from its argument, not stored in parts") {
  const Tensor x = leaf({64, 96}), w = leaf({96, 512}), v = leaf({512, 96});
  const auto roots = [&] {
    return gradients(sum(square(matmul(gelu(matmul(x, w), true), v))), {w, v});
  };
  const auto gpu = planned(roots());
  // The argument, the activation and its gradient.
  CHECK(values_of(*gpu, 64 * 512) == 3);
  CHECK(values_of(*planned(roots(), {Device::Kind::Cpu}), 64 * 512) > 3);
}

TEST_CASE("recompute: layer norm's result is recomputed from its input and per-row numbers") {
  const Tensor x = leaf({48, 160}), w = leaf({160, 160}), g = leaf({160}), b = leaf({160});
  const Tensor stream = matmul(x, w);
  const Tensor y = layer_norm(stream, {160}, g, b);
  const auto roots = gradients(sum(square(matmul(y, w))) + sum(square(stream)), {w, g, b});
  const auto gpu = planned(roots);
  const auto host = planned(roots, {Device::Kind::Cpu});
  CHECK(values_of(*gpu, 48 * 160) <= 6);
  CHECK(values_of(*host, 48 * 160) <= 5);  // a lone reader may read two values for one
}

TEST_CASE("recompute: products with one matrix are one product, and so is their gradient") {
  const Tensor x = leaf({6, 32, 64}), w = leaf({64, 80});
  const auto gpu = planned(gradients(sum(square(matmul(x, w))), {w}));
  for (const Step& step : gpu->steps)
    if (step.region.kind == RegionKind::Contraction)
      CHECK(step.region.contraction.out_shape.rank() == 2);
  CHECK(values_of(*gpu, 6 * 64 * 80) == 0);
}

TEST_CASE("recompute: the host recomputes differences from a mean") {
  const Tensor x = leaf({64, 96}), w = leaf({96, 48});
  const auto kept = [&](const Tensor& y) {
    const Tensor centred = y - mean(y, {0}, true);
    const Tensor scale = rsqrt(mean(square(centred), {0}, true) + 1e-5);
    return values_of(*planned({relu(centred * scale)}, {Device::Kind::Cpu}), 64 * 48);
  };
  CHECK(kept(matmul(x, w)) == 1);
}

TEST_CASE("recompute: a GPU recomputes a mask from operands that a kernel reads anyway") {
  const Tensor x = leaf({640, 96}), w = leaf({96, 512}), v = leaf({512, 96}), g = leaf({512}),
               b = leaf({512});
  const Tensor wide = matmul(x, w), y = relu(wide * g + b);
  const auto gpu = planned(gradients(sum(square(matmul(y, v))), {w, v, g, b}));
  ValueId stored = kNoValue;  // the activation, which the second product reads
  for (const Step& step : gpu->steps)
    if (const Contraction& c = step.region.contraction;
        step.region.kind == RegionKind::Contraction && c.a_shape == Shape{640, 512} &&
        c.b_shape == Shape{512, 96})
      if (stored == kNoValue) stored = c.a.value;
  REQUIRE(stored != kNoValue);
  for (const Step& step : gpu->steps) {
    const Region& r = step.region;
    const bool multiplies = r.kind == RegionKind::Contraction &&
                            (r.contraction.a.value == stored || r.contraction.b.value == stored);
    if (!multiplies) CHECK(std::find(r.reads.begin(), r.reads.end(), stored) == r.reads.end());
  }
}

namespace {

/// Residual blocks whose input is added before the last ReLU, and those of their filters that get
/// gradients.
struct Blocks {
  Tensor loss;
  std::vector<Tensor> filters;
};
enum class Learns { All, First };

/// `window`: of each block's second filters.
Blocks residual_blocks(std::int64_t window, Learns learns) {
  Blocks net;
  constexpr std::int64_t kChannels = 32;
  const auto normalised = [&](const Tensor& image, std::int64_t size) {
    const Tensor w = leaf({kChannels, kChannels, size, size});
    if (net.filters.empty() || learns == Learns::All) net.filters.push_back(w);
    const Tensor y = conv2d(image, w, {}, {.padding = {size / 2, size / 2}});
    const Moments m = batch_moments(y);
    return batch_norm(y, m.mean, m.var, leaf({kChannels}), leaf({kChannels}), 1e-5);
  };
  Tensor x = relu(normalised(leaf({4, kChannels, 12, 12}), 3));
  for (int k = 0; k < 3; ++k) x = relu(x + normalised(relu(normalised(x, 3)), window));
  net.loss = sum(square(normalised(x, 3)));
  return net;
}

int masks(const Blocks& net, bool channels_last = false) {
  const auto p = planned(grad(net.loss, net.filters), {.convolves_channels_last = channels_last});
  INFO(print_steps(*p));
  return test::stored(*p, 4 * 32 * 12 * 12, DType::Bool);
}

}  // namespace

TEST_CASE("recompute: a GPU computes masks from activations that weight gradients read") {
  const PrecisionScope scope(Precision::Bf16);
  for (const bool channels_last : {false, true})
    for (const std::int64_t window : {1, 3})
      CHECK(masks(residual_blocks(window, Learns::All), channels_last) == 0);
}

TEST_CASE("recompute: a mask is stored if the activation would be kept only for it") {
  const PrecisionScope scope(Precision::Bf16);
  CHECK(masks(residual_blocks(3, Learns::First)) == 3);
}
