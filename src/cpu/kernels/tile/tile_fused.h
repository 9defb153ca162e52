// Loops that do all operations on an element of a row at once: a loaded element is converted,
// computed with, reduced and stored while it is in registers. There is one loop for each of the
// most common forms, those of normalisation and of residual networks. All other programs run
// operation by operation (tile_table.h).
//
// A form is a text: first its sums, then its stores, each as an expression. Leaves are h (bfloat16
// in memory), f (float32 in memory), b (bool in memory), a (a contraction's result) and r (a number
// that is constant along the row). #k refers to the k-th leaf or operation on elements, counted in
// the order in which they end. In a sum or product of an element and an r the element comes first.
// Exact casts to float32 are not written, nor is the rounding of a 16-bit store.
//
//   +cast(a);+square(#1);>h#1    the result rounded to bfloat16 and stored, its sum and its sum of
//                                squares
//
// Every operation is rounded as if it ran alone, and sums are those of tile_reduce.inc, so the bits
// are the same.
#pragma once

#include <cstdint>

namespace tenon::cpu {

constexpr int kMaxFusedElements = 5, kMaxFusedScalars = 7, kMaxFusedSums = 3, kMaxFusedOuts = 2;

/// One row. Elements and scalars have the order in which the form names them.
struct FusedRow {
  std::int64_t count;
  const void* elements[kMaxFusedElements];
  std::int64_t ahead[kMaxFusedElements];  // bytes from an element to its prefetch address
  const float* scalars[kMaxFusedScalars];
  void* outs[kMaxFusedOuts];    // may be the arrays of elements
  double* sums[kMaxFusedSums];  // each is added to
};

struct FusedLoop {
  const char* form = nullptr;
  void (*run)(const FusedRow&) = nullptr;
};

struct FusedLoops {
  const FusedLoop* first = nullptr;
  int count = 0;

  /// The loop of a form, or null.
  decltype(FusedLoop::run) find(const char* form) const;
};

FusedLoops fused_loops_avx512();
/// The loops for best_isa(). None for vectors of less than 16 numbers, because a row's numbers and
/// sums would not fit the registers.
FusedLoops fused_loops();

}  // namespace tenon::cpu
