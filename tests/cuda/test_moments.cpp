// Sums of squared deviations from a mean, accumulated in the kernel that sums for the mean: against
// float64, whatever the mean is and however far the first number is from the others.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>

#include "../cpu/region_builders.h"
#include "cuda/engines/maps/map_engine.h"
#include "device_check.h"

using namespace tenon;
using test::DeviceCheck;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16;

const Engine& maps() {
  return cuda::map_engine(DeviceCheck::can_run() ? cuda::target_of(0) : cuda::Target());
}

/// A sum and deviations over `axes` of what is loaded in a dtype, beside a store of all of it.
DeviceCheck deviations_over(const Shape& space, std::uint32_t axes, DType dtype) {
  DeviceCheck t = test::map_over<DeviceCheck>(space, false);
  const int loaded = t.load(t.leaf(dtype, space));
  const DType wide = dtype == DType::Float64 ? dtype : F;
  const int x = dtype == wide ? loaded : t.compute(Op::Cast, F, loaded);
  t.reduce(x, Op::Sum, axes, wide);
  t.reduce(x, Op::Sum, axes, wide);
  t.region.map.reduces.back().deviations = true;
  return t;
}

/// Numbers about a mean of 1,000 and more, a hundredth apart; the first of each channel may lie far
/// from the others.
std::vector<float> far_from_zero(const Shape& shape, bool lonely_first) {
  std::vector<float> x(static_cast<std::size_t>(shape.numel()));
  const std::int64_t channels = shape[1], places = shape.numel() / shape[0] / channels;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) / places % channels;
    const double u = std::sin(12.9898 * static_cast<double>(i)) * 43758.5453;
    x[i] = static_cast<float>(1000 + static_cast<double>(channel) + .02 * (u - std::floor(u)));
    const bool is_first = static_cast<std::int64_t>(i) < channels * places &&
                          static_cast<std::int64_t>(i) % places == 0;
    if (lonely_first && is_first) x[i] = 1100;
  }
  return x;
}

/// Mean and variance of each channel in float64.
std::vector<double> exact_moments(const std::vector<float>& x, const Shape& shape) {
  const std::int64_t channels = shape[1], places = shape.numel() / shape[0] / channels;
  const double count = static_cast<double>(shape.numel()) / static_cast<double>(channels);
  std::vector<double> out(static_cast<std::size_t>(2 * channels));
  const auto each = [&](auto&& f) {
    for (std::size_t i = 0; i < x.size(); ++i)
      f(static_cast<std::size_t>(static_cast<std::int64_t>(i) / places % channels),
        static_cast<double>(x[i]));
  };
  const auto c = static_cast<std::size_t>(channels);
  each([&](std::size_t k, double v) { out[k] += v / count; });
  each([&](std::size_t k, double v) { out[c + k] += (v - out[k]) * (v - out[k]) / count; });
  return out;
}

}  // namespace

TEST_CASE("moments: deviations over any axes, beside the sum") {
  for (const Shape& space :
       {Shape{64, 16, 49}, Shape{3, 70, 600}, Shape{1, 1, 7}, Shape{2, 3, 9000}, Shape{900, 2, 40},
        Shape{130, 40, 64}, Shape{70, 9, 256}})
    for (const std::uint32_t axes : {1u, 2u, 3u, 4u, 5u, 6u, 7u})
      for (const DType dtype : {F, BF, DType::Float64}) {
        if (dtype == DType::Float64 && space[0] != 64) continue;
        CAPTURE(space.str());
        CAPTURE(axes);
        CAPTURE(std::string(name(dtype)));
        DeviceCheck t = deviations_over(space, axes, dtype);
        t.check_device(maps(), 1e-5);
      }
}

TEST_CASE("moments: large inputs: threads read eight channels at once, in many blocks") {
  for (const Shape& space : {Shape{20000, 64}, Shape{9000, 256}, Shape{70001, 16},
                             Shape{1500, 1024}, Shape{30000, 72}}) {
    CAPTURE(space.str());
    DeviceCheck t = deviations_over(space, 1, BF);
    t.check_device(maps(), 2e-5);
  }
}

