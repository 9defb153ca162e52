// The opaque engine of the CUDA backend: pooling, movement, sorting, softmax, attention and
// response normalisation, one op per region.
#pragma once

#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// Claims every opaque region that the reference engine knows.
const Engine& opaque_engine(const Target& target);

}  // namespace tenon::cuda
