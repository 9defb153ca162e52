// The backend's own contraction engine: matrix products, convolutions and their gradients with
// their epilogues, on tensor cores or plain FMAs. Claims every contraction that computes in numbers
// (bool aside), and needs no vendor library.
#pragma once

#include "cuda/engines/products/native_config.h"
#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// One a target, never destroyed.
const Engine& native_contraction_engine(const Target& target);

/// The kernel of a region of floating numbers (float64 aside) with a tile and a number of splits
/// instead of the chosen ones, adding them up in turn where that is asked for: for tests and
/// measurements.
std::unique_ptr<Kernel> prepare_contraction(const Region& region, std::span<const Value> values,
                                            const Target& target, const Tile& tile, int splits,
                                            bool serial = false);

}  // namespace tenon::cuda
