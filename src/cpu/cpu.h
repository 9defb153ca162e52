// The one entry header of the CPU backend: its engines.
#pragma once

#include <span>

#include "plan/engine.h"

namespace tenon::cpu {

/// Plain loops over every region, float64 inside: what the others are checked against.
const Engine& reference_engine();
/// Map regions tile by tile in cache, vectorised.
const Engine& map_engine();
/// Blocked matrix products and implicit-GEMM convolutions with fused epilogues.
const Engine& contraction_engine();
/// Pooling and movement.
const Engine& opaque_engine();

}  // namespace tenon::cpu
