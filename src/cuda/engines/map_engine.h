// The map engine of the CUDA backend: every map region as generated kernels.
#pragma once

#include <memory>
#include <span>

#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// Claims every map region. The engine lives as long as the program.
const Engine& map_engine(const Target& target);

/// Whether the region may share one launch with others.
bool can_join(const Region& region, std::span<const Value> values);
/// One launch (or as few as take all arguments) for several regions that can join and do not depend
/// on one another: the updates of many small parameters, say.
std::unique_ptr<Kernel> prepare_together(std::span<const Region* const> regions,
                                         std::span<const Value> values, const Target& target);

}  // namespace tenon::cuda
