// Large matrix products of 16-bit arithmetic on Hopper, by the tensor copy engine and wgmma, with
// the region's own epilogue.
#pragma once

#include <memory>
#include <span>

#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// Claims matrix products that compute in bfloat16 or float16, are large enough to fill the card,
/// and have one matrix on the right. Operands of another type are converted into the workspace.
/// One a target, never destroyed.
const Engine& wgmma_engine(const Target& target);

/// The kernel of a product that the engine could claim but for its size: for tests.
std::unique_ptr<Kernel> prepare_wgmma(const Region& region, std::span<const Value> values,
                                      const Target& target);

/// Whether the driver makes the tensor maps that the kernel needs.
bool has_tensor_maps();

}  // namespace tenon::cuda
