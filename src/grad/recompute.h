// The gradient of checkpoint(): computes the function again, then its gradient.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// Gradients with respect to each input of an Op::Function node whose rule has a body.
std::vector<Tensor> vjp_recomputed(const Tensor& out, std::span<const Tensor> cotangents);

}  // namespace tenon
