// How Hopper's float32 products of bfloat16 parts are cut into tiles, clusters and sums: a model of
// their time, and the names of choices. Nothing here knows an operand's memory.
#pragma once

#include <string>
#include <vector>

#include "cuda/engines/products/wgmma_config.h"
#include "device/gpu_model.h"

namespace tenon::cuda {

/// Of the ring of a block.
inline constexpr int kBf16x6Stages = 4;

/// What a product takes without its conversions. Sizes here have items of 4 bytes, and what grows
/// with the batch is rounded up to a power of two, so that an incomplete batch takes the kernel
/// that is there.
double bf16x6_microseconds(const GpuModel& gpu, const WgmmaSizes& sizes, const WgmmaConfig& config);

/// What is worth timing, by the model's order; rows are 128.
std::vector<WgmmaConfig> bf16x6_configs(const GpuModel& gpu, const WgmmaSizes& sizes);
/// Throws NotSupported when that is no configuration, or none for these sizes.
WgmmaConfig bf16x6_config_named(const WgmmaSizes& sizes, const std::string& name);

/// Blocks of a launch, of sizes as they are: each has tile after tile, or a part of a tile's sums.
int bf16x6_blocks(const GpuModel& gpu, const WgmmaSizes& sizes, const WgmmaConfig& config);

}  // namespace tenon::cuda
