// The inner loop of float64 products, chosen by instruction set: a tile of several rows by two
// vectors.
#pragma once

#include <cstdint>

namespace tenon::cpu {

constexpr int kMaxF64Rows = 8, kMaxF64Cols = 16;

struct F64Tile {
  int rows = 0, cols = 0;
  /// c[i * cols + j] = sum over steps of a[step * rows + i] * b[step * cols + j].
  void (*multiply)(std::int64_t steps, const double* a, const double* b, double* c) = nullptr;
};

/// The tile of best_isa().
const F64Tile& f64_tile();

const F64Tile& base_f64_tile();
const F64Tile& avx2_f64_tile();
const F64Tile& avx512_f64_tile();
const F64Tile& neon_f64_tile();

}  // namespace tenon::cpu
