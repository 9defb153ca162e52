// Large float32 products without tensor cores: which regions the engine claims, that its sources
// compile, and its results on a GPU (the emulated one in CI) against the reference engine.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "any_size.h"
#include "compiler.h"
#include "cuda/engines/products/simt_engine.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/nvrtc.h"
#include "device_check.h"

using namespace tenon;
using test::add_bias_and_tanh;
using test::AnySize;
using test::DeviceCheck;

namespace {

constexpr DType F = DType::Float32;

struct Case {
  std::int64_t m, n, k;
  bool trans_a = true, trans_b = false;
  const char* configuration = "";
  std::int64_t pad = 0;  // elements between the operands' lines, and before the first
};

DeviceCheck product(const Case& k) {
  DeviceCheck t;
  t.region.kind = RegionKind::Contraction;
  Contraction& c = t.region.contraction;
  c.a_shape = {k.m, k.k};
  c.b_shape = {k.k, k.n};
  c.out_shape = {k.m, k.n};
  const std::int64_t lines_a = k.trans_a ? k.k : k.m, lines_b = k.trans_b ? k.n : k.k;
  const std::int64_t pitch_a = (k.trans_a ? k.m : k.k) + k.pad,
                     pitch_b = (k.trans_b ? k.k : k.n) + k.pad;
  c.a.value = t.leaf(F, Shape{lines_a + 1, pitch_a});
  c.b.value = t.leaf(F, Shape{lines_b + 1, pitch_b});
  c.a.offset = c.b.offset = k.pad;
  c.a.stride[0] = k.trans_a ? 1 : pitch_a, c.a.stride[1] = k.trans_a ? pitch_a : 1;
  c.b.stride[0] = k.trans_b ? 1 : pitch_b, c.b.stride[1] = k.trans_b ? pitch_b : 1;
  c.out = t.output(F, c.out_shape);
  return t;
}

AnySize any_size(const cuda::Target& target, const char* configuration) {
  return {"simt", [=](const Region& region, std::span<const Value> values) {
            return cuda::prepare_simt(region, values, target, configuration);
          }};
}

std::string refusal(const DeviceCheck& t) {
  std::string why;
  return cuda::simt_engine({}).claims(t.region, t.values, &why) ? "" : why;
}

}  // namespace

TEST_CASE("simt claims large float32 products whose columns are not contiguous along k") {
  CHECK(refusal(product({1024, 4096, 1000})) == "");
  CHECK(refusal(product({2048, 784, 1023})) == "");
  CHECK(refusal(product({1000, 4096, 1027, false})) == "");
  CHECK(refusal(product({1024, 768, 4096, false})) == "leaves small products to other engines");
  CHECK(refusal(product({1024, 4096, 1024, true, true})) ==
        "takes a right matrix with contiguous rows only");
  CHECK(refusal(product({1024, 4095, 1024})) == "takes rows that are aligned to 16 bytes only");
  CHECK(refusal(product({1024, 4096, 1024, true, false, "", 2})) ==
        "takes rows that are aligned to 16 bytes only");
  CHECK(refusal(product({512, 512, 4096})) == "leaves small products to other engines");
  CHECK(refusal(product({26752, 2048, 64})) == "leaves small products to other engines");
  DeviceCheck t = product({1024, 4096, 1024});
  t.region.contraction.attrs.precision = Precision::Tf32;
  CHECK(refusal(t) == "computes in float32 only, not in tf32");
  t.region.contraction.attrs.precision = Precision::Bf16;
  CHECK(refusal(t) == "computes in float32 of float32 operands only");
}

TEST_CASE("simt's configurations fit classes of sizes") {
  const auto first = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return cuda::simt_configurations(GpuModel(), {m, n, k}).front();
  };
  CHECK(first(4096, 2048, 1024) == "128x128/1");
  CHECK(first(1024, 4096, 1024) == "128x128/1");
  CHECK(first(2048, 784, 1024) == "128x64/1");
  const DeviceCheck t = product({1024, 1024, 1024});
  CHECK_THROWS_AS(cuda::prepare_simt(t.region, t.values, {}, "128x128/0"), NotSupported);
}

TEST_CASE("simt's sources compile for the oldest and the newest GPU and do not contain sizes") {
  const auto text = [](const Case& k) {
    DeviceCheck t = product(k);
    add_bias_and_tanh(t);
    return cuda::prepare_simt(t.region, t.values, {}, k.configuration)->source();
  };
  CHECK(text({1024, 4096, 2048}) == text({1024, 4000, 2000}));
  CHECK(text({1024, 2048, 4096, false}) == text({608, 2048, 4096, false}));
  if (!cuda::nvrtc().problem.empty()) {
    MESSAGE("skipped: " << cuda::nvrtc().problem);
    return;
  }
  for (const char* configuration : {"128x128/1", "128x64/2"})
    for (const int arch : {80, 90}) {
      if (arch == 80 && test::compiler_is_emulated()) continue;
      const std::string kernel = text({512, 512, 512, true, false, configuration});
      const cuda::CompileResult result =
          cuda::nvrtc().compile(kernel, "simt.cu", cuda::headers_of(kernel), arch);
      CHECK_MESSAGE(!result.image.empty(), result.log);
    }
}

TEST_CASE("simt gives the reference's products") {
  if (!DeviceCheck::can_run()) return;
  const cuda::Target target = cuda::target_of(0);
  const Case cases[] = {{4, 4, 3},
                        {132, 264, 53},
                        {128, 128, 64, true, false, "128x128/1"},
                        {140, 268, 111, true, false, "128x128/2"},
                        {260, 132, 300, true, false, "128x128/4"},
                        {132, 68, 131, true, false, "128x64/1"},
                        {140, 60, 399, true, false, "128x64/3"},
                        {132, 140, 52, true, false, "128x128/1", 4},
                        {132, 140, 165, true, false, "128x64/2", 8},
                        {131, 140, 67, false, false, "128x128/1"},
                        {66, 132, 132, false, false, "128x64/2", 4}};
  for (const Case& k : cases) {
    CAPTURE(k.m);
    CAPTURE(k.n);
    CAPTURE(k.k);
    CAPTURE(k.configuration);
    const AnySize engine = any_size(target, k.configuration);
    DeviceCheck plain = product(k);
    plain.check_device(engine, 2e-5);
    DeviceCheck mapped = product(k);
    add_bias_and_tanh(mapped);
    mapped.check_device(engine, 2e-5);
  }
}

TEST_CASE("simt updates a weight in the epilogue of its gradient") {
  if (!DeviceCheck::can_run()) return;
  DeviceCheck t = product({132, 140, 130, true, false, "128x128/1"});
  t.region.contraction.out = kNoValue;
  t.region.contraction.has_epilogue = true;
  t.region.map.space = {1, 132, 140};
  const ValueId w = t.leaf(F, {1, 132, 140});
  t.overwritten(w);
  const int step = t.compute(Op::Mul, F, t.accumulator(), t.load(t.leaf(F, {1, 1, 1})));
  t.store_to(t.compute(Op::Sub, F, t.load(w), step), t.broadcast(w), w);
  t.check_device(any_size(cuda::target_of(0), "128x128/1"), 2e-5);
}
