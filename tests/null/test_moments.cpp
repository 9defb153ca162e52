// The moments of a batch on a GPU: one kernel computes both, whichever step computes their input.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// The number of sums of deviations, and of those that share a region with a plain sum.
struct Deviations {
  int all = 0, beside_sum = 0;
};
Deviations deviations(const Program& program) {
  Deviations out;
  const auto count = [&](const Region& region) {
    const auto& reduces = region.map.reduces;
    for (const MapReduce& reduce : reduces) {
      if (!reduce.deviations) continue;
      ++out.all;
      out.beside_sum += std::any_of(reduces.begin(), reduces.end(), [&](const MapReduce& other) {
        return !other.deviations && other.op == Op::Sum && other.source == reduce.source;
      });
    }
  };
  for (const Step& step : program.steps) {
    count(step.region);
    for (const Region& part : step.region.parts) count(part);
  }
  return out;
}

Tensor normalised(const Tensor& x) {
  const Moments m = batch_moments(x);
  return batch_norm(x, m.mean, m.var, {}, {}, 1e-5);
}

}  // namespace

TEST_CASE(
    "moments: one kernel on a GPU, of leaves, of convolutions and of what is cast to float32") {
  const Tensor images = leaf({4, 8, 12, 12}), w = leaf({24, 8, 3, 3});
  for (const Tensor& x :
       {images, conv2d(images, w), leaf({4, 8, 6, 6}, DType::BFloat16), leaf({30, 20})}) {
    CAPTURE(x.shape().str());
    const auto p = planned({normalised(x)});
    CAPTURE(print_fusion(*p));
    const Deviations found = deviations(*p);
    CHECK(found.all == 1);
    CHECK(found.beside_sum == 1);
  }
}

TEST_CASE("moments: with gradients too, and nothing is made for them that nobody else reads") {
  const Tensor x = leaf({4, 8, 12, 12});
  const Tensor y = normalised(x);
  const auto p = planned({grad(sum(y * y * y), std::vector<Tensor>{x})[0], sum(y)});
  CHECK(deviations(*p).beside_sum == 1);
  const auto moments = planned({batch_moments(x).var});
  CHECK(deviations(*moments).all == 1);
  for (const Value& value : moments->values)
    CHECK((value.kind == Value::Kind::Leaf || value.shape.numel() <= 8));
}

TEST_CASE("moments: two kernels on the CPU, without fusion, over rows, and for another mean") {
  const Tensor x = leaf({4, 8, 12, 12});
  CHECK(deviations(*planned({normalised(x)}, {.kind = Device::Kind::Cpu})).all == 0);
  CHECK(deviations(*planned({normalised(x)}, {.disabled = {kFuse}})).all == 0);
  CHECK(deviations(*planned({layer_norm(x, {12}, {}, {}, 1e-5)})).all == 0);
  const Tensor other = mean(leaf({4, 8, 12, 12}, DType::Float32) * 2.0, {0, 2, 3}, true);
  CHECK(deviations(*planned({sum(square(x - other), {0, 2, 3})})).all == 0);
  // Half of a mean is not a mean.
  const Tensor half = sum(x, {0, 2, 3}, true) / 1152.0;
  CHECK(deviations(*planned({sum(square(x - half), {0, 2, 3})})).all == 0);
  const Tensor own = mean(x, {0, 2, 3}, true);
  CHECK(deviations(*planned({sum(square(x - own), {0, 2, 3})})).all == 1);
}

TEST_CASE("moments: a normalisation's gradient on a GPU is one kernel of two sums and one more") {
  const Tensor images = leaf({8, 8, 12, 12}), v = leaf({24, 8, 3, 3}), w = leaf({24, 24, 3, 3});
  const Tensor x = conv2d(images, v, {}, {.stride = {1, 1}, .padding = {1, 1}});
  const Tensor y = conv2d(relu(normalised(x)), w, {}, {.stride = {1, 1}, .padding = {1, 1}});
  const auto p = planned({grad(sum(y * y), std::vector<Tensor>{v})[0]});
  const std::string text = print_fusion(*p);
  CAPTURE(text);
  int sums = 0, kernels = 0;
  const auto count = [&](const Region& region) {
    if (region.map.space.numel() < x.numel() || region.kind != RegionKind::Map) return;
    kernels += 1;
    for (const MapReduce& reduce : region.map.reduces) sums += reduce.deviations ? 0 : 1;
  };
  for (const Step& step : p->steps) {
    count(step.region);
    for (const Region& part : step.region.parts) count(part);
  }
  CHECK(sums == 3);     // of x, of the gradient and of its product with x
  CHECK(kernels <= 4);  // moments, what is normalised, sums and the gradient
  // The gradient of the activation function is all that the second convolution's gradient stores.
  for (const Step& step : p->steps)
    if (step.region.kind == RegionKind::Contraction) CHECK(step.region.writes.size() == 1);
}
