// Large matrix products of 16-bit and tf32 arithmetic on Hopper, by TMA and wgmma, with the
// region's own epilogue.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// Claims matrix products in bfloat16 or float16, or in tf32 with both operands contiguous along k,
/// that are large enough and have one matrix on the right. Operands of another type are converted
/// into the workspace. One engine per target, never destroyed.
const Engine& wgmma_engine(const Target& target);

/// The kernel of a product, whatever its size, in the configuration of that name ("": the engine's
/// choice).
std::unique_ptr<Kernel> prepare_wgmma(const Region& region, std::span<const Value> values,
                                      const Target& target, const std::string& configuration = {});

}  // namespace tenon::cuda
