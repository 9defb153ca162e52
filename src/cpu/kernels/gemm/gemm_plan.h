// How a matrix product is cut: a function of its shape and the instruction set, never of the number
// of threads.
//
// The result is computed in blocks (mb x nb, whole panels). For one block and one stretch kb of the
// reduction both operands are packed completely and shared by all threads. The block is then
// computed in chunks, the unit of work. The stretch is cut again into kc, so that a panel of B
// stays in the L1 cache. For few rows and a matrix too large for the caches, each chunk takes all
// rows and packs B itself, a stretch of a panel at a time.
#pragma once

#include "cpu/kernels/gemm/gemm_pack.h"

namespace tenon::cpu {

enum class GemmCut {
  Blocks,  // threads share one product
  Batch,   // a thread takes a whole product of the batch
  SplitK,  // few results, long reduction: a fixed number of partial products, summed in order
};

/// The direction in which B is contiguous; Rows is for float32 only.
enum class BAlong { Neither, Rows, Reduction };

struct GemmPlan {
  const KernelSet* kernels = nullptr;  // the kernels that the plan was made for
  GemmCut cut = GemmCut::Blocks;
  bool pairs = false;
  bool blocks = false;  // block tiles (matrix registers)
  std::int64_t m = 0, n = 0, k = 0;
  int mr = 1, nr = 4, lanes = 4;
  std::int64_t mb = 0, nb = 0, kb = 0;    // block, in rows, columns and elements of the reduction
  std::int64_t kc = 0;                    // words
  std::int64_t chunk_m = 0, chunk_n = 0;  // panels of one chunk
  bool b_in_place = false;                // full panels of B are read without packing
  bool b_streamed = false;                // B is packed by the chunk that reads it
  bool a_kept = false;                    // all of A is packed once, for every block of columns
  std::int64_t parts = 1;                 // SplitK

  /// Words of the reduction as packed for k elements.
  std::int64_t words(std::int64_t elements) const {
    const std::int64_t count = words_of(elements, pairs);
    return blocks ? (count + kBlockWords - 1) / kBlockWords * kBlockWords : count;
  }
  std::int64_t k_blocks() const { return (k + kb - 1) / kb; }
  std::int64_t packed_a() const;  // floats
  /// The start of the packed block of A.
  std::int64_t packed_a_at(std::int64_t row0, std::int64_t k0) const;
  std::int64_t packed_b() const;
  /// True if scratch for a null result is one chunk; otherwise (the reduction is cut) it is the
  /// whole result.
  bool chunk_scratch() const { return k_blocks() == 1; }
  std::int64_t scratch() const;
  /// Floats of one worker's sums between stretches of the reduction; with b_streamed, also of the
  /// packed stretch of B that follows them.
  std::int64_t partial_sums() const;
};

/// The kernels for a shape: block tiles if the shape is large enough to fill them.
const KernelSet& gemm_kernels(const GemmShape& shape, Math math);

GemmPlan plan_gemm(const GemmShape& shape, Math math, const KernelSet& kernels, BAlong b);

}  // namespace tenon::cpu
