// Plans for the host with 16-bit activations between bfloat16 convolutions: which values are
// stored, and which channel sums are computed while a result is written.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr std::int64_t kImage = 4 * 16 * 12 * 12;

/// Counts of arena values as large as an activation: float32 ones, and all.
struct Stored {
  int wide = 0, all = 0;
};
Stored images(const Program& p) {
  Stored out;
  for (const Value& value : p.values) {
    if (value.kind != Value::Kind::Arena || value.shape.numel() != kImage) continue;
    ++out.all;
    out.wide += value.dtype == DType::Float32 ? 1 : 0;
  }
  return out;
}

std::size_t sums_in_products(const Program& p) {
  std::size_t count = 0;
  for (const Step& step : p.steps)
    if (step.region.kind == RegionKind::Contraction) count += step.region.map.reduces.size();
  return count;
}

/// Convolutions of 16 to 16 channels, each normalised by its batch's moments or by known moments.
Tensor network(int convolutions, bool knows_moments, std::vector<Tensor>* filters = nullptr) {
  Tensor y = leaf({4, 16, 12, 12});
  for (int k = 0; k < convolutions; ++k) {
    const Tensor w = leaf({16, 16, 3, 3});
    if (filters != nullptr) filters->push_back(w);
    y = conv2d(y, w, {}, {.padding = {1, 1}});
    const Moments m = knows_moments ? Moments{leaf({16}), leaf({16})} : batch_moments(y);
    y = relu(batch_norm(y, m.mean, m.var, {}, {}, 1e-5));
  }
  return y;
}

std::shared_ptr<const Program> on_host(const std::vector<Tensor>& roots, PassSet disabled = {}) {
  return planned(roots, {.kind = Device::Kind::Cpu, .disabled = disabled});
}

}  // namespace

TEST_CASE("activation precision: moments are summed while a convolution's result is written") {
  const PrecisionScope scope(Precision::Bf16);
  const auto p = on_host({sum(network(3, false))});
  INFO(print_steps(*p));
  CHECK(sums_in_products(*p) == 6);
  CHECK(images(*p).all > 0);
  CHECK(images(*p).wide == 0);
  CHECK(sums_in_products(*on_host({sum(network(3, false))}, PassSet{kReductions})) == 0);
}

TEST_CASE("activation precision: with gradients, whose sums are made so too") {
  const PrecisionScope scope(Precision::Bf16);
  std::vector<Tensor> filters;
  const Tensor loss = sum(network(3, false, &filters));
  std::vector<Tensor> roots = grad(loss, filters);
  roots.push_back(loss);
  const auto p = on_host(roots);
  INFO(print_steps(*p));
  CHECK(sums_in_products(*p) >= 10);
  CHECK(images(*p).wide == 0);
}

TEST_CASE("activation precision: with known moments a result passes directly to its only reader") {
  const PrecisionScope scope(Precision::Bf16);
  const auto p = on_host({sum(network(3, true))});
  INFO(print_steps(*p));
  CHECK(images(*p).wide == 1);  // the last, which is only summed
  for (const Step& step : p->steps)
    if (step.region.kind == RegionKind::Contraction) CHECK(step.region.writes.size() == 1);
}

TEST_CASE("activation precision: not of float32, nor of few convolutions or without rounding") {
  CHECK(images(*on_host({sum(network(3, false))})).wide > 0);
  CHECK(sums_in_products(*on_host({sum(network(3, false))})) == 0);
  const PrecisionScope scope(Precision::Bf16);
  CHECK(sums_in_products(*on_host({sum(network(2, false))})) == 0);
  CHECK(sums_in_products(*on_host({sum(network(3, false))}, PassSet{kAutocast})) == 0);
}

TEST_CASE("activation precision: on a GPU data movement of activations moves 16 bits") {
  const PrecisionScope scope(Precision::Bf16);
  std::vector<Tensor> filters;
  const Tensor x = network(3, false, &filters);
  // A shortcut that takes every second pixel and pads channels, beside a strided convolution.
  const Tensor half = slice(slice(x, 2, 0, 12, 2), 3, 0, 12, 2);
  const Tensor w = leaf({32, 16, 3, 3});
  filters.push_back(w);
  Tensor y = conv2d(x, w, {}, {.stride = {2, 2}, .padding = {1, 1}});
  const Moments m = batch_moments(y);
  y = relu(batch_norm(y, m.mean, m.var, {}, {}, 1e-5) + pad(half, {0, 0, 0, 0, 8, 8}));
  filters.push_back(leaf({32, 32, 3, 3}));
  y = y + conv2d(y, filters.back(), {}, {.padding = {1, 1}});
  const auto p = planned(grad(sum(square(y)), filters));
  INFO(print_steps(*p));
  int wide = 0, rounded = 0;
  for (const Step& step : p->steps)
    if (contains(step.region.title, "pad"))
      for (const ValueId id : step.region.writes)
        ++(p->values[static_cast<std::size_t>(id)].dtype == DType::Float32 ? wide : rounded);
  CHECK(wide == 1);     // a filter
  CHECK(rounded == 3);  // channels of the shortcut, rows and columns of its gradient
  CHECK(images(*p).wide == 0);
}
