// Convolutions of stride 1 over 16-bit feature maps with rows of whole groups of 8 pixels: the
// check, the sharing of the work, and the launches (cuda/kernels/conv/conv_rows.cuh).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/engines/convolutions/conv_config.h"
#include "cuda/engines/maps/print_map.h"
#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// True if the weight gradient kernel can load both operands 16 bytes at a time.
bool gradient_by_pieces(const ConvShape& shape);

/// Configurations, best first by the model; empty if conv_rows.cuh cannot compute the convolution.
std::vector<ConvConfig> conv_rows_configs(const GpuModel& gpu, const ConvShape& shape);

std::unique_ptr<Kernel> prepare_conv_rows(const Region& region, const ConvShape& shape,
                                          const ConvConfig& config, const Target& target,
                                          PrintedEpilogue printed);

}  // namespace tenon::cuda
