// The sources of contraction kernels: every tile compiles for the oldest and for the newest GPU;
// another batch size has the same source, and so has a configuration found by its name. Needs a
// compiler (NVRTC), no GPU.
#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <utility>

#include "compiler.h"
#include "cpu/region_check.h"
#include "cuda/engines/launch/tickets.h"
#include "cuda/engines/products/native_engine.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/nvrtc.h"

using namespace tenon;

namespace {

struct Conv {
  std::int64_t n, c, h, k, r, pad, stride;
};

test::RegionCheck product(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype,
                          DType compute, bool tf32) {
  test::RegionCheck t;
  t.region.kind = RegionKind::Contraction;
  Contraction& c = t.region.contraction;
  c.attrs.precision = test::precision_of(compute, tf32);
  c.a_shape = {m, k};
  c.b_shape = {k, n};
  c.out_shape = {m, n};
  c.a.value = t.leaf(dtype, c.a_shape);
  c.b.value = t.leaf(dtype, c.b_shape);
  c.a.stride[0] = k, c.a.stride[1] = 1;
  c.b.stride[0] = n, c.b.stride[1] = 1;
  c.out = t.output(DType::Float32, c.out_shape);
  return t;
}

test::RegionCheck convolution(const Conv& g, Op op) {
  const std::int64_t p = (g.h + 2 * g.pad - g.r) / g.stride + 1;
  const Shape x{g.n, g.c, g.h, g.h}, w{g.k, g.c, g.r, g.r}, y{g.n, g.k, p, p};
  test::RegionCheck t;
  t.region.kind = RegionKind::Contraction;
  Contraction& c = t.region.contraction;
  c.op = op;
  c.a_shape = op == Op::Conv2dInputGrad ? y : x;
  c.b_shape = op == Op::Conv2dWeightGrad ? y : w;
  c.out_shape = op == Op::Conv2d ? y : op == Op::Conv2dInputGrad ? x : w;
  c.attrs.conv = ConvAttrs{g.stride, g.stride, g.pad, g.pad, 1, 1, 1};
  for (auto [view, shape] : {std::pair{&c.a, c.a_shape}, std::pair{&c.b, c.b_shape}}) {
    view->value = t.leaf(DType::Float32, shape);
    std::int64_t stride = 1;
    for (int d = 3; d >= 0; --d) {
      view->stride[d] = stride;
      stride *= shape[d];
    }
  }
  c.out = t.output(DType::Float32, c.out_shape);
  return t;
}

std::string chosen(const test::RegionCheck& t) {
  return cuda::native_contraction_engine({}).prepare(t.region, t.values, 1)->source();
}

/// For the oldest and the newest GPU; the emulator's compiler knows no architectures.
void check_compiles(const std::string& text, const std::string& what) {
  for (const int arch : {80, 90}) {
    if (arch == 80 && test::compiler_is_emulated()) continue;
    const cuda::CompileResult result =
        cuda::nvrtc().compile(text, "contraction.cu", cuda::headers_of(text), arch);
    CHECK_MESSAGE(!result.image.empty(), what << ": " << result.log);
  }
}

bool have_compiler() {
  if (cuda::nvrtc().problem.empty()) return true;
  MESSAGE("skipped: " << cuda::nvrtc().problem);
  return false;
}

}  // namespace

TEST_CASE("contraction source: every tile compiles") {
  if (!have_compiler()) return;
  constexpr DType F = DType::Float32, BF = DType::BFloat16;
  for (const auto& [math, dtype, compute] : {std::tuple{cuda::GemmMath::Fp32, F, F},
                                             {cuda::GemmMath::Tf32, F, F},
                                             {cuda::GemmMath::Bf16, F, BF},
                                             {cuda::GemmMath::Bf16, BF, BF}}) {
    int turn = 0;
    for (const cuda::Tile& tile : cuda::gemm_tiles(math)) {
      const test::RegionCheck t = product(64, 64, 64, dtype, compute, math == cuda::GemmMath::Tf32);
      const int splits = turn++ % 2 + 1;
      const auto kernel = cuda::prepare_contraction(t.region, t.values, {}, tile, splits);
      check_compiles(kernel->source(), std::to_string(static_cast<int>(math)) + ": " +
                                           std::to_string(tile.m) + " x " + std::to_string(tile.n) +
                                           " x " + std::to_string(splits));
    }
  }
}

