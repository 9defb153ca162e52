// Convolution passes of the CPU kernels against float64 loops: padding, strides, dilations, groups,
// odd sizes, types, every instruction set that this machine has, epilogue rectangles, and the same
// bits for every number of threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "cpu/kernels/conv/conv2d.h"
#include "cpu/kernels/conv/conv_bodies.h"
#include "kernel_check.h"

using namespace tenon;
using namespace tenon::cpu;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_values(std::int64_t count, std::uint64_t seed, bool bf16) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 2.0f * uniform01(philox(seed, i, 3).v[0]) - 1.0f;
    if (bf16) values[i] = static_cast<float>(bfloat16(values[i]));
  }
  return values;
}

ConvShape make(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t k,
               std::int64_t r, std::int64_t s, int stride_h, int stride_w, int pad_h, int pad_w,
               int dil_h, int dil_w, int groups) {
  ConvShape v{n, c, h, w, k, r, s, 0, 0, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups};
  v.p = (h + 2 * pad_h - dil_h * (r - 1) - 1) / stride_h + 1;
  v.q = (w + 2 * pad_w - dil_w * (s - 1) - 1) / stride_w + 1;
  return v;
}

std::vector<ConvShape> shapes() {
  return {
      make(2, 1, 28, 28, 6, 5, 5, 1, 1, 2, 2, 1, 1, 1),
      make(3, 6, 14, 14, 16, 5, 5, 1, 1, 0, 0, 1, 1, 1),
      make(5, 16, 5, 5, 12, 5, 5, 1, 1, 0, 0, 1, 1, 1),
      make(2, 1, 28, 28, 32, 3, 3, 1, 1, 0, 0, 1, 1, 1),
      make(3, 32, 13, 13, 64, 3, 3, 1, 1, 0, 0, 1, 1, 1),
      make(3, 20, 5, 5, 33, 3, 3, 1, 1, 0, 0, 1, 1, 1),
      make(1, 3, 17, 19, 7, 3, 3, 2, 2, 1, 1, 1, 1, 1),
      make(2, 5, 23, 11, 18, 3, 5, 2, 1, 1, 2, 1, 1, 1),
      make(2, 4, 16, 16, 9, 3, 3, 1, 1, 2, 2, 2, 2, 1),
      make(1, 4, 20, 21, 20, 3, 2, 3, 2, 0, 1, 2, 3, 1),
      make(2, 8, 9, 9, 8, 3, 3, 1, 1, 1, 1, 1, 1, 8),
      make(2, 6, 10, 7, 9, 3, 3, 2, 2, 1, 1, 1, 1, 3),
      make(2, 17, 7, 7, 35, 1, 1, 1, 1, 0, 0, 1, 1, 1),
      make(2, 17, 7, 7, 20, 1, 1, 2, 2, 0, 0, 1, 1, 1),
      make(1, 300, 32, 32, 18, 1, 1, 1, 1, 0, 0, 1, 1, 1),  // bands of rows, read in place
      make(1, 64, 30, 31, 40, 1, 1, 1, 1, 0, 0, 1, 1, 1),
      make(1, 3, 40, 40, 40, 7, 7, 2, 2, 3, 3, 1, 1, 1),
      make(2, 3, 1, 30, 5, 1, 4, 1, 1, 0, 1, 1, 1, 1),
      make(2, 3, 30, 1, 5, 4, 1, 1, 1, 1, 0, 1, 1, 1),
      make(1, 2, 6, 6, 3, 4, 4, 1, 1, 3, 3, 1, 1, 1),
      make(7, 2, 4, 4, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1),
      make(1, 5, 3, 3, 4, 3, 3, 4, 4, 2, 2, 1, 1, 1),
      make(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1),
      make(3, 4, 8, 8, 50, 3, 3, 2, 2, 0, 0, 1, 1, 2),
      make(2, 70, 5, 5, 9, 3, 3, 1, 1, 0, 0, 1, 1, 1),
      make(2, 34, 9, 14, 6, 2, 3, 1, 1, 1, 0, 2, 1, 1),
      make(1, 72, 30, 7, 10, 3, 3, 1, 1, 0, 0, 1, 1, 2),
      make(2, 40, 4, 3, 5, 3, 3, 1, 1, 0, 0, 1, 1, 1),
      // Strides with enough channels for a window's rows, and rows longer than one stretch.
      make(3, 16, 14, 14, 20, 3, 3, 2, 2, 1, 1, 1, 1, 1),
      make(2, 11, 20, 21, 20, 3, 2, 3, 2, 0, 1, 2, 3, 1),
      make(2, 22, 9, 9, 40, 3, 3, 2, 2, 1, 1, 1, 1, 2),
      make(2, 19, 8, 9, 33, 1, 1, 2, 2, 1, 1, 1, 1, 1),
      make(1, 9, 2, 1030, 17, 2, 3, 1, 3, 0, 1, 1, 1, 1),
      // 1 x 1 filters whose pixels divide into whole vectors.
      make(2, 17, 12, 8, 35, 1, 1, 1, 1, 0, 0, 1, 1, 1),
      make(3, 34, 4, 4, 10, 1, 1, 1, 1, 0, 0, 1, 1, 2),
      // Depthwise filters over small maps: several blocks of channels, more images than are summed
      // in float, one image, wide filters, dilations, maps of one pixel.
      make(3, 70, 4, 4, 70, 3, 3, 1, 1, 1, 1, 1, 1, 70),
      make(67, 5, 3, 2, 5, 3, 3, 1, 1, 1, 1, 1, 1, 5),
      make(1, 300, 2, 2, 300, 3, 3, 1, 1, 1, 1, 1, 1, 300),
      make(9, 33, 5, 6, 33, 5, 3, 1, 1, 4, 2, 2, 2, 33),
      make(2, 600, 1, 1, 600, 1, 3, 1, 1, 0, 1, 1, 1, 600),
  };
}

