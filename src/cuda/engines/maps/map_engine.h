// The map engine of the CUDA backend: every map region as generated kernels.
#pragma once

#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// Claims every map region, and those that can share a launch joined: the updates of many small
/// parameters, say. The engine lives as long as the program.
const Engine& map_engine(const Target& target);

}  // namespace tenon::cuda
