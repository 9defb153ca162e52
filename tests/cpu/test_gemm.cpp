// Matrix products of the CPU kernels against float64 loops: odd sizes, every stride, types, every
// instruction set that this machine has, the epilogue's rectangles, and the same bits for every
// number of threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "cpu/kernels/contract.h"
#include "kernel_check.h"

using namespace tenon;
using namespace tenon::cpu;

namespace {

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 2.0f * uniform01(philox(seed, i, 7).v[0]) - 1.0f;
  return values;
}

// A matrix in memory with any strides and type. `exact` has the values after the rounding to the
// type, which the kernel reads.
struct Matrix {
  Operand operand;
  std::vector<float> f32;
  std::vector<std::uint16_t> f16;
  std::vector<double> exact;  // [batch, rows, cols]

  Matrix(std::int64_t batch, std::int64_t rows, std::int64_t cols, int layout, DType dtype,
         Math math, std::uint64_t seed) {
    const std::int64_t pad = 4;
    std::int64_t rs = cols + pad, cs = 1;
    if (layout == 1) {
      rs = 1;
      cs = rows + pad;
    } else if (layout == 2) {
      rs = 2 * (cols + pad);
      cs = 2;
    }
    const std::int64_t extent = std::max((rows - 1) * rs + (cols - 1) * cs + 1, std::int64_t{1});
    f32 = random_floats(extent * batch, seed);
    f16.resize(f32.size());
    for (std::size_t i = 0; i < f32.size(); ++i) {
      if (dtype == DType::BFloat16) {
        f16[i] = bfloat16(f32[i]).bits;
        f32[i] = static_cast<float>(bfloat16(f32[i]));
      } else if (dtype == DType::Float16) {
        f16[i] = float16(f32[i]).bits;
        f32[i] = static_cast<float>(float16(f32[i]));
      }
    }
    operand = {f32.data(), dtype, rs, cs, extent, nullptr};
    if (dtype != DType::Float32) operand.data = f16.data();
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) {
          const float value = f32[static_cast<std::size_t>(b * extent + i * rs + j * cs)];
          exact.push_back(math == Math::Bf16 ? static_cast<float>(bfloat16(value)) : value);
        }
      }
    }
  }
};

std::vector<double> naive(const GemmShape& s, const std::vector<double>& a,
                          const std::vector<double>& b) {
  std::vector<double> c(static_cast<std::size_t>(s.batch * s.m * s.n));
  for (std::int64_t t = 0; t < s.batch; ++t) {
    for (std::int64_t i = 0; i < s.m; ++i) {
      double* row = c.data() + (t * s.m + i) * s.n;
      for (std::int64_t k = 0; k < s.k; ++k) {
        const double x = a[static_cast<std::size_t>((t * s.m + i) * s.k + k)];
        for (std::int64_t j = 0; j < s.n; ++j)
          row[j] += x * b[static_cast<std::size_t>((t * s.k + k) * s.n + j)];
      }
    }
  }
  return c;
}

double relative_error(const float* c, std::int64_t ldc, const GemmShape& s,
                      const std::vector<double>& want) {
  double error = 0, norm = 1e-30;
  for (std::int64_t i = 0; i < s.batch * s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      const double w = want[static_cast<std::size_t>(i * s.n + j)];
      const double d = static_cast<double>(c[i * ldc + j]) - w;
      error += d * d;
      norm += w * w;
    }
  }
  return std::sqrt(error / norm);
}

// Copies the rectangles it gets, and counts how often each element was seen.
struct Collector {
  GemmShape shape;
  std::vector<float> values;
  std::vector<std::atomic<int>> seen;
  explicit Collector(const GemmShape& s)
      : shape(s),
        values(static_cast<std::size_t>(s.batch * s.m * s.n),
               std::numeric_limits<float>::quiet_NaN()),
        seen(static_cast<std::size_t>(s.batch * s.m * s.n)) {}
  static void call(void* ctx, const ResultBlock& block) {
    Collector& self = *static_cast<Collector*>(ctx);
    const auto [batch, row0, row1, col0, col1] = block.place;
    if (block.worker < 0 || block.worker >= num_threads()) return;
    for (std::int64_t i = row0; i < row1; ++i) {
      for (std::int64_t j = col0; j < col1; ++j) {
        const auto at = static_cast<std::size_t>((batch * self.shape.m + i) * self.shape.n + j);
        float& element = block.data[(i - row0) * block.ld + j - col0];
        self.values[at] = element;
        self.seen[at]++;
        element = 2 * self.values[at];
      }
    }
  }
  bool each_once() const {
    return std::all_of(seen.begin(), seen.end(),
                       [](const std::atomic<int>& count) { return count == 1; });
  }
};