// Calls f(w index, y index, x index) for every product of the convolution.
template <class F>
void each_product(const ConvShape& s, F f) {
  const std::int64_t cg = s.c / s.groups, kg = s.k / s.groups;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t k = 0; k < s.k; ++k)
      for (std::int64_t c = 0; c < cg; ++c)
        for (std::int64_t i = 0; i < s.p; ++i)
          for (std::int64_t j = 0; j < s.q; ++j)
            for (std::int64_t a = 0; a < s.r; ++a)
              for (std::int64_t b = 0; b < s.s; ++b) {
                const std::int64_t y = i * s.stride_h - s.pad_h + a * s.dil_h;
                const std::int64_t x = j * s.stride_w - s.pad_w + b * s.dil_w;
                if (y < 0 || y >= s.h || x < 0 || x >= s.w) continue;
                f(static_cast<std::size_t>(((k * cg + c) * s.r + a) * s.s + b),
                  static_cast<std::size_t>(((n * s.k + k) * s.p + i) * s.q + j),
                  static_cast<std::size_t>(((n * s.c + k / kg * cg + c) * s.h + y) * s.w + x));
              }
}

struct Sizes {
  std::int64_t x, w, y;
  explicit Sizes(const ConvShape& s)
      : x(s.n * s.c * s.h * s.w), w(s.k * (s.c / s.groups) * s.r * s.s), y(s.n * s.k * s.p * s.q) {}
};

double relative_error(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0, norm = 1e-30;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = static_cast<double>(got[i]) - want[i];
    error += d * d;
    norm += want[i] * want[i];
  }
  return std::sqrt(error / norm);
}

// A tensor in one of the three types, holding values that all of them and bfloat16 represent.
struct Tensor16 {
  std::vector<float> values;
  std::vector<std::uint16_t> words;
  ConvOperand operand;
  Tensor16(std::vector<float> from, DType dtype) : values(std::move(from)) {
    for (float& value : values) {
      if (dtype == DType::BFloat16) {
        words.push_back(bfloat16(value).bits);
        value = static_cast<float>(bfloat16(value));
      } else if (dtype == DType::Float16) {
        words.push_back(float16(value).bits);
        value = static_cast<float>(float16(value));
      }
    }
    operand.dtype = dtype;
    operand.data = dtype == DType::Float32 ? static_cast<const void*>(values.data()) : words.data();
  }
};

struct Results {
  std::vector<float> y, dx, dw;
};

