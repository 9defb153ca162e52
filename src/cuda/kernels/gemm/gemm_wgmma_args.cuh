// Run-time arguments of the Hopper matrix product; host and device share these structs.
#pragma once

#include "cuda/kernels/divisor.cuh"
#include "cuda/kernels/tensor_map.cuh"

namespace tenon::cuda {

inline constexpr int kWgmmaColumns = 128;  // columns of a block's tile
inline constexpr int kWgmmaLine = 128;     // bytes of a stage along k: one swizzled line
// Steps of k in a stage, for float32 in parts.
inline constexpr int kWgmmaPartsDepth = kWgmmaLine / 4;
inline constexpr int kWgmmaThreads = 384;
inline constexpr int kWgmmaStagingBytes = 16 * kWgmmaColumns * 4;  // a warp's rows of sums

/// Shared memory of a block: the ring and its barriers, and the rows of sums of all writing warps.
constexpr int wgmma_shared_bytes(int rows, int stages, bool turns, bool parts = false) {
  const int columns = parts ? 3 * kWgmmaColumns / 2 : kWgmmaColumns;  // lines of the operands
  const int stage = (rows + columns) * kWgmmaLine + 16;
  return 1024 + stages * stage + 16 + (turns ? 8 : rows / 16) * kWgmmaStagingBytes;
}

struct WgmmaProblem {
  TensorMap a, b;
  long long m = 0, n = 0;
  Divisor batch_rows;  // kBatches: rows per batch, where m stands for [batch, rows] of the result
  int steps = 0;       // stages along k
  int rows = 0, columns = 0;  // number of tiles; the tiles of a cluster count as one row
  int band = 0;               // rows of clusters that are traversed together
  // In parts: column of the result that B's first column gives; n counts from 0.
  int first_column = 0;
};

}  // namespace tenon::cuda
