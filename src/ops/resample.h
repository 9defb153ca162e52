// The weights of cubic convolution, shared by interpolation and grids.
#pragma once

#include <array>

#include <tenon/tensor.h>

namespace tenon {

/// Weights of the four neighbours of a position at the distance `t` in [0, 1) behind the second one
/// (Keys, "Cubic convolution interpolation for digital image processing", 1981), with the slope `a`
/// at distance 1.
std::array<Tensor, 4> cubic_weights(const Tensor& t, double a);

}  // namespace tenon
