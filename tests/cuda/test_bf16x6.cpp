// Float32 products of bfloat16 parts on Hopper: which regions the engine claims, how it splits
// numbers, that its sources compile, and, on a GPU with the instructions, its results against
// float64 and float32 multiply-adds. Products are skipped on the emulated GPU.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "any_size.h"
#include "compiler.h"
#include "cuda/device/opening/driver.h"
#include "cuda/engines/products/bf16x6_config.h"
#include "cuda/engines/products/bf16x6_engine.h"
#include "cuda/engines/products/conversions.h"
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
  bool trans_a = false, trans_b = false;
  const char* configuration = "";
  std::int64_t batch = 0;  // of A, with one B; 0: no batch axis
  std::int64_t pad = 0;    // elements between the operands' lines; four times as many before them
};

DeviceCheck product(const Case& k, bool random = true) {
  DeviceCheck t;
  t.region.kind = RegionKind::Contraction;
  Contraction& c = t.region.contraction;
  const int r = k.batch > 0 ? 1 : 0;
  c.a_shape = r == 1 ? Shape{k.batch, k.m, k.k} : Shape{k.m, k.k};
  c.b_shape = r == 1 ? Shape{k.batch, k.k, k.n} : Shape{k.k, k.n};
  c.out_shape = r == 1 ? Shape{k.batch, k.m, k.n} : Shape{k.m, k.n};
  const std::int64_t lines_a = (k.trans_a ? k.k : k.m) * std::max<std::int64_t>(k.batch, 1),
                     lines_b = k.trans_b ? k.n : k.k;
  const std::int64_t pitch_a = (k.trans_a ? k.m : k.k) + k.pad,
                     pitch_b = (k.trans_b ? k.k : k.n) + k.pad;
  const Shape a{lines_a + 4, pitch_a}, b{lines_b + 4, pitch_b};
  c.a.value = random ? t.leaf(F, a) : t.leaf_of(F, a, {});
  c.b.value = random ? t.leaf(F, b) : t.leaf_of(F, b, {});
  c.a.offset = c.b.offset = 4 * k.pad;
  if (r == 1) c.a.stride[0] = k.m * pitch_a;
  c.a.stride[r] = k.trans_a ? 1 : pitch_a, c.a.stride[r + 1] = k.trans_a ? pitch_a : 1;
  c.b.stride[r] = k.trans_b ? 1 : pitch_b, c.b.stride[r + 1] = k.trans_b ? pitch_b : 1;
  c.out = t.output(F, c.out_shape);
  return t;
}

AnySize any_size(const cuda::Target& target, const char* configuration) {
  return {"bf16x6", [=](const Region& region, std::span<const Value> values) {
            return cuda::prepare_bf16x6(region, values, target, configuration);
          }};
}

std::string refusal(const DeviceCheck& t, cuda::Target target = {}) {
  std::string why;
  return cuda::bf16x6_engine(target).claims(t.region, t.values, &why) ? "" : why;
}

bool can_multiply() {
  if (!DeviceCheck::can_run()) return false;
  if (cuda::target_of(0).arch == 90 && cuda::has_tensor_maps()) return true;
  MESSAGE("skipped: no Hopper GPU, or a driver without tensor maps");
  return false;
}

float number(const std::vector<std::byte>& bytes, std::int64_t i) {
  float x;
  std::memcpy(&x, bytes.data() + i * 4, 4);
  return x;
}

/// Of a result against float64's, by relative norm, and of float32 multiply-adds in order of k.
std::pair<double, double> errors(DeviceCheck& t, const std::vector<std::byte>& got) {
  const Contraction& c = t.region.contraction;
  const auto* a = reinterpret_cast<const float*>(t.initial(c.a.value)) + c.a.offset;
  const auto* b = reinterpret_cast<const float*>(t.initial(c.b.value)) + c.b.offset;
  double ours = 0, chained = 0, norm = 0;
  const std::int64_t m = c.a_shape[0], n = c.b_shape[1], k = c.a_shape[1];
  for (std::int64_t i = 0; i < m; i += 1 + m / 40)
    for (std::int64_t j = 0; j < n; j += 1 + n / 40) {
      double exact = 0;
      float chain = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const float x = a[i * c.a.stride[0] + l * c.a.stride[1]],
                    y = b[l * c.b.stride[0] + j * c.b.stride[1]];
        exact += static_cast<double>(x) * static_cast<double>(y);
        chain = std::fma(x, y, chain);
      }
      const auto square = [&](float x) {
        return (static_cast<double>(x) - exact) * (static_cast<double>(x) - exact);
      };
      ours += square(number(got, i * n + j)), chained += square(chain), norm += exact * exact;
    }
  return {std::sqrt(ours / norm), std::sqrt(chained / norm)};
}