Results run_all(const ConvShape& s, const Tensor16& x, const Tensor16& w, const Tensor16& dy,
                Math math, Epilogue forward = {}, Epilogue input = {}, Epilogue weight = {}) {
  const Sizes size(s);
  Results r{std::vector<float>(static_cast<std::size_t>(size.y), kNan),
            std::vector<float>(static_cast<std::size_t>(size.x), kNan),
            std::vector<float>(static_cast<std::size_t>(size.w), kNan)};
  const int threads = num_threads();
  {
    Memory memory(conv2d_workspace(s, ConvPass::Forward, math, threads));
    conv2d_forward(s, x.operand, w.operand, r.y.data(), math, forward, memory.data);
  }
  {
    Memory memory(conv2d_workspace(s, ConvPass::InputGrad, math, threads));
    conv2d_input_grad(s, dy.operand, w.operand, r.dx.data(), math, input, memory.data);
  }
  Memory memory(conv2d_workspace(s, ConvPass::WeightGrad, math, threads));
  conv2d_weight_grad(s, x.operand, dy.operand, r.dw.data(), math, weight, memory.data);
  return r;
}

struct Wanted {
  std::vector<double> y, dx, dw;
  Wanted(const ConvShape& s, const Tensor16& x, const Tensor16& w, const Tensor16& dy) {
    const Sizes size(s);
    y.resize(static_cast<std::size_t>(size.y));
    dx.resize(static_cast<std::size_t>(size.x));
    dw.resize(static_cast<std::size_t>(size.w));
    each_product(s, [&](std::size_t wi, std::size_t yi, std::size_t xi) {
      y[yi] += static_cast<double>(w.values[wi]) * static_cast<double>(x.values[xi]);
      dx[xi] += static_cast<double>(w.values[wi]) * static_cast<double>(dy.values[yi]);
      dw[wi] += static_cast<double>(x.values[xi]) * static_cast<double>(dy.values[yi]);
    });
  }
};

// Counts how often the epilogue sees each element, doubles the element, and checks that worker
// numbers are in range.
struct Counter {
  std::int64_t rows, cols;
  std::vector<std::atomic<int>> seen;
  std::atomic<bool> in_range{true};
  Counter(std::int64_t batch, std::int64_t r, std::int64_t c)
      : rows(r), cols(c), seen(static_cast<std::size_t>(batch * r * c)) {}
  static void call(void* ctx, const ResultBlock& block) {
    Counter& self = *static_cast<Counter*>(ctx);
    const auto [batch, row0, row1, col0, col1] = block.place;
    if (block.worker < 0 || block.worker >= num_threads()) self.in_range = false;
    for (std::int64_t i = row0; i < row1; ++i) {
      for (std::int64_t j = col0; j < col1; ++j) {
        self.seen[static_cast<std::size_t>((batch * self.rows + i) * self.cols + j)]++;
        block.data[(i - row0) * block.ld + j - col0] *= 2;
      }
    }
  }
  bool each_once() const {
    return in_range &&
           std::all_of(seen.begin(), seen.end(), [](const std::atomic<int>& n) { return n == 1; });
  }
};

#if defined(__x86_64__)
// Block tiles as plain loops, so that passes on them are tested on machines without matrix
// registers.
thread_local int block_words = 0;

