// An engine for convolutions over images of a few channels in 16 bits whose results lie channels
// last, and the gradients of their filters: a network's first (cuda/kernels/conv_image.cuh). The
// native engine takes the rest.
#pragma once

#include "cuda/target.h"
#include "plan/engine.h"

namespace tenon::cuda {

/// One a target, never destroyed.
const Engine& image_engine(const Target& target);

}  // namespace tenon::cuda