void make_positive(DeviceCheck& t) {
  for (const ValueId id : {t.region.contraction.a.value, t.region.contraction.b.value}) {
    auto* x = reinterpret_cast<float*>(t.initial(id));
    const std::int64_t count = t.values[static_cast<std::size_t>(id)].shape.numel();
    for (std::int64_t i = 0; i < count; ++i) x[i] = std::fabs(x[i]);
  }
}

}  // namespace

TEST_CASE("bf16x6 claims large float32 products with one matrix on the right") {
  CHECK(refusal(product({1024, 4096, 1000})) == "");
  CHECK(refusal(product({768, 768, 16384, true})) == "");
  CHECK(refusal(product({1024, 4095, 1024, false, true})) == "");
  CHECK(refusal(product({512, 2048, 1024, false, false, "", 4})) == "");
  CHECK(refusal(product({1024, 4096, 1023})) == "takes rows that are aligned to 16 bytes only");
  CHECK(refusal(product({64, 4096, 2048})) == "leaves small products to other engines");
  CHECK(refusal(product({256, 256, 256})) == "leaves small products to other engines");
  DeviceCheck t = product({1024, 4096, 1024});
  t.region.contraction.attrs.precision = Precision::Tf32;
  CHECK(refusal(t) == "computes in float32 only, not in tf32");
  t.region.contraction.attrs.precision = Precision::Bf16;
  CHECK(refusal(t) == "computes in float32 of float32 operands only");
  cuda::Target ampere;
  ampere.arch = 80;
  CHECK(refusal(product({1024, 4096, 2048}), ampere) ==
        "needs a Hopper GPU (compute capability 9.0)");
  DeviceCheck large = product({8, 8, 8});
  Contraction& c = large.region.contraction;
  c.a_shape = {1024, 150000}, c.b_shape = {150000, 2048}, c.out_shape = {1024, 2048};
  c.a.stride[0] = 150000, c.b.stride[0] = 2048;
  CHECK(refusal(large) == "would need too large a workspace");
}

TEST_CASE("bf16x6 splits sums where tiles are few") {
  const auto first = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return cuda::wgmma_config_name(cuda::bf16x6_configs(GpuModel(), {m, n, k, 4}).front());
  };
  CHECK(first(16384, 768, 768) == "128-2/1");
  CHECK(first(768, 768, 16384) == "128-1/3");
  const cuda::WgmmaSizes sizes{768, 3072, 16384, 4};
  for (const cuda::WgmmaConfig& c : cuda::bf16x6_configs(GpuModel(), sizes))
    CHECK(cuda::bf16x6_config_named(sizes, cuda::wgmma_config_name(c)) == c);
  CHECK_THROWS_AS(cuda::bf16x6_config_named(sizes, "64-1/1"), NotSupported);
  CHECK_THROWS_AS(cuda::bf16x6_config_named({768, 768, 64, 4}, "128-1/3"), NotSupported);
}

