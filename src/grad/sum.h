// The sum of the gradients that a tensor receives from its readers.
#pragma once

#include <span>

#include <tenon/tensor.h>

namespace tenon {

/// `parts` has at least one element. Gradients of slices, selects and splits are paddings with
/// zeros. Paddings that do not overlap along an axis are concatenated in one write; only
/// overlapping ones are added, after all other parts. Both happen in the order of `parts`.
Tensor sum_of(std::span<const Tensor> parts);

}  // namespace tenon