float half_of(float word, bool high) {
  std::uint32_t bits;
  std::memcpy(&bits, &word, sizeof bits);
  bits = high ? bits & 0xffff0000u : bits << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void plain_block_tile(const BlockArgs& t) {
  float sums[kBlockEdge][kBlockEdge] = {};
  for (std::int64_t step = 0; step < t.steps; ++step) {
    const float* a = t.a + (t.a_table != nullptr ? t.a_table[step] : step * t.a_step);
    const float* b = t.b + (t.b_table != nullptr ? t.b_table[step] : step * t.b_step);
    for (int i = 0; i < t.rows; ++i)
      for (int word = 0; word < block_words; ++word)
        for (int j = 0; j < t.cols; ++j)
          for (const bool high : {false, true})
            sums[i][j] +=
                half_of(a[i * t.a_row + word], high) * half_of(b[word * t.b_row + j], high);
  }
  for (int i = 0; i < t.rows; ++i)
    for (int j = 0; j < t.cols; ++j) {
      float& c = t.c[i * t.ldc + j];
      c = t.accumulate ? c + sums[i][j] : sums[i][j];
    }
}

KernelSet plain_block_kernels() {
  KernelSet set = avx512bf16_kernels();
  set.block_tile = plain_block_tile;
  set.block_begin = [](int words) { block_words = words; };
  set.block_end = [] { block_words = 0; };
  return set;
}

Results run_blocks(const ConvShape& s, const KernelSet& kernels, const Tensor16& x,
                   const Tensor16& w, const Tensor16& dy) {
  const Sizes size(s);
  Results r{std::vector<float>(static_cast<std::size_t>(size.y), kNan),
            std::vector<float>(static_cast<std::size_t>(size.x), kNan),
            std::vector<float>(static_cast<std::size_t>(size.w), kNan)};
  for (const bool input_grad : {false, true}) {
    const Correlation pass = correlation_of(s, input_grad, false);
    Memory memory(correlate_blocks_workspace(pass, kernels, num_threads()));
    correlate_blocks(pass, kernels, input_grad ? dy.operand : x.operand, w.operand,
                     input_grad ? r.dx.data() : r.y.data(), {}, memory.data);
  }
  Memory memory(weights_in_blocks_workspace(s, kernels, num_threads()));
  weights_in_blocks(s, kernels, x.operand, dy.operand, r.dw.data(), {}, memory.data);
  return r;
}
#endif

constexpr double kTolerance = 2e-6;

void check_all(const ConvShape& s, const Results& got, const Wanted& want, const char* isa,
               bool bf16) {
  CAPTURE(isa);
  CAPTURE(bf16);
  CAPTURE(s.c);
  CAPTURE(s.h);
  CAPTURE(s.w);
  CAPTURE(s.k);
  CAPTURE(s.r);
  CAPTURE(s.stride_h);
  CAPTURE(s.dil_h);
  CAPTURE(s.groups);
  CHECK(relative_error(got.y, want.y) < kTolerance);
  CHECK(relative_error(got.dx, want.dx) < kTolerance);
  CHECK(relative_error(got.dw, want.dw) < kTolerance);
}

}  // namespace

TEST_CASE("conv2d: all passes agree with float64 for odd geometry on every instruction set") {
  for (const ConvShape& s : shapes()) {
    const Sizes size(s);
    // Values that bfloat16 represents exactly, so that both kinds of arithmetic have the same
    // correct result.
    const Tensor16 x(random_values(size.x, 1, true), DType::Float32),
        w(random_values(size.w, 2, true), DType::Float32);
    const Tensor16 dy(random_values(size.y, 3, true), DType::Float32);
    const Wanted want(s, x, w, dy);
    for (const Level level : levels()) {
      const Limit limit(level);
      for (const Math math : {Math::F32, Math::Bf16}) {
        check_all(s, run_all(s, x, w, dy, math), want, name(level.isa), math == Math::Bf16);
      }
    }
  }
}

#if defined(__x86_64__)
TEST_CASE("conv2d: all passes on block tiles agree with float64, without matrix registers too") {
  if (hardware_isa() < Isa::Avx512Bf16) return;
  const KernelSet kernels = plain_block_kernels();
  for (const ConvShape& s : shapes()) {
    const Sizes size(s);
    const Tensor16 x(random_values(size.x, 1, true), DType::Float32),
        w(random_values(size.w, 2, true), DType::Float32);
    const Tensor16 dy(random_values(size.y, 3, true), DType::Float32);
    const Wanted want(s, x, w, dy);
    Results first;
    for (const int count : {1, 3}) {
      const Threads threads(count);
      const Results got = run_blocks(s, kernels, x, w, dy);
      check_all(s, got, want, "blocks", true);
      if (first.y.empty()) first = got;
      CHECK(first.y == got.y);
      CHECK(first.dx == got.dx);
      CHECK(first.dw == got.dw);
    }
  }
}
#endif

