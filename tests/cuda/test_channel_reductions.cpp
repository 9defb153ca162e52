// Per-channel reductions of a convolution's epilogue on a GPU (the emulated one in CI), against the
// reference engine: moments beside the result and beside values computed from it, every tile that
// supports them, odd sizes, groups; and determinism.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../cpu/region_builders.h"
#include "cuda/engines/convolutions/conv_config.h"
#include "cuda/engines/convolutions/conv_engine.h"
#include "device_check.h"
#include "plan/regions/groups.h"

using namespace tenon;
using test::DeviceCheck;
using test::natural;
using Case = test::ContractionCase;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16;
constexpr std::uint32_t kAllButChannels = 5;

struct Conv {
  std::int64_t n, c, h, w, k, r;
  ConvAttrs v = {};
};

Case case_of(const Conv& g, bool tf32, bool gradient) {
  const std::int64_t p = (g.h + 2 * g.v.pad_h - g.r) / g.v.stride_h + 1,
                     q = (g.w + 2 * g.v.pad_w - g.r) / g.v.stride_w + 1;
  const Shape x{g.n, g.c, g.h, g.w}, w{g.k, g.c / g.v.groups, g.r, g.r}, y{g.n, g.k, p, q};
  Case c{gradient ? y : x, w, gradient ? x : y};
  c.op = gradient ? Op::Conv2dInputGrad : Op::Conv2d;
  c.tf32 = tf32;
  if (!tf32) c.compute = BF;
  return c;
}

/// Moments of the result; with `more`, of what it is rounded to, which is stored, and the sum and
/// the largest of its products with another image by a vector of channels.
DeviceCheck reduced(const Conv& g, const Case& c, bool more) {
  DeviceCheck t = test::contraction_of<DeviceCheck>(c, natural(c.a), natural(c.b), !more);
  t.region.contraction.attrs.conv = g.v;
  MapProgram& map = t.region.map;
  t.region.contraction.has_epilogue = true;
  map.space = epilogue_space(c.op, c.out, false);
  int x = t.accumulator(F);
  if (more) {
    const int rounded = t.compute(Op::Cast, BF, x);
    t.store(rounded);
    x = t.compute(Op::Cast, F, rounded);
  }
  t.reduce(x, Op::Sum, kAllButChannels, F);
  t.reduce(x, Op::Sum, kAllButChannels, F);
  map.reduces.back().deviations = true;
  if (!more) return t;
  const int image = t.load(t.leaf(F, map.space)), by = t.load(t.leaf(F, {1, map.space[1], 1}));
  const int product = t.compute(Op::Mul, F, x, t.compute(Op::Sub, F, image, by));
  t.reduce(product, Op::Sum, kAllButChannels, F);
  t.reduce(product, Op::Max, kAllButChannels, F);
  return t;
}

}  // namespace

TEST_CASE("cuda reduced channels: convolutions and gradients of their inputs") {
  if (!DeviceCheck::can_run()) return;
  const Engine& engine = cuda::conv_engine(cuda::target_of(0));
  const Conv convs[] = {{5, 16, 12, 12, 16, 3, {1, 1, 1, 1}},
                        {3, 8, 9, 7, 20, 3, {1, 1, 1, 1}},
                        {1, 6, 5, 5, 70, 5, {}},
                        {4, 32, 8, 8, 24, 3, {1, 1, 1, 1, 1, 1, 2}}};
  for (const Conv& g : convs)
    for (const bool gradient : {false, true})
      for (const bool more : {false, true}) {
        CAPTURE(g.k);
        CAPTURE(gradient);
        CAPTURE(more);
        const Case c = case_of(g, g.k == 20, gradient);
        DeviceCheck t = reduced(g, c, more);
        CHECK(engine.capabilities(t.region, t.values).no_reductions == nullptr);
        t.check_device(engine, 1e-2);
      }
}

TEST_CASE("cuda reduced channels: every configuration, and the kernel that tuning compares with") {
  if (!DeviceCheck::can_run()) return;
  const Engine& engine = cuda::conv_engine(cuda::target_of(0));
  const Conv g{6, 16, 16, 16, 32, 3, {1, 1, 1, 1}};
  const Case c = case_of(g, false, false);
  DeviceCheck t = reduced(g, c, true);
  std::vector<std::string> names = engine.configurations(t.region, t.values);
  REQUIRE(names.size() > 3);
  names.push_back(kReferenceConfiguration);
  const auto expected = t.run(cpu::reference_engine(), 1);
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto kernel = engine.prepare_as(name, t.region, t.values, 1);
    t.compare_all(expected, t.run_on_gpu(*kernel), 1e-2);
  }
}

TEST_CASE("cuda reduced channels: 16-bit images by rows, every configuration") {
  if (!DeviceCheck::can_run()) return;
  const Engine& engine = cuda::conv_engine(cuda::target_of(0));
  for (const Conv& g :
       {Conv{3, 16, 32, 32, 16, 3, {1, 1, 1, 1}}, Conv{5, 64, 8, 8, 64, 3, {1, 1, 1, 1}}})
    for (const bool gradient : {false, true}) {
      Case c = case_of(g, false, gradient);
      c.dtype_a = BF;
      DeviceCheck t = reduced(g, c, true);
      const auto expected = t.run(cpu::reference_engine(), 1);
      int ran = 0;
      for (const std::string& name : engine.configurations(t.region, t.values)) {
        if (name.find("rows") == std::string::npos) continue;
        CAPTURE(name);
        t.compare_all(expected, t.run_on_gpu(*engine.prepare_as(name, t.region, t.values, 1)),
                      1e-2);
        ++ran;
      }
      CHECK(ran >= 2);
    }
}

TEST_CASE("cuda reduced channels: what the conv engine does not claim") {
  const Engine& engine = cuda::conv_engine(cuda::Target());
  const Conv g{2, 16, 8, 8, 16, 3, {1, 1, 1, 1}};
  DeviceCheck whole = reduced(g, case_of(g, false, false), false);
  for (MapReduce& reduce : whole.region.map.reduces) reduce.axes = 3;
  CHECK(engine.capabilities(whole.region, whole.values).no_reductions != nullptr);
}
