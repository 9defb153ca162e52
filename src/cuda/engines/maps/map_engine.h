// The map engine of the CUDA backend: every map region as generated kernels.
#pragma once

#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// Claims every map region, and joined regions that can share a launch, such as the updates of many
/// small parameters. Plans may point to the engine for as long as the process runs.
const Engine& map_engine(const Target& target);

}  // namespace tenon::cuda