TEST_CASE("moments: merged from means and deviations of parts") {
  for (const Shape& space : {Shape{3136, 64}, Shape{49, 1024}, Shape{784, 256}, Shape{13, 72}}) {
    CAPTURE(space.str());
    DeviceCheck t = test::map_over<DeviceCheck>(space, false);
    const int sum = t.load(t.leaf(F, space)), root = t.load(t.leaf(F, space));
    const int mean = t.compute(Op::Mul, F, sum, t.number(1.0 / 64));
    const int squares = t.compute(Op::Square, F, root);
    t.reduce(sum, Op::Sum, 1, F);
    t.reduce(mean, Op::Sum, 1, F);
    MapReduce& deviations = t.region.map.reduces.back();
    deviations.deviations = true;
    deviations.rows = 64, deviations.within = squares;
    t.check_device(maps(), 2e-5);
  }
}

TEST_CASE("moments: the same bits again, and without the sum beside them") {
  if (!DeviceCheck::can_run()) return;
  DeviceCheck t = deviations_over({20000, 64}, 1, BF);
  const auto kernel = maps().prepare(t.region, t.values, 1);
  const auto first = t.run_on_gpu(*kernel);
  CHECK(first == t.run_on_gpu(*kernel));
  t.region.map.reduces.erase(t.region.map.reduces.begin());
  const auto alone = t.run_on_gpu(*maps().prepare(t.region, t.values, 1));
  CHECK(alone.back() == first.back());
}

TEST_CASE("moments: a mean of 100,000 standard deviations costs no digits") {
  if (!DeviceCheck::can_run()) return;
  for (const Shape& shape : {Shape{16, 8, 12, 12}, Shape{300, 64}, Shape{40, 16, 3, 3}}) {
    CAPTURE(shape.str());
    for (const bool lonely_first : {false, true}) {
      CAPTURE(lonely_first);
      const std::vector<float> numbers = far_from_zero(shape, lonely_first);
      const Moments m = batch_moments(Tensor::from(numbers, shape).to(device("cuda")));
      const std::vector<double> exact = exact_moments(numbers, shape);
      const std::vector<float> mu = m.mean.to_vector<float>(), v = m.var.to_vector<float>();
      for (std::size_t c = 0; c < exact.size() / 2; ++c) {
        CHECK(mu[c] == doctest::Approx(exact[c]).epsilon(1e-6));
        CHECK(v[c] == doctest::Approx(exact[exact.size() / 2 + c]).epsilon(3e-5));
      }
    }
  }
}

TEST_CASE("moments: numbers whose squares overflow, with zero or infinite variance") {
  if (!DeviceCheck::can_run()) return;
  for (const std::int64_t count : {3, 40, 300, 5000}) {
    CAPTURE(count);
    const auto variance = [&](const Tensor& x) { return var(to(x, device("cuda")), {0}).item(); };
    const Tensor same = full({count}, 1e20);
    CHECK(variance(same.eval()) < 1e28);  // a rounding of the mean, squared
    CHECK(std::isinf(variance(where(eq(arange(0, count), 1), -1e20, same).eval())));
    CHECK(std::isnan(variance(where(eq(arange(0, count), 1), HUGE_VAL, same).eval())));
  }
  // Columns that a thread gathers, as distances from their first number.
  const Tensor one_large = where(eq(unsqueeze(arange(0, 17), 1), 5), 3e38, full({17, 16}, 0.5));
  const Tensor x = to(cast(one_large, BF).eval(), device("cuda")), spread = stddev(x, {0});
  std::vector<Tensor> both = {spread, grad(sum(spread), x)};
  eval(both);
  for (const float v : cast(spread, F).to_vector<float>()) CHECK(std::isinf(v));
}

TEST_CASE("moments: first and second gradients of normalised batches equal the CPU's") {
  if (!DeviceCheck::can_run()) return;
  const Shape shape{6, 8, 5, 5};
  std::vector<float> numbers(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i)) + 3);
  const auto results = [&](const char* where) {
    const Tensor x = Tensor::from(numbers, shape).to(device(where));
    const Moments m = batch_moments(x);
    const Tensor y = batch_norm(x, m.mean, m.var, {}, {}, 1e-5);
    const Tensor once = grad(sum(y * y * y), std::vector<Tensor>{x})[0];
    const Tensor twice = grad(sum(once * once), std::vector<Tensor>{x})[0];
    std::vector<std::vector<float>> out;
    for (const Tensor& t : {y, once, twice}) out.push_back(t.to_vector<float>());
    return out;
  };
  const auto gpu = results("cuda"), host = results("cpu");
  for (std::size_t k = 0; k < host.size(); ++k) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double a = static_cast<double>(gpu[k][i]), b = static_cast<double>(host[k][i]);
      error += (a - b) * (a - b);
      size += b * b;
    }
    CAPTURE(k);
    CHECK(std::sqrt(error / size) < 1e-4);
  }
}
