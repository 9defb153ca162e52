// The sum of the gradients that reach a tensor from its readers.
#pragma once

#include <span>

#include <tenon/tensor.h>

namespace tenon {

/// Of at least one. Gradients of slices, selects and splits arrive as paddings with zeros: those
/// that leave each other free along an axis are laid side by side in one write, and only what
/// overlaps is added, after all other parts; both in the order of `parts`.
Tensor sum_of(std::span<const Tensor> parts);

}  // namespace tenon
