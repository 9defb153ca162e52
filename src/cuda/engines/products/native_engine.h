// The backend's own contraction engine: matrix products, convolutions and their gradients with
// their epilogues, on tensor cores or plain FMAs. Claims every contraction of numbers (not bool)
// and needs no vendor library.
#pragma once

#include "cuda/engines/products/native_config.h"
#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// One engine per target, never destroyed.
const Engine& native_contraction_engine(const Target& target);

/// The kernel of a floating-point region (not float64) with the given tile and number of splits,
/// added in turn on request: for tests and measurements.
std::unique_ptr<Kernel> prepare_contraction(const Region& region, std::span<const Value> values,
                                            const Target& target, const Tile& tile, int splits,
                                            bool serial = false);

}  // namespace tenon::cuda
