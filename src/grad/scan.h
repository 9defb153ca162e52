// Gradients of loops and branches: the gradient of a scan is a scan from the last step to the
// first; the gradient of a cond is a cond of both branches' gradients.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// Gradients with respect to each input of a Scan node, given those of its results (undefined if
/// there is none); undefined if no gradient flows.
std::vector<Tensor> vjp_scan(const Tensor& out, std::span<const Tensor> cotangents);
/// The same for Cond.
std::vector<Tensor> vjp_cond(const Tensor& out, std::span<const Tensor> cotangents);

/// The gradient of several outputs at once, each with its own seed; undefined if no gradient
/// arrives.
std::vector<Tensor> grad_of_several(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                    std::span<const Tensor> seeds);

}  // namespace tenon
