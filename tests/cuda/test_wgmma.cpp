// Large products on Hopper: which regions the engine claims, that its sources compile, and, on a
// GPU with the instructions, its results against the reference engine. The latter are skipped on
// the emulated GPU.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "any_size.h"
#include "compiler.h"
#include "cuda/device/opening/driver.h"
#include "cuda/engines/products/wgmma_config.h"
#include "cuda/engines/products/wgmma_engine.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/nvrtc.h"
#include "device_check.h"

using namespace tenon;
using test::add_bias_and_tanh;
using test::AnySize;
using test::DeviceCheck;

namespace {

constexpr DType F = DType::Float32, BF = DType::BFloat16, H = DType::Float16;

struct Case {
  std::int64_t m, n, k;
  DType dtype = F, compute = BF;
  bool trans_a = false, trans_b = false;
  std::int64_t batch = 0;  // of A, with one B; 0: no batch axis
  const char* configuration = "";
  bool tf32 = false;
};

DeviceCheck product(const Case& k) {
  DeviceCheck t;
  t.region.kind = RegionKind::Contraction;
  Contraction& c = t.region.contraction;
  c.attrs.precision = test::precision_of(k.compute, k.tf32);
  const int r = k.batch > 0 ? 1 : 0;
  c.a_shape = r == 1 ? Shape{k.batch, k.m, k.k} : Shape{k.m, k.k};
  c.b_shape = r == 1 ? Shape{k.batch, k.k, k.n} : Shape{k.k, k.n};
  c.out_shape = r == 1 ? Shape{k.batch, k.m, k.n} : Shape{k.m, k.n};
  c.a.value = t.leaf(k.dtype, c.a_shape);
  c.b.value = t.leaf(k.dtype, Shape{k.k, k.n});
  if (r == 1) c.a.stride[0] = k.m * k.k;
  c.a.stride[r] = k.trans_a ? 1 : k.k, c.a.stride[r + 1] = k.trans_a ? k.m : 1;
  c.b.stride[r] = k.trans_b ? 1 : k.n, c.b.stride[r + 1] = k.trans_b ? k.k : 1;
  c.out = t.output(F, c.out_shape);
  return t;
}

AnySize any_size(const cuda::Target& target, const char* configuration) {
  return {"wgmma", [=](const Region& region, std::span<const Value> values) {
            return cuda::prepare_wgmma(region, values, target, configuration);
          }};
}

cuda::Target hopper() { return {}; }  // without a GPU: sources are printed, not run

std::string refusal(const Case& k, cuda::Target target = hopper()) {
  const DeviceCheck t = product(k);
  std::string why;
  return cuda::wgmma_engine(target).claims(t.region, t.values, &why) ? "" : why;
}

}  // namespace

TEST_CASE("wgmma claims large 16-bit products with one matrix on the right") {
  CHECK(refusal({1024, 4096, 2048}) == "");
  CHECK(refusal({1024, 4096, 2048, BF, F}) == "");
  CHECK(refusal({1024, 4096, 2048, F, H}) == "");
  CHECK(refusal({512, 2048, 1024, F, BF, false, false, 4}) == "");
  CHECK(refusal({1024, 4096, 2048, F, F}) ==
        "computes in 16-bit types and tf32 only, not in float32");
  CHECK(refusal({64, 4096, 2048}) ==
        "leaves small products to other engines");  // for its conversions
  CHECK(refusal({64, 4096, 2048, BF, F}) == "");
  CHECK(refusal({1024, 4096, 2048, F, F, false, true, 0, "", true}) == "");
  CHECK(refusal({1024, 4096, 2048, F, F, false, false, 0, "", true}) ==
        "needs both tf32 operands or none to be contiguous along the reduction");
  CHECK(refusal({2048, 4096, 1024, F, F, true, false, 0, "", true}) == "");
  CHECK(refusal({1024, 1024, 4096, F, F, true, false, 0, "", true}) ==
        "leaves small products to other engines");
  CHECK(refusal({1024, 4096, 64}) == "leaves small products to other engines");
  cuda::Target ampere;
  ampere.arch = 80;
  CHECK(refusal({1024, 4096, 2048}, ampere) == "needs a Hopper GPU (compute capability 9.0)");
}

