// The interface that all vector types share. A vector type V has single (itself, or the type
// without pairs), reg, mask, lanes, max_mr[] (rows of a tile of so many vectors), max_dot_rows,
// has_pairs, and the functions zero, load, load_part, broadcast, fma, add, mul, store,
// store_part, load_as<DType>, round_bf16, greater_or_nan (a > b, or a is NaN), equal, select,
// split (two vectors into even and odd elements), zip (its inverse), transpose; with pairs also
// fma_pairs, pack_pairs, zip_pairs, zip_rows<DType> (zip_pairs of two rows in memory); with
// has_broadcast_operands also fma_broadcast<Pairs> (sum += *a * b in one instruction).
#pragma once

#include <cstdint>

#include <tenon/dtype.h>

#define TENON_UNROLL _Pragma("GCC unroll 128")
#define TENON_UNROLL_TWICE _Pragma("GCC unroll 2")
#define TENON_ROLLED _Pragma("GCC unroll 1")

namespace tenon::cpu {
namespace {

// Prefetches the memory 2 KiB behind the address: planes and images are contiguous, and their short
// rows mislead the hardware prefetcher.
inline void fetch_ahead(const void* read) {
  __builtin_prefetch(static_cast<const char*>(read) + 2048);
}

// The same for many rows that are read alternately: a shorter distance, so that all of them stay in
// the L1 cache until they are read.
inline void fetch_near(const void* read) {
  __builtin_prefetch(static_cast<const char*>(read) + 1024, 0, 2);
}

}  // namespace
}  // namespace tenon::cpu
