// An engine for convolutions over small images and their gradients, in tf32, bfloat16 or float16:
// patches of the image stay on chip (cuda/kernels/conv_*.cuh). The native engine takes the rest.
#pragma once

#include "cuda/engines/convolutions/conv_config.h"
#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// One a target, never destroyed.
const Engine& conv_engine(const Target& target);

/// With a share of the work that it would not choose: for tests and measurements.
std::unique_ptr<Kernel> prepare_conv(const Region& region, std::span<const Value> values,
                                     const Target& target, const ConvConfig& config);

}  // namespace tenon::cuda