std::vector<float> run(const GemmShape& s, const Operand& a, const Operand& b, Math math,
                       std::int64_t ldc) {
  Memory workspace(gemm_workspace(s, math, num_threads(), false));
  std::vector<float> c(static_cast<std::size_t>(s.batch * s.m * ldc),
                       std::numeric_limits<float>::quiet_NaN());
  gemm({.shape = s,
        .a = a,
        .b = b,
        .c = c.data(),
        .ldc = ldc,
        .c_batch_stride = s.m * ldc,
        .math = math,
        .workspace = workspace.data});
  return c;
}

constexpr double kTolerance = 2e-6;

void check_short_operands(const GemmShape& s) {
  for (const Level level : levels()) {
    const Limit limit(level);
    for (const DType left : {DType::Float32, DType::BFloat16, DType::Float16}) {
      for (const DType right : {DType::Float32, DType::BFloat16, DType::Float16}) {
        for (const Math math : {Math::F32, Math::Bf16}) {
          for (int layouts = 0; layouts < 9; ++layouts) {
            const Matrix a(1, s.m, s.k, layouts % 3, left, math, 3),
                b(1, s.k, s.n, layouts / 3, right, math, 4);
            const std::vector<float> c = run(s, a.operand, b.operand, math, s.n);
            REQUIRE(relative_error(c.data(), s.n, s, naive(s, a.exact, b.exact)) < kTolerance);
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("gemm: odd sizes, strides and instruction sets agree with float64") {
  const GemmShape shapes[] = {
      {1, 1, 1, 1},     {1, 1, 7, 3},     {1, 5, 1, 9},      {1, 6, 16, 8},      {1, 13, 33, 17},
      {1, 15, 31, 257}, {1, 64, 84, 120}, {1, 64, 10, 84},   {1, 3, 200, 300},   {1, 100, 100, 5},
      {3, 7, 19, 11},   {20, 9, 40, 33},  {2, 150, 130, 70}, {1, 70, 300, 2100}, {1, 10, 84, 5000},
      {1, 8, 101, 131}, {1, 1, 50, 64}};
  for (const Level level : levels()) {
    const Limit limit(level);
    for (const GemmShape& s : shapes) {
      for (const Math math : {Math::F32, Math::Bf16}) {
        for (int layouts = 0; layouts < 9; ++layouts) {
          if (layouts > 3 && s.m * s.n * s.k > 100000) continue;
          const Matrix a(s.batch, s.m, s.k, layouts % 3, DType::Float32, math, 1);
          const Matrix b(s.batch, s.k, s.n, layouts / 3, DType::Float32, math, 2);
          const std::vector<float> c = run(s, a.operand, b.operand, math, s.n + 5);
          const double error = relative_error(c.data(), s.n + 5, s, naive(s, a.exact, b.exact));
          CAPTURE(name(level.isa));
          CAPTURE(s.m);
          CAPTURE(s.n);
          CAPTURE(s.k);
          CAPTURE(layouts);
          CAPTURE(math == Math::Bf16);
          REQUIRE(error < kTolerance);
          REQUIRE(std::isnan(c[static_cast<std::size_t>(s.n)]));
        }
      }
    }
  }
}

TEST_CASE(
    "gemm: few rows and a matrix larger than the caches, packed by the threads that read it") {
  const GemmShape shapes[] = {{1, 5, 2051, 517}, {1, 37, 509, 2101}, {1, 131, 1030, 1020}};
  for (const Level level : levels()) {
    const Limit limit(level);
    for (const GemmShape& s : shapes) {
      for (const Math math : {Math::F32, Math::Bf16}) {
        for (int layout = 0; layout < 3; ++layout) {
          const DType dtype = layout == 1 && math == Math::Bf16 ? DType::BFloat16 : DType::Float32;
          const Matrix a(1, s.m, s.k, 0, DType::Float32, math, 1);
          const Matrix b(1, s.k, s.n, layout, dtype, math, 2);
          const std::vector<float> c = run(s, a.operand, b.operand, math, s.n + 5);
          CAPTURE(name(level.isa));
          CAPTURE(s.m);
          CAPTURE(layout);
          CAPTURE(math == Math::Bf16);
          REQUIRE(relative_error(c.data(), s.n + 5, s, naive(s, a.exact, b.exact)) < kTolerance);
          REQUIRE(std::isnan(c[static_cast<std::size_t>(s.n)]));
        }
      }
    }
  }
}

TEST_CASE("gemm: 16-bit operands are cast to float32 exactly") {
  check_short_operands({1, 37, 45, 51});
  check_short_operands({1, 70, 45, 96});  // whole blocks of A are read in place
}

TEST_CASE("gemm: broadcast operands and batch offsets") {
  const GemmShape s{3, 9, 20, 12};
  Matrix a(3, s.m, s.k, 0, DType::Float32, Math::F32, 5);
  const Matrix b(1, s.k, s.n, 0, DType::Float32, Math::F32, 6);
  Operand right = b.operand;
  right.batch_stride = 0;
  const std::int64_t offsets[] = {2 * a.operand.batch_stride, 0, a.operand.batch_stride};
  a.operand.batch_offsets = offsets;
  const std::vector<float> c = run(s, a.operand, right, Math::F32, s.n);
  for (const int batch : {0, 1, 2}) {
    const GemmShape one{1, s.m, s.n, s.k};
    const auto size = static_cast<std::ptrdiff_t>(s.m * s.k);
    const auto from = a.exact.begin() + offsets[batch] / a.operand.batch_stride * size;
    const std::vector<double> want = naive(one, std::vector<double>(from, from + size), b.exact);
    CHECK(relative_error(c.data() + batch * s.m * s.n, s.n, one, want) < kTolerance);
  }
  Operand row = b.operand;
  row.row_stride = 0;  // all rows of B are its first row
  const GemmShape one{1, s.m, s.n, s.k};
  a.operand.batch_offsets = nullptr;
  const std::vector<float> d = run(one, a.operand, row, Math::F32, s.n);
  double sum = 0;
  for (std::int64_t k = 0; k < s.k; ++k) sum += a.exact[static_cast<std::size_t>(k)];
  CHECK(static_cast<double>(d[4]) == doctest::Approx(sum * b.exact[4]).epsilon(1e-5));
}

TEST_CASE("gemm: the epilogue sees every element once, final, with and without a result") {
  const GemmShape shapes[] = {{1, 64, 84, 120},    {1, 300, 500, 64}, {1, 33, 65, 4500},
                              {20, 31, 17, 40},    {1, 10, 84, 5000}, {2, 200, 300, 400},
                              {1, 21, 1100, 4090}, {1, 5, 6, 0},      {1, 7, 100, 200}};
  for (const Math math : {Math::F32, Math::Bf16}) {
    for (const GemmShape& s : shapes) {
      const Matrix a(s.batch, s.m, s.k, 0, DType::Float32, math, 8),
          b(s.batch, s.k, s.n, 1, DType::Float32, math, 9);
      const std::vector<double> want = naive(s, a.exact, b.exact);
      for (const bool null : {false, true}) {
        Collector collector(s);
        Memory workspace(gemm_workspace(s, math, num_threads(), null));
        std::vector<float> c(want.size(), std::numeric_limits<float>::quiet_NaN());
        gemm({.shape = s,
              .a = a.operand,
              .b = b.operand,
              .c = null ? nullptr : c.data(),
              .ldc = s.n,
              .c_batch_stride = s.m * s.n,
              .math = math,
              .epilogue = {Collector::call, &collector},
              .workspace = workspace.data});
        CAPTURE(s.m);
        CAPTURE(s.k);
        CAPTURE(null);
        REQUIRE(collector.each_once());
        REQUIRE(relative_error(collector.values.data(), s.n, s, want) < kTolerance);
        if (!null) {
          std::vector<double> doubled = want;
          for (double& value : doubled) value *= 2;
          REQUIRE(relative_error(c.data(), s.n, s, doubled) < kTolerance);
        }
      }
    }
  }
}

TEST_CASE("gemm: the same bits for every number of threads") {
  const GemmShape shapes[] = {{1, 129, 257, 513},
                              {1, 10, 84, 5000},
                              {20, 31, 17, 40},
                              {1, 64, 4000, 300},
                              {1, 45, 1100, 4090}};
  for (const Math math : {Math::F32, Math::Bf16}) {
    for (const GemmShape& s : shapes) {
      const Matrix a(s.batch, s.m, s.k, 0, DType::Float32, math, 8),
          b(s.batch, s.k, s.n, 0, DType::Float32, math, 9);
      std::vector<float> first;
      for (const int count : {1, 2, 3, 7}) {
        const Threads threads(count);
        const std::vector<float> c = run(s, a.operand, b.operand, math, s.n);
        if (first.empty()) first = c;
        REQUIRE(std::memcmp(first.data(), c.data(), c.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("gemm: a few long dots are shared among threads, with the same bits and a small error") {
  for (const GemmShape& s : {GemmShape{1, 1, 1, 300'007},
                             {1, 8, 1, 100'003},
                             {1, 7, 5, 70'001},
                             {1, 1, 48, 40'000},
                             {1, 2, 3, 16'384}}) {
    const Matrix a(1, s.m, s.k, 0, DType::Float32, Math::F32, 8),
        b(1, s.k, s.n, 1, DType::Float32, Math::F32, 9);
    REQUIRE(b.operand.row_stride == 1);
    const std::vector<double> want = naive(s, a.exact, b.exact);
    for (const Level level : levels()) {
      const Limit limit(level);
      std::vector<float> first;
      for (const int count : {1, 2, 5}) {
        const Threads threads(count);
        const std::vector<float> c = run(s, a.operand, b.operand, Math::F32, s.n);
        if (first.empty()) first = c;
        REQUIRE(first == c);
        Collector seen(s);
        Memory workspace(gemm_workspace(s, Math::F32, count, true));
        gemm({.shape = s,
              .a = a.operand,
              .b = b.operand,
              .epilogue = {Collector::call, &seen},
              .workspace = workspace.data});
        CHECK(seen.each_once());
        REQUIRE(seen.values == c);
      }
      CHECK(relative_error(first.data(), s.n, s, want) < 2e-5);
    }
  }
}

TEST_CASE("gemm: empty results touch nothing, an empty sum is zero") {
  float c[4] = {7, 7, 7, 7};
  const Operand none{c, DType::Float32, 1, 1, 0, nullptr};
  Gemm product{.a = none, .b = none, .c = c, .ldc = 4, .c_batch_stride = 4};
  for (const GemmShape& empty : {GemmShape{1, 0, 4, 3}, {0, 1, 4, 3}}) {
    product.shape = empty;
    gemm(product);
  }
  CHECK(c[0] == 7);
  product.shape = {1, 1, 4, 0};
  gemm(product);
  CHECK(std::all_of(c, c + 4, [](float value) { return value == 0.0f; }));
}

TEST_CASE("gemm: NaN and infinity pass through, bfloat16 rounding keeps NaN") {
  const std::int64_t k = 33;
  std::vector<float> a(k, 1.0f), b(k, 1.0f);
  for (const Level level : levels()) {
    const Limit limit(level);
    for (const Math math : {Math::F32, Math::Bf16}) {
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        a[17] = bad;
        const std::vector<float> c = run({1, 1, 1, k}, {a.data(), DType::Float32, k, 1, 0, nullptr},
                                         {b.data(), DType::Float32, 1, 1, 0, nullptr}, math, 1);
        CHECK(std::isnan(c[0]) == std::isnan(bad));
        CHECK(!std::isfinite(c[0]));
      }
    }
  }
}

TEST_CASE("gemm_f64: strides and odd sizes, in every instruction set") {
  constexpr GemmShape kShapes[] = {
      {2, 37, 71, 83}, {1, 1, 300, 131}, {1, 97, 1, 257}, {1, 5, 3, 0}};
  for (const Level level : levels()) {
    const Limit limit(level);
    for (const GemmShape& s : kShapes)
      for (const bool transposed : {false, true}) {
        CAPTURE(s.m);
        CAPTURE(s.n);
        CAPTURE(s.k);
        CAPTURE(transposed);
        const std::vector<float> left = random_floats(s.batch * s.m * s.k, 1),
                                 right = random_floats(s.batch * s.k * s.n, 2);
        const std::vector<double> a(left.begin(), left.end()), b(right.begin(), right.end());
        std::vector<double> other = b;  // each batch's matrix by columns
        for (std::int64_t i = 0; transposed && i < s.batch * s.k * s.n; ++i) {
          const std::int64_t row = i / s.n % s.k, column = i % s.n;
          other[static_cast<std::size_t>(i / s.n / s.k * s.k * s.n + column * s.k + row)] =
              b[static_cast<std::size_t>(i)];
        }
        std::vector<double> c(static_cast<std::size_t>(s.batch * s.m * s.n),
                              std::numeric_limits<double>::quiet_NaN());
        gemm_f64(s, {a.data(), DType::Float64, s.k, 1, s.m * s.k, nullptr},
                 {other.data(), DType::Float64, transposed ? 1 : s.n, transposed ? s.k : 1,
                  s.k * s.n, nullptr},
                 c.data(), s.n, s.m * s.n);
        const std::vector<double> want = naive(s, a, b);
        double worst = 0;
        for (std::size_t i = 0; i < c.size(); ++i) {
          CHECK(std::isfinite(c[i]));
          worst = std::max(worst, std::abs(c[i] - want[i]));
        }
        CHECK(worst < 1e-12);
      }
  }
}
