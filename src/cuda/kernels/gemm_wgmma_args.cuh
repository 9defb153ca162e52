// What the Hopper matrix product is told at run time; host and device share these structs.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

/// A CUtensorMap: made by the driver, opaque to everybody else.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

inline constexpr int kWgmmaTile = 128;  // rows and columns of a block's tile
inline constexpr int kWgmmaDepth = 64;  // of a stage along k: 128 bytes, one swizzled line
inline constexpr int kWgmmaStages = 5;
inline constexpr int kWgmmaThreads = 384;
inline constexpr int kWgmmaStageBytes = 2 * kWgmmaTile * kWgmmaDepth * 2;
inline constexpr int kWgmmaStagingBytes = 16 * kWgmmaTile * 4;  // a warp's rows of sums
inline constexpr int kWgmmaSharedBytes =
    1024 + kWgmmaStages * (kWgmmaStageBytes + 16) + 16 + 8 * kWgmmaStagingBytes;

struct WgmmaProblem {
  TensorMap a, b;
  long long m = 0, n = 0;
  Divisor batch_rows;         // kBatches: m holds [batch, rows] of the result, so many rows a batch
  int steps = 0;              // stages along k
  int rows = 0, columns = 0;  // tiles; rows counts clusters, which are tiles one above the other
  int band = 0;               // rows of clusters that are walked together
};

}  // namespace tenon::cuda
