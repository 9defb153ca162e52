// Engine for convolutions over small feature maps and their gradients, in tf32, bfloat16 or
// float16. Patches stay in shared memory (cuda/kernels/conv/). The native engine takes the
// rest.
#pragma once

#include "cuda/engines/convolutions/conv_config.h"
#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// One engine per target, never destroyed.
const Engine& conv_engine(const Target& target);

/// Prepares with a given configuration instead of the engine's choice: for tests and measurements.
std::unique_ptr<Kernel> prepare_conv(const Region& region, std::span<const Value> values,
                                     const Target& target, const ConvConfig& config);

}  // namespace tenon::cuda
