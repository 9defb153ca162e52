// What all vector types share. A vector type V gives reg, mask, lanes, max_mr[] (rows of a tile of
// so many vectors), max_dot_rows, has_pairs, and the functions zero, load, load_part, broadcast,
// fma, add, mul, store, store_part, load_as<DType>, round_bf16, greater_or_nan (a > b, or a is
// NaN), equal, select, split (two vectors into even and odd elements), zip (its inverse),
// transpose; with pairs also fma_pairs, pack_pairs, zip_pairs, zip_rows<DType> (zip_pairs of two
// rows in memory); with has_broadcast_operands also fma_broadcast<Pairs> (sum += *a * b in one
// instruction).
#pragma once

#include <cstdint>

#include <tenon/dtype.h>

#define TENON_UNROLL _Pragma("GCC unroll 128")
#define TENON_UNROLL_TWICE _Pragma("GCC unroll 2")

namespace tenon::cpu {
namespace {

// Asks for what stands 2 KiB behind what is read: planes and images follow one another, and their
// short rows mislead the hardware's own prefetching.
inline void fetch_ahead(const void* read) {
  __builtin_prefetch(static_cast<const char*>(read) + 2048);
}

// The same of many rows that are read side by side: less of each, so that all stay in the first
// cache until they are read.
inline void fetch_near(const void* read) {
  __builtin_prefetch(static_cast<const char*>(read) + 1024, 0, 2);
}

}  // namespace
}  // namespace tenon::cpu
