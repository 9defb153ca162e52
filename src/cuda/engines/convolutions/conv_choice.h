// Chooses among the shares of the work that a block of the convolution kernels can take. The choice
// depends on sizes and the GPU's model. The number of images is rounded up to a power of two, so
// another batch size rarely needs another compilation.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/engines/convolutions/conv_config.h"
#include "device/gpu_model.h"

namespace tenon::cuda {

/// The best configurations by the model, best first, at most `per_tile` of each tile. Empty if none
/// fits.
std::vector<ConvConfig> conv_configs(const GpuModel& gpu, const ConvShape& shape,
                                     std::size_t per_tile);

}  // namespace tenon::cuda
