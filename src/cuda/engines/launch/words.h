// Shared by several kernel families: block sizes, grids, divisors and the names of elements and
// flags for launches over a flat range.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/dtype.h>
#include <tenon/number.h>

#include "cuda/jit/jit.h"
#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

/// Threads per block of a flat launch.
inline constexpr int kFlatThreads = 256;

/// "element::Float32", the name in cuda/kernels/element.cuh; null for bool, in which nothing is
/// computed.
const char* element_name(DType dtype);
/// The number's bits in a dtype, repeated over 8 bytes.
std::int64_t repeated_bits(DType dtype, Scalar number);

inline Divisor make_divisor(std::int64_t value) {
  Divisor d;
  d.value = static_cast<unsigned long long>(std::max<std::int64_t>(value, 1));
  if (d.value == 1 || d.value >> 31 != 0) return d;
  while ((1ull << d.shift) < d.value) ++d.shift;
  d.multiplier = static_cast<unsigned>((((1ull << d.shift) - d.value) << 32) / d.value + 1);
  return d;
}

/// True if counters over that many elements need 64 bits.
inline bool needs_wide(std::int64_t count) { return count >> 30 != 0; }
inline const char* truth(bool value) { return value ? "true" : "false"; }
inline Grid grid_over(std::int64_t count, std::uint32_t y = 1) {
  return {static_cast<std::uint32_t>((count + kFlatThreads - 1) / kFlatThreads), y, 1};
}

}  // namespace tenon::cuda