TEST_CASE("wgmma splits inner sums where tiles are few, by classes of batch sizes") {
  const auto chosen = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return cuda::wgmma_config_name(cuda::choose_wgmma(GpuModel(), {m, n, k}));
  };
  CHECK(chosen(1024, 4096, 2048) == "128-2/1");
  CHECK(chosen(1024, 1024, 4096) == "128-1/2");
  CHECK(chosen(608, 1024, 4096) == "128-1/2");
  CHECK(chosen(64, 2048, 26752) == "64-1/4");
  CHECK(chosen(64, 26752, 2048) == "64-1/1");
  CHECK(chosen(16, 256, 8192) == "64-1/8");
  for (const cuda::WgmmaConfig& c : cuda::wgmma_configs(GpuModel(), {64, 2048, 26752}))
    CHECK(cuda::wgmma_config_named({64, 2048, 26752}, cuda::wgmma_config_name(c)) == c);
  CHECK_THROWS_AS(cuda::wgmma_config_named({64, 64, 128}, "64-1/8"), NotSupported);
}

TEST_CASE("wgmma estimates an incomplete batch like a full one") {
  const auto expected = [](std::int64_t batch) {
    const DeviceCheck t = product({4096, 2048, batch, BF, F, true, false});
    return cuda::wgmma_engine(hopper()).estimate(t.region, t.values);
  };
  CHECK(expected(1024) > 0);
  CHECK(expected(608) == expected(1024));
  CHECK(expected(2048) > expected(1024));
}

TEST_CASE("wgmma's sources compile and do not contain sizes") {
  const auto text = [](const Case& k) {
    DeviceCheck t = product(k);
    add_bias_and_tanh(t);
    return cuda::prepare_wgmma(t.region, t.values, hopper())->source();
  };
  CHECK(text({1024, 4096, 2048}) == text({1000, 4000, 2000}));
  if (!cuda::nvrtc().problem.empty()) {
    MESSAGE("skipped: " << cuda::nvrtc().problem);
    return;
  }
  if (test::compiler_is_emulated()) {
    MESSAGE("skipped: the emulated compiler knows no inline PTX");
    return;
  }
  const Case kinds[] = {{1024, 4095, 2048, BF, BF},
                        {1024, 4095, 2048, H, H, true, true},
                        {1024, 1024, 4096, BF, BF, true, true},
                        {64, 4096, 2048, BF, BF, false, true},
                        {1024, 4096, 2048, F, F, false, true, 0, "", true},
                        {1024, 4096, 1024, F, F, true, false, 0, "", true}};
  for (const Case& k : kinds) {
    const std::string kernel = text(k);
    const std::size_t start = kernel.find("#include \"cuda/kernels/gemm/gemm_wgmma.cuh\"");
    REQUIRE(start != std::string::npos);
    const std::string last = kernel.substr(start);
    const cuda::CompileResult result =
        cuda::nvrtc().compile(last, "wgmma.cu", cuda::headers_of(last), 90);
    CHECK_MESSAGE(!result.image.empty(), result.log);
  }
}

TEST_CASE("wgmma reduces its result in blocks of 64 rows") {
  if (!DeviceCheck::can_run()) return;
  const cuda::Target target = cuda::target_of(0);
  if (target.arch != 90 || !cuda::has_tensor_maps()) {
    MESSAGE("skipped: no Hopper GPU, or a driver without tensor maps");
    return;
  }
  const Case cases[] = {{64, 64, 64, BF, BF},
                        {192, 132, 72, BF, BF},
                        {6400, 256, 64, BF, BF, false, true},
                        {50176, 64, 256, BF, BF, false, true},
                        {12544, 512, 128, BF, BF, false, false},
                        {3136, 512, 2048, BF, BF, false, true},
                        {3136, 520, 1024, BF, BF, false, true, 0, "64-1/1"},
                        {6336, 256, 512, BF, BF, false, false, 0, "128-1/1"},
                        {192, 256, 512, BF, BF, false, false, 4, "128-2/1"}};
  for (const Case& k : cases) {
    CAPTURE(k.m);
    CAPTURE(k.n);
    CAPTURE(k.k);
    DeviceCheck t = product(k);
    const std::int64_t batch = std::max<std::int64_t>(k.batch, 1), rows = batch * k.m;
    t.region.contraction.has_epilogue = true;
    t.region.map.space = {batch, k.m, k.n};
    const int x = t.compute(Op::Cast, F, t.compute(Op::Cast, BF, t.accumulator(F)));
    const int other = t.load(t.leaf(F, {batch, k.m, k.n})), scale = t.load(t.leaf(F, {1, 1, k.n}));
    const int product = t.compute(Op::Mul, F, t.compute(Op::Mul, F, x, other), scale);
    for (const int r : {0, 1, 2}) {
      MapReduce reduce{r == 2 ? product : x, Op::Sum, 3, t.output(F, {rows / 64, k.n})};
      reduce.deviations = r == 1;
      reduce.rows = 64;
      t.region.map.reduces.push_back(reduce);
    }
    t.check_device(any_size(target, k.configuration), 1e-2);
  }
}

