// Large float32 matrix products by fused multiply-adds alone, with the region's own epilogue.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// Claims matrix products of float32 operands in float32 (not tf32) that fill a GPU, if B is
/// contiguous along the result's axis in lines that can be read 16 bytes at a time. An A that is
/// contiguous along k is first transposed in the workspace. One engine per target, never destroyed.
const Engine& simt_engine(const Target& target);

/// Sizes of a product: rows and columns of the result, terms of each sum.
struct SimtSizes {
  std::int64_t m = 0, n = 0, k = 0;
};

/// The configurations, most promising first: "128x128/2" is the tile and the number of blocks that
/// share its k.
std::vector<std::string> simt_configurations(const GpuModel& gpu, const SimtSizes& sizes);

/// The kernel of a product, whatever its size, in the configuration of that name ("": the first
/// one).
std::unique_ptr<Kernel> prepare_simt(const Region& region, std::span<const Value> values,
                                     const Target& target, const std::string& configuration = {});

}  // namespace tenon::cuda