TEST_CASE("bf16x6's sources compile and do not contain sizes") {
  const auto text = [](const Case& k) {
    DeviceCheck t = product(k);
    add_bias_and_tanh(t);
    return cuda::prepare_bf16x6(t.region, t.values, {}, k.configuration)->source();
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
  for (const Case& k : {Case{1024, 4095, 2048}, Case{512, 512, 4096, true, true, "128-2/2"}}) {
    const std::string kernel = text(k);
    const std::size_t start = kernel.find("#include \"cuda/kernels/gemm/gemm_wgmma.cuh\"");
    REQUIRE(start != std::string::npos);
    const std::string last = kernel.substr(start);
    const cuda::CompileResult result =
        cuda::nvrtc().compile(last, "bf16x6.cu", cuda::headers_of(last), 90);
    CHECK_MESSAGE(!result.image.empty(), result.log);
  }
}

TEST_CASE("bf16x6: three bfloat16 parts represent a float32 number") {
  if (!DeviceCheck::can_run()) return;
  constexpr float kInf = std::numeric_limits<float>::infinity(),
                  kMax = std::numeric_limits<float>::max();
  constexpr std::int64_t kColumns = 67, kRows = 31;
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < kColumns * kRows; ++i) {
    const float x = std::ldexp(1 + static_cast<float>(i * 7919 % 8388607) / 8388608,
                               static_cast<int>(i % 238) - 110);
    numbers.push_back(i % 3 == 0 ? -x : x);
  }
  numbers[1] = 0, numbers[2] = -0.0f, numbers[3] = kMax, numbers[4] = -kMax, numbers[5] = kInf,
  numbers[6] = -kInf, numbers[7] = std::nanf(""), numbers[8] = std::ldexp(1.0f, -149);
  cuda::MatrixRows rows;
  rows.outer = kRows, rows.inner = kColumns, rows.outer_stride = kColumns;
  const cuda::RowParts parts(cuda::target_of(0), rows);
  DeviceMemory& memory = cuda::memory();
  const std::size_t bytes = numbers.size() * 4;
  auto* in = static_cast<std::byte*>(memory.allocate(bytes, 0));
  auto* out = static_cast<std::byte*>(memory.allocate(parts.bytes(), 0));
  memory.from_host(in, reinterpret_cast<const std::byte*>(numbers.data()), bytes, 0);
  parts.run(cuda::stream(0), in, out);
  cuda::synchronize(0);
  std::vector<bfloat16> got(parts.bytes() / 2);
  memory.to_host(reinterpret_cast<std::byte*>(got.data()), out, parts.bytes(), 0);
  memory.release(in, bytes, 0);
  memory.release(out, parts.bytes(), 0);
  int wrong = 0;
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t i = 0; i < parts.result().outer_stride; ++i) {
      float part[3];
      for (int p = 0; p < 3; ++p)
        part[p] = static_cast<float>(got[static_cast<std::size_t>(
            p * parts.result().batch_stride + r * parts.result().outer_stride + i)]);
      const float x = i < kColumns ? numbers[static_cast<std::size_t>(r * kColumns + i)] : 0;
      const float sum = part[0] + (part[1] + part[2]);
      const bool is_right = std::isnan(x)           ? std::isnan(part[2]) && part[0] == 1
                            : std::isinf(x)         ? part[2] == x && std::fabs(part[0]) == 1
                            : std::fabs(x) < 1e-40f ? sum == 0
                                                    : sum == x;
      wrong += !is_right;
      if (std::fabs(x) >= 16384 && !std::isinf(x))
        wrong += part[0] * part[1] < 0 || part[0] * part[2] < 0;
    }
  CHECK(wrong == 0);
}

TEST_CASE("bf16x6 gives the reference's products") {
  if (!can_multiply()) return;
  const cuda::Target target = cuda::target_of(0);
  const Case cases[] = {{2, 1, 1, false, false, "", 0, 3},
                        {130, 67, 33, false, false, "", 0, 3},
                        {257, 520, 200, true, true, "", 0, 3},
                        {264, 520, 200, true, false},
                        {257, 521, 203, false, true, "", 0, 1},
                        {257, 521, 203, true, false, "", 0, 7},
                        {97, 140, 132, false, true, "", 5},
                        {1544, 1800, 72, true, false, "128-2/1"},
                        {1541, 1803, 73, false, true, "128-2/1", 0, 3},
                        {20, 400, 16700, true, false, "128-1/1"},
                        {520, 392, 1160, false, true, "128-1/8"},
                        {520, 395, 1160, true, false, "128-2/2"},
                        {520, 392, 1160, false, false, "128-1/3"}};
  for (const Case& k : cases) {
    CAPTURE(k.m);
    CAPTURE(k.n);
    CAPTURE(k.k);
    CAPTURE(k.configuration);
    DeviceCheck t = product(k);
    add_bias_and_tanh(t);
    // The reference adds in float32, whose own error over 16,700 terms is 2.2e-6; the next test
    // compares that size with float64.
    t.check_device(any_size(target, k.configuration), k.k > 4096 ? 4e-6 : 5e-7);
  }
}

