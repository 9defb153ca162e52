// Engine for convolutions over 16-bit images of few channels with NHWC results, and for their
// weight gradients: a network's first layer (cuda/kernels/conv/conv_image.cuh). The native engine
// takes the rest.
#pragma once

#include "cuda/target.h"
#include "plan/program/engine.h"

namespace tenon::cuda {

/// One engine per target, never destroyed.
const Engine& image_engine(const Target& target);

}  // namespace tenon::cuda