TEST_CASE("conv2d: a sum over 100,000 channels is as accurate as one over thousands") {
  // Equal values, so that every addition rounds the same way: channels in lanes, pixels in lanes in
  // both their ways, and spread tiles in the last input gradient.
  for (const ConvShape& s : {make(1, 100'000, 1, 2, 3, 1, 1, 1, 1, 0, 0, 1, 1, 1),
                             make(1, 100'000, 2, 2, 40, 1, 1, 1, 1, 0, 0, 1, 1, 1),
                             make(1, 100'000, 1, 40, 2, 1, 1, 1, 1, 0, 0, 1, 1, 1),
                             make(1, 40'000, 1, 32, 2, 1, 3, 1, 1, 0, 1, 1, 1, 1),
                             make(1, 40, 4, 4, 10'000, 3, 3, 1, 1, 0, 0, 1, 1, 1)}) {
    const Sizes size(s);
    const auto equal = [](std::int64_t count, float value) {
      return Tensor16(std::vector<float>(static_cast<std::size_t>(count), value), DType::Float32);
    };
    const Tensor16 x = equal(size.x, 0.3f), w = equal(size.w, 0.1f), dy = equal(size.y, 0.3f);
    const Wanted want(s, x, w, dy);
    for (const Level level : levels()) {
      const Limit limit(level);
      const Results got = run_all(s, x, w, dy, Math::F32);
      CAPTURE(name(level.isa));
      CAPTURE(s.k);
      CHECK(relative_error(got.y, want.y) < 5e-5);
      CHECK(relative_error(got.dx, want.dx) < 5e-5);
    }
  }
}

TEST_CASE("conv2d: Math::Bf16 rounds float32 operands") {
  const ConvShape s = make(2, 6, 14, 14, 16, 5, 5, 1, 1, 0, 0, 1, 1, 1);
  const Sizes size(s);
  const Tensor16 x(random_values(size.x, 1, false), DType::Float32),
      w(random_values(size.w, 2, false), DType::Float32);
  const Tensor16 dy(random_values(size.y, 3, false), DType::Float32);
  const Wanted want(s, Tensor16(x.values, DType::BFloat16), Tensor16(w.values, DType::BFloat16),
                    Tensor16(dy.values, DType::BFloat16));
  for (const Level level : levels()) {
    const Limit limit(level);
    check_all(s, run_all(s, x, w, dy, Math::Bf16), want, name(level.isa), true);
  }
}

TEST_CASE("conv2d: 16-bit operands") {
  for (const ConvShape& s : {make(3, 5, 11, 9, 18, 3, 3, 1, 1, 1, 1, 1, 1, 1),
                             make(3, 4, 9, 9, 6, 3, 3, 2, 2, 1, 1, 1, 1, 2),
                             make(3, 4, 3, 3, 6, 3, 3, 1, 1, 0, 0, 1, 1, 1)}) {
    const Sizes size(s);
    for (const DType dtype : {DType::BFloat16, DType::Float16}) {
      const Tensor16 x(random_values(size.x, 1, true), dtype),
          w(random_values(size.w, 2, true), dtype);
      const Tensor16 dy(random_values(size.y, 3, true), dtype);
      const Wanted want(s, x, w, dy);
      for (const Level level : levels()) {
        const Limit limit(level);
        check_all(s, run_all(s, x, w, dy, Math::F32), want, name(level.isa), false);
        if (dtype == DType::BFloat16)
          check_all(s, run_all(s, x, w, dy, Math::Bf16), want, name(level.isa), true);
      }
    }
  }
}

TEST_CASE("conv2d: epilogues see every element once and may change it") {
  for (const ConvShape& s : shapes()) {
    const Sizes size(s);
    const Tensor16 x(random_values(size.x, 1, true), DType::Float32),
        w(random_values(size.w, 2, true), DType::Float32);
    const Tensor16 dy(random_values(size.y, 3, true), DType::Float32);
    Wanted want(s, x, w, dy);
    for (std::vector<double>* values : {&want.y, &want.dx, &want.dw}) {
      for (double& value : *values) value *= 2;
    }
    Counter forward(s.n, s.k, s.p * s.q), input(s.n, s.c, s.h * s.w),
        weight(1, s.k, s.c / s.groups * s.r * s.s);
    const Results got = run_all(s, x, w, dy, Math::F32, {Counter::call, &forward},
                                {Counter::call, &input}, {Counter::call, &weight});
    CHECK(forward.each_once());
    CHECK(input.each_once());
    CHECK(weight.each_once());
    check_all(s, got, want, "doubled", false);
  }
}

// Copies an epilogue's rectangles into a result [images, channels, pixels].
struct Keeper {
  std::vector<float> values;
  std::int64_t channels, pixels;
  Keeper(std::int64_t images, std::int64_t k, std::int64_t p)
      : values(static_cast<std::size_t>(images * k * p), kNan), channels(k), pixels(p) {}
  static void call(void* ctx, const ResultBlock& block) {
    Keeper& self = *static_cast<Keeper*>(ctx);
    const auto [image, row0, row1, col0, col1] = block.place;
    for (std::int64_t row = row0; row < row1; ++row) {
      const std::int64_t to = (image * self.channels + row) * self.pixels + col0;
      std::copy_n(block.data + (row - row0) * block.ld, col1 - col0, self.values.data() + to);
    }
  }
};

TEST_CASE("conv2d: results that only the epilogue reads have the same bits") {
  std::vector<ConvShape> all = shapes();
  all.push_back(
      make(2, 3, 60, 60, 70, 3, 3, 1, 1, 1, 1, 1, 1, 1));  // larger than the scratch memory
  all.push_back(make(1, 70, 60, 60, 8, 3, 3, 2, 2, 1, 1, 1, 1, 1));
  all.push_back(make(1, 6, 64, 64, 80, 1, 1, 1, 1, 0, 0, 1, 1, 2));
  for (const ConvShape& s : all) {
    const Sizes size(s);
    const Tensor16 x(random_values(size.x, 1, false), DType::BFloat16),
        w(random_values(size.w, 2, false), DType::Float32);
    const Tensor16 dy(random_values(size.y, 3, false), DType::BFloat16);
    for (const Math math : {Math::F32, Math::Bf16}) {
      const Results want = run_all(s, x, w, dy, math);
      for (const int count : {1, 3}) {
        const Threads threads(count);
        Keeper y(s.n, s.k, s.p * s.q), dx(s.n, s.c, s.h * s.w);
        Memory forward(conv2d_workspace(s, ConvPass::Forward, math, count, true));
        conv2d_forward(s, x.operand, w.operand, nullptr, math, {Keeper::call, &y}, forward.data);
        CHECK(y.values == want.y);
        Memory input(conv2d_workspace(s, ConvPass::InputGrad, math, count, true));
        conv2d_input_grad(s, dy.operand, w.operand, nullptr, math, {Keeper::call, &dx}, input.data);
        CHECK(dx.values == want.dx);
      }
    }
  }
}

TEST_CASE("conv2d: the same bits for every number of threads") {
  for (const ConvShape& s : {make(33, 6, 14, 14, 16, 5, 5, 1, 1, 0, 0, 1, 1, 1),
                             make(1, 8, 40, 40, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1),
                             make(9, 8, 13, 13, 70, 3, 3, 2, 2, 1, 1, 1, 1, 2),
                             make(40, 16, 5, 5, 24, 5, 5, 1, 1, 0, 0, 1, 1, 1)}) {
    const Sizes size(s);
    const Tensor16 x(random_values(size.x, 1, false), DType::Float32),
        w(random_values(size.w, 2, false), DType::Float32);
    const Tensor16 dy(random_values(size.y, 3, false), DType::Float32);
    for (const Math math : {Math::F32, Math::Bf16}) {
      Results first;
      for (const int count : {1, 2, 3, 7}) {
        const Threads threads(count);
        const Results got = run_all(s, x, w, dy, math);
        if (first.y.empty()) first = got;
        CHECK(std::memcmp(first.y.data(), got.y.data(), got.y.size() * sizeof(float)) == 0);
        CHECK(std::memcmp(first.dx.data(), got.dx.data(), got.dx.size() * sizeof(float)) == 0);
        CHECK(std::memcmp(first.dw.data(), got.dw.data(), got.dw.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("conv2d: without images the weight gradient is zero") {
  ConvShape s = make(1, 2, 5, 5, 3, 3, 3, 1, 1, 0, 0, 1, 1, 1);
  s.n = 0;
  std::vector<float> dw(54, kNan);
  conv2d_weight_grad(s, {dw.data(), DType::Float32}, {dw.data(), DType::Float32}, dw.data(),
                     Math::F32, {}, nullptr);
  conv2d_forward(s, {dw.data(), DType::Float32}, {dw.data(), DType::Float32}, nullptr, Math::F32,
                 {}, nullptr);
  conv2d_input_grad(s, {dw.data(), DType::Float32}, {dw.data(), DType::Float32}, nullptr, Math::F32,
                    {}, nullptr);
  CHECK(std::all_of(dw.begin(), dw.end(), [](float value) { return value == 0.0f; }));
}