TEST_CASE("contraction source: convolutions compile") {
  if (!have_compiler()) return;
  for (const Op op : {Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad})
    for (const Conv& g :
         {Conv{64, 6, 14, 16, 5, 0, 1}, {64, 1, 28, 6, 5, 2, 1}, {2, 8, 13, 16, 3, 1, 2}})
      check_compiles(chosen(convolution(g, op)), "convolution " + std::to_string(g.stride));
}

TEST_CASE("contraction source: another batch size has the same source") {
  for (const Op op : {Op::Conv2d, Op::Conv2dInputGrad, Op::Conv2dWeightGrad})
    CHECK(chosen(convolution({64, 6, 14, 16, 5, 0, 1}, op)) ==
          chosen(convolution({57, 6, 14, 16, 5, 0, 1}, op)));
  CHECK(chosen(product(64, 120, 400, DType::Float32, DType::Float32, false)) ==
        chosen(product(37, 120, 400, DType::Float32, DType::Float32, false)));
}

TEST_CASE("contraction source: a configuration's name says whether splits are added in turn") {
  const test::RegionCheck large = convolution({128, 64, 64, 128, 9, 0, 1}, Op::Conv2dWeightGrad),
                          small = convolution({2, 64, 64, 128, 9, 0, 1}, Op::Conv2dWeightGrad);
  const Contraction& c = small.region.contraction;
  const cuda::ContractionForm form = cuda::contraction_form(small.region, small.values);
  const cuda::GemmConfig own = cuda::choose_config(
      {}, large.region.contraction, cuda::contraction_form(large.region, large.values));
  CHECK(own.serial);
  const std::string name = cuda::config_name(own);
  CHECK(cuda::config_named(c, form, name).serial);
  CHECK(cuda::config_name(cuda::config_named(c, form, name)) == name);
  const Engine& engine = cuda::native_contraction_engine({});
  CHECK(engine.prepare_as(name, small.region, small.values, 1)->source() == chosen(large));
  // Names in tables of versions that had only partial sums.
  CHECK(!cuda::config_named(c, form, name.substr(0, name.find(' '))).serial);
  CHECK_THROWS_AS(cuda::config_named(c, form, "64x64x16-128/1 in turn"), NotSupported);
  // A product for which the cost model chooses partial sums.
  const test::RegionCheck t = product(16, 64, 4096, DType::Float32, DType::Float32, false);
  CHECK(engine.prepare_as("64x64x16-128/4", t.region, t.values, 1)->workspace_bytes > 0);
  CHECK(engine.prepare_as("64x64x16-128/4 in turn", t.region, t.values, 1)->workspace_bytes == 0);
}

TEST_CASE("contraction source: splits of more tiles than there are counters are refused") {
  const test::RegionCheck t = product(4096, 4096, 64, DType::BFloat16, DType::BFloat16, false);
  const Engine& engine = cuda::native_contraction_engine({});
  CHECK_THROWS_AS(engine.prepare_as("16x16x128-256/2", t.region, t.values, 1), NotSupported);
  CHECK_THROWS_AS(
      cuda::prepare_contraction(t.region, t.values, {}, {16, 16, 128, 256, 3, 16, 16}, 2),
      InternalError);
  CHECK(engine.prepare_as("16x16x128-256/1", t.region, t.values, 1) != nullptr);
  CHECK_THROWS_AS(cuda::Tickets(4).take(5), InternalError);
  CHECK(cuda::Tickets(4).take(4) == 0);
}
