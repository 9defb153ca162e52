// Convolutions of stride 1 over images of 16 bits with rows of whole groups of 8 pixels: which they
// are, how their work is shared, and their launches (cuda/kernels/conv_rows.cuh).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/engines/convolutions/conv_config.h"
#include "cuda/engines/maps/print_map.h"
#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// Whether the kernel of filters' gradients loads both images 16 bytes at a time.
bool gradient_by_pieces(const ConvShape& shape);

/// Ways to share its work, best first by the model; empty where it is no such convolution.
std::vector<ConvConfig> conv_rows_configs(const GpuModel& gpu, const ConvShape& shape);

std::unique_ptr<Kernel> prepare_conv_rows(const Region& region, const ConvShape& shape,
                                          const ConvConfig& config, const Target& target,
                                          PrintedEpilogue printed);

}  // namespace tenon::cuda
