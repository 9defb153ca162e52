// The body of F64Tile, written once with GCC's portable vectors and compiled for each instruction
// set. In an unnamed namespace, without shared inline functions.
#pragma once

#include "cpu/kernels/gemm/gemm_f64_tile.h"
#include "cpu/kernels/gemm/gemm_vector.h"

namespace tenon::cpu {
namespace {

template <int Rows, int Lanes>
void multiply_f64(std::int64_t steps, const double* a, const double* b, double* c) {
  using reg [[gnu::vector_size(8 * Lanes)]] = double;
  reg sums[Rows][2] = {};
  for (std::int64_t step = 0; step < steps; ++step, a += Rows, b += 2 * Lanes) {
    reg left, right;
    __builtin_memcpy(&left, b, sizeof left);
    __builtin_memcpy(&right, b + Lanes, sizeof right);
    TENON_UNROLL
    for (int i = 0; i < Rows; ++i) {
      sums[i][0] += a[i] * left;
      sums[i][1] += a[i] * right;
    }
  }
  TENON_UNROLL
  for (int i = 0; i < Rows; ++i) {
    __builtin_memcpy(c + 2 * Lanes * i, &sums[i][0], sizeof sums[i][0]);
    __builtin_memcpy(c + 2 * Lanes * i + Lanes, &sums[i][1], sizeof sums[i][1]);
  }
}

template <int Rows, int Lanes>
F64Tile make_f64_tile() {
  static_assert(Rows <= kMaxF64Rows && 2 * Lanes <= kMaxF64Cols);
  return {Rows, 2 * Lanes, multiply_f64<Rows, Lanes>};
}

}  // namespace
}  // namespace tenon::cpu
