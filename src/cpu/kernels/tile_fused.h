// Loops that do all that a program does to an element of a row at once: what is loaded is
// converted, computed with, added up and stored while it is in registers. There is one for each of
// the commonest forms, of normalisation and of residual networks; every other program runs
// operation by operation (tile_table.h).
//
// A form is a text: its sums, then its stores, each as the operations that make it. Leaves are h
// (bfloat16 in memory), f (float32 in memory), b (bool in memory), a (a contraction's result) and r
// (a number that is the same all along the row); #k is the k-th leaf or operation of elements, in
// order of their ends, once more. Of a sum or product of an element and an r the element stands
// first. What becomes float32 without a change is not written, nor what a store of 16 bits rounds
// itself.
//
//   +cast(a);+square(#1);>h#1      the result rounded to bfloat16 and stored, its sum, and of
//   squares
//
// Every operation is rounded as alone, and sums are those of tile_reduce.inc: the same bits.
#pragma once

#include <cstdint>

namespace tenon::cpu {

constexpr int kMaxFusedElements = 5, kMaxFusedScalars = 7, kMaxFusedSums = 3, kMaxFusedOuts = 2;

/// One row. Elements and scalars in the order in which the form names them.
struct FusedRow {
  std::int64_t count;
  const void* elements[kMaxFusedElements];
  std::int64_t ahead[kMaxFusedElements];  // bytes from an element to what is asked for with it
  const float* scalars[kMaxFusedScalars];
  void* outs[kMaxFusedOuts];    // may be elements
  double* sums[kMaxFusedSums];  // added to
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
/// The loops for best_isa(): with vectors of less than 16 numbers none, as a row's numbers and sums
/// would not fit registers.
FusedLoops fused_loops();

}  // namespace tenon::cpu