TEST_CASE("bf16x6 is as accurate as float32 multiply-adds") {
  if (!can_multiply()) return;
  const cuda::Target target = cuda::target_of(0);
  const Case cases[] = {{256, 384, 64},
                        {256, 384, 256, false, true},
                        {256, 384, 768},
                        {256, 384, 3072, true, true},
                        {20, 400, 16700, true, false, "128-1/1"},
                        {256, 384, 16384, true, false, "128-1/1"},
                        {256, 384, 16384, true, false, "128-1/4"}};
  for (const Case& k : cases)
    for (const bool positive : {false, true}) {
      DeviceCheck t = product(k);
      if (positive) make_positive(t);
      const auto kernel = cuda::prepare_bf16x6(t.region, t.values, target, k.configuration);
      const auto [ours, chained] = errors(t, t.run_on_gpu(*kernel)[0]);
      MESSAGE("k " << std::to_string(k.k) + (positive ? ", positive" : "") << ": relative error "
                   << ours << ", of float32 multiply-adds " << chained);
      CHECK(ours <= (k.k > 4096 ? 5e-7 : 2e-7));
      CHECK(ours <= chained * 1.05);
    }
}

TEST_CASE("bf16x6 gives infinities and NaN where float32 does, and keeps float32's range") {
  if (!can_multiply()) return;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr std::int64_t kSide = 160;
  DeviceCheck t = product({kSide, kSide, kSide}, false);
  auto* a = reinterpret_cast<float*>(t.initial(t.region.contraction.a.value));
  auto* b = reinterpret_cast<float*>(t.initial(t.region.contraction.b.value));
  for (std::int64_t i = 0; i < kSide * kSide; ++i)
    a[i] = 0.5f + static_cast<float>(i % 7), b[i] = 1.0f + static_cast<float>(i % 5);
  const auto in_a = [&](std::int64_t i, std::int64_t k) -> float& { return a[i * kSide + k]; };
  const auto in_b = [&](std::int64_t k, std::int64_t j) -> float& { return b[k * kSide + j]; };
  in_a(3, 5) = kInf, in_a(4, 6) = -kInf, in_a(5, 7) = std::nanf(""), in_a(6, 8) = 3e38f;
  in_b(9, 20) = kInf, in_b(5, 21) = 0, in_b(5, 22) = -1.5f, in_b(5, 23) = -kInf,
          in_b(8, 24) = 3e38f, in_b(8, 25) = -3e38f, in_b(8, 26) = std::nanf("");
  in_a(10, 9) = 0, in_a(11, 9) = -2.25f, in_a(12, 9) = kInf, in_a(12, 8) = 0;
  for (std::int64_t k = 0; k < kSide; ++k)
    in_a(20, k) = 1.5e-30f, in_b(k, 30) = 1e30f + static_cast<float>(k) * 1e27f,
             in_a(21, k) = 3e-39f, in_a(22, k) = 1e-20f, in_b(k, 31) = 1.3e-20f;
  const auto got = t.run_on_gpu(*cuda::prepare_bf16x6(t.region, t.values, cuda::target_of(0)))[0];
  int wrong = 0;
  // Row 21 is near the end of bfloat16's range, where the small parts underflow.
  for (std::int64_t i = 0; i < kSide; ++i)
    for (std::int64_t j = 0; j < kSide; ++j) {
      float expected = 0;
      double exact = 0;
      for (std::int64_t k = 0; k < kSide; ++k) {
        expected = std::fma(in_a(i, k), in_b(k, j), expected);
        exact += static_cast<double>(in_a(i, k)) * static_cast<double>(in_b(k, j));
      }
      const float x = number(got, i * kSide + j);
      const bool is_right = std::isnan(expected) ? std::isnan(x)
                            : std::isinf(expected)
                                ? x == expected
                                : std::fabs(static_cast<double>(x) - exact) <=
                                      std::fabs(exact) * (i == 21 ? 2e-2 : 2e-6) + 1e-42;
      if (!is_right && ++wrong < 9)
        MESSAGE(i << ", " << j << ": " << x << " where float32 gives " << expected);
    }
  CHECK(wrong == 0);
}
