// Large float32 matrix products on Hopper, as six products of bfloat16 parts by wgmma, with the
// region's own epilogue.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// Claims float32 products that are large enough and have one matrix on the right, which is split
/// into the workspace. docs/numerics.md states the accuracy. One engine per target, never
/// destroyed.
const Engine& bf16x6_engine(const Target& target);

/// The kernel of a product, whatever its size, in the configuration of that name ("": the engine's
/// choice).
std::unique_ptr<Kernel> prepare_bf16x6(const Region& region, std::span<const Value> values,
                                       const Target& target, const std::string& configuration = {});

}  // namespace tenon::cuda
