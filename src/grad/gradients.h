// A variant of grad() that also reports whether the output depends on the inputs at all.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

struct GradientsOfLoss {
  std::vector<Tensor> gradients;  // as grad() returns them
  bool reached = false;  // whether the output depends on any input through ops with gradients
};
GradientsOfLoss gradients_of(const Tensor& output, std::span<const Tensor> inputs,
                             const Tensor& seed = {});

/// For each input, whether the output depends on it through ops with gradients.
std::vector<char> are_reached(const Tensor& output, std::span<const Tensor> inputs);

}  // namespace tenon
