// Tiles, clusters and splits of the Hopper matrix product: the choice by sizes, the alternatives
// worth timing, and the names of configurations. Nothing here depends on an operand's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/gpu_model.h"

namespace tenon::cuda {

struct WgmmaSizes {
  std::int64_t m = 0, n = 0, k = 0;
  int item = 2;        // bytes of an operand's element
  bool casts = false;  // whether a large part of the operands must be converted or transposed first
  bool whole = false;  // whether a block must have all of a tile's sums
};

struct WgmmaConfig {
  int rows = 128;   // of a tile, 64 or 128; its columns are kWgmmaColumns
  int cluster = 1;  // blocks above each other that share columns of B: 1 or 2
  int splits = 1;   // blocks of a cluster that share the inner sum of a tile

  bool operator==(const WgmmaConfig&) const = default;
};

WgmmaConfig choose_wgmma(const GpuModel& gpu, const WgmmaSizes& sizes);

/// The configurations worth timing, the engine's choice first.
std::vector<WgmmaConfig> wgmma_configs(const GpuModel& gpu, const WgmmaSizes& sizes);
/// "128-2/1": rows, cluster, splits.
std::string wgmma_config_name(const WgmmaConfig& config);
/// Throws NotSupported if the name is not a configuration for these sizes.
WgmmaConfig wgmma_config_named(const WgmmaSizes& sizes, const std::string& name);

/// Stages along k.
std::int64_t wgmma_steps(const WgmmaSizes& sizes);
/// Tiles; of the tiles above one another in a cluster only one counts.
std::int64_t wgmma_tiles(const WgmmaSizes& sizes, const WgmmaConfig& config);
/// Stages of the ring that fit in shared memory.
int wgmma_stages(const WgmmaConfig& config, bool turns);

/// True if the engine gains over smaller tiles and other instructions: enough work to fill a GPU,
/// or a large matrix to stream.
bool wgmma_is_worth(const GpuModel& gpu, const WgmmaSizes& sizes);

/// Approximate time: arithmetic or memory, and a launch.
double wgmma_microseconds(const GpuModel& gpu, const WgmmaSizes& sizes);

/// Sizes for the choices: those that grow with the batch are rounded up to a power of two, so that
/// an incomplete batch uses the compiled kernel.
WgmmaSizes wgmma_class(const WgmmaSizes& sizes);

}  // namespace tenon::cuda
