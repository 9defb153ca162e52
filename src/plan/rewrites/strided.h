// Strided convolutions on a GPU, rewritten as convolutions of stride 1, for which the device has
// fast kernels.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Strided convolutions and their gradients become convolutions of stride 1. With NHWC activations,
/// the input gradient of a 1 x 1 convolution becomes a matrix product of pixels, whose results are
/// spread to their positions.
Roots remove_strides(Roots roots, const PlanOptions& options);

}  // namespace tenon
