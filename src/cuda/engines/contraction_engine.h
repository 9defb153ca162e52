// The backend's own contraction engine: matrix products, convolutions and their gradients with
// their epilogues, on tensor cores or plain FMAs. Claims every contraction that computes in numbers
// (bool aside), and needs no vendor library.
#pragma once

#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// One a target, never destroyed.
const Engine& native_contraction_engine(const Target& target);

}  // namespace tenon::cuda