TEST_CASE("wgmma gives the reference's products") {
  if (!DeviceCheck::can_run()) return;
  const cuda::Target target = cuda::target_of(0);
  if (target.arch != 90 || !cuda::has_tensor_maps()) {
    MESSAGE("skipped: no Hopper GPU, or a driver without tensor maps");
    return;
  }
  const Case cases[] = {{1, 1, 1},
                        {130, 67, 33},
                        {257, 520, 200, BF},
                        {257, 520, 200, BF, F, true, true},
                        {264, 520, 200, BF, F, true, false},
                        {384, 131, 328, H, H, false, true},
                        {136, 264, 72, F, H, true, false},
                        {97, 140, 130, F, BF, false, true, 5},
                        {1544, 1800, 72, BF, BF, false, true},
                        {1544, 1800, 328, F, BF, true, false},
                        {64, 264, 1100, BF, BF, false, true},
                        {37, 1000, 2100, BF, BF, false, false},
                        {1, 4099, 520, BF, BF, false, true},
                        {64, 17000, 328, BF, BF, false, false},
                        {61, 17100, 72, BF, BF, true, true},
                        {128, 264, 1100, BF, BF, true, false},
                        {520, 392, 1160, BF, BF, false, true},
                        {97, 140, 1300, BF, BF, false, true, 5},
                        {520, 392, 1160, BF, BF, false, true, 0, "128-1/1"},
                        {520, 392, 1160, BF, BF, true, false, 0, "128-1/4"},
                        {520, 392, 1160, BF, BF, false, true, 0, "128-1/8"},
                        {520, 392, 1160, BF, BF, false, true, 0, "128-2/4"},
                        {520, 395, 1160, BF, F, false, true, 0, "128-2/2"},
                        {520, 392, 1160, BF, BF, false, false, 0, "64-2/3"},
                        {64, 392, 1160, BF, BF, false, false, 0, "64-1/6"},
                        {520, 392, 1160, BF, BF, false, false, 0, "64-1/2"},
                        {1544, 1800, 328, BF, BF, true, false, 0, "128-2/1"},
                        {1544, 1800, 640, BF, BF, true, false, 0, "128-1/1"},
                        {1544, 1800, 72, BF, BF, true, false, 0, "64-2/1"},
                        {1544, 1803, 72, BF, BF, false, true},
                        {257, 520, 200, F, F, false, true, 0, "", true},
                        {1544, 1800, 72, F, F, false, true, 0, "", true},
                        {61, 393, 1160, F, F, false, true, 0, "", true},
                        {1544, 1800, 328, F, F, true, false, 0, "", true},
                        {257, 397, 203, F, F, true, false, 0, "", true}};
  for (const Case& k : cases) {
    CAPTURE(k.m);
    CAPTURE(k.n);
    CAPTURE(k.k);
    CAPTURE(k.configuration);
    const AnySize engine = any_size(target, k.configuration);
    const double tolerance = k.tf32 || (k.dtype == F && k.compute == H) ? 2e-3 : 2e-5;
    DeviceCheck plain = product(k);
    plain.check_device(engine, tolerance);
    DeviceCheck fused = product(k);
    add_bias_and_tanh(fused);
    fused.check_device(engine, tolerance);
  }
}
