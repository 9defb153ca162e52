// Packs matrix operands into the panels that register tiles read: [panel][step][width] words.
//
// Panels are contiguous whatever the source's strides. Elements are cast to float32 and, for
// Math::Bf16, rounded. Rows or columns beyond the matrix are zero, so a tile may always compute its
// full width.
#pragma once

#include "cpu/kernels/gemm/gemm_tile.h"

namespace tenon::cpu {

/// A rectangle of an operand for packing: `lines` rows of A or columns of B, each `k` elements
/// long.
struct PanelSource {
  const void* data = nullptr;  // element (line 0, step 0)
  DType dtype = DType::Float32;
  std::int64_t line_stride = 0;
  std::int64_t k_stride = 0;
};

/// Number of reduction words for k elements.
inline std::int64_t words_of(std::int64_t k, bool pair_words) {
  return pair_words ? (k + 1) / 2 : k;
}

inline const void* element(const void* data, DType dtype, std::int64_t index) {
  return static_cast<const char*>(data) + index * (dtype == DType::Float32 ? 4 : 2);
}

/// The number of elements before batch `batch` of an operand.
inline std::int64_t batch_offset(const Operand& x, std::int64_t batch) {
  return x.batch_offsets != nullptr ? x.batch_offsets[batch] : batch * x.batch_stride;
}

/// dst[step * width + line] for lines < `lines` <= width <= kMaxNr, zero up to width.
void pack_panel(const KernelSet& kernels, const PanelSource& source, int lines, std::int64_t k,
                Math math, float* dst, int width);

/// The same for a block tile's A: [steps / kBlockWords][kBlockEdge lines][kBlockWords], zero beyond
/// k.
void pack_block_panel(const KernelSet& kernels, const PanelSource& source, int lines,
                      std::int64_t k, Math math, float* dst);

}  // namespace tenon::cpu
