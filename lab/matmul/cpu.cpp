// Host computations of the ladder, with the compiler's vectors (GCC and clang). Function clones are
// chosen for the machine at run time.
#include "cpu.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace lab {
namespace {

#define LAB_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

/// Calls work(first, last) on every core over [0, count).
template <class Work>
void on_all_cores(std::int64_t count, Work work) {
  const std::int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (std::int64_t t = 0; t < threads; ++t) {
    pool.emplace_back(work, count * t / threads, count * (t + 1) / threads);
  }
  for (std::thread& thread : pool) thread.join();
}

constexpr int kSlab = 32;  // columns of the reference that are summed together

LAB_CLONES void reference_slab(const std::vector<int>& rows, const float* a, const float* b, int n,
                               int k, int column, double* out) {
  const int width = std::min(kSlab, n - column);
  std::vector<double> sums(rows.size() * kSlab);
  for (int i = 0; i < k; ++i) {
    double line[kSlab] = {};
    for (int j = 0; j < width; ++j) line[j] = b[static_cast<std::int64_t>(i) * n + column + j];
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const double factor = a[static_cast<std::int64_t>(rows[r]) * k + i];
      for (int j = 0; j < kSlab; ++j) sums[r * kSlab + j] += factor * line[j];
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::copy_n(&sums[r * kSlab], width, out + r * n + column);
  }
}

constexpr int kRows = 12, kDepth = 256, kWidth = 32;

/// `rows` (at most kRows) rows of C by a packed panel of B in the L1 cache.
LAB_CLONES void multiply_panel(const float* a, const float* panel, float* c, int rows, int n, int k,
                               int depth, int width) {
  typedef float Vector __attribute__((vector_size(64)));
  Vector sums[kRows][2] = {};
  const float* line[kRows];
  for (int r = 0; r < kRows; ++r)
    line[r] = a + static_cast<std::int64_t>(std::min(r, rows - 1)) * k;
  for (int i = 0; i < depth; ++i) {
    Vector b0, b1;
    std::memcpy(&b0, panel + i * kWidth, sizeof b0);
    std::memcpy(&b1, panel + i * kWidth + 16, sizeof b1);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      sums[r][0] += line[r][i] * b0;
      sums[r][1] += line[r][i] * b1;
    }
  }
  float out[kWidth];
  for (int r = 0; r < rows; ++r) {
    std::memcpy(out, sums[r], sizeof out);
    for (int j = 0; j < width; ++j) c[static_cast<std::int64_t>(r) * n + j] += out[j];
  }
}

}  // namespace

void fill_random(std::vector<float>& values, std::uint64_t seed) {
  on_all_cores(static_cast<std::int64_t>(values.size()), [&](std::int64_t i, std::int64_t last) {
    for (; i < last; ++i) {  // splitmix64 of the index
      std::uint64_t x = seed * 0x9E3779B97F4A7C15ull + static_cast<std::uint64_t>(i);
      x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
      x = (x ^ x >> 27) * 0x94D049BB133111EBull;
      x ^= x >> 31;
      values[static_cast<std::size_t>(i)] = static_cast<float>(x >> 40) * 0x1p-23f - 1.f;
    }
  });
}

std::vector<std::uint16_t> to_bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &values[i], 4);
    out[i] = static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
  return out;
}

std::vector<float> from_bf16(const std::vector<std::uint16_t>& values) {
  std::vector<float> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(values[i]) << 16;
    std::memcpy(&out[i], &bits, 4);
  }
  return out;
}

std::vector<double> reference_rows(const std::vector<int>& rows, const float* a, const float* b,
                                   int n, int k) {
  std::vector<double> out(rows.size() * static_cast<std::size_t>(n));
  on_all_cores((n + kSlab - 1) / kSlab, [&](std::int64_t slab, std::int64_t last) {
    for (; slab < last; ++slab) {
      reference_slab(rows, a, b, n, k, static_cast<int>(slab) * kSlab, out.data());
    }
  });
  return out;
}

void multiply_on_one_core(const float* a, const float* b, float* c, int m, int n, int k) {
  std::fill_n(c, static_cast<std::int64_t>(m) * n, 0.f);
  alignas(64) static thread_local float panel[kDepth * kWidth];
  for (int start = 0; start < k; start += kDepth) {
    const int depth = std::min(kDepth, k - start);
    for (int column = 0; column < n; column += kWidth) {
      const int width = std::min(kWidth, n - column);
      for (int i = 0; i < depth; ++i) {
        const float* from = b + static_cast<std::int64_t>(start + i) * n + column;
        std::fill_n(std::copy_n(from, width, panel + i * kWidth), kWidth - width, 0.f);
      }
      for (int row = 0; row < m; row += kRows) {
        const std::int64_t at = row;
        multiply_panel(a + at * k + start, panel, c + at * n + column, std::min(kRows, m - row), n,
                       k, depth, width);
      }
    }
  }
}

}  // namespace lab
