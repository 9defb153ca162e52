// Gradients through loops and branches: a scan from the last step to the first, a branch of both
// gradients.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// Gradients with regard to each input of a Scan node, given those of its results (undefined where
/// there is none); undefined where none flows.
std::vector<Tensor> vjp_scan(const Tensor& out, std::span<const Tensor> cotangents);
/// The same for Cond: a branch of both gradients.
std::vector<Tensor> vjp_cond(const Tensor& out, std::span<const Tensor> cotangents);

/// The gradient of several outputs at once, each with its seed; undefined where none arrives.
std::vector<Tensor> grad_of_several(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                    std::span<const Tensor> seeds);

}  // namespace tenon
