// Tiles, clusters and splits of Hopper's float32 products of bfloat16 parts: a model of their time,
// and the names of configurations. Nothing here depends on an operand's memory.
#pragma once

#include <string>
#include <vector>

#include "cuda/engines/products/wgmma_config.h"
#include "device/gpu_model.h"

namespace tenon::cuda {

/// Stages of a block's ring.
inline constexpr int kBf16x6Stages = 4;

/// Time of a product without its conversions. Sizes here have items of 4 bytes. Sizes that grow
/// with the batch are rounded up to a power of two, so that an incomplete batch uses the compiled
/// kernel.
double bf16x6_microseconds(const GpuModel& gpu, const WgmmaSizes& sizes, const WgmmaConfig& config);

/// The configurations worth timing, in the model's order; rows are 128.
std::vector<WgmmaConfig> bf16x6_configs(const GpuModel& gpu, const WgmmaSizes& sizes);
/// Throws NotSupported if the name is not a configuration for these sizes.
WgmmaConfig bf16x6_config_named(const WgmmaSizes& sizes, const std::string& name);

/// Blocks of a launch for actual sizes. Each block has tile after tile, or a part of a tile's sums.
int bf16x6_blocks(const GpuModel& gpu, const WgmmaSizes& sizes, const WgmmaConfig& config);

}  // namespace tenon::cuda
