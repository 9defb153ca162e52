// grad() for those who ask whether there is a way at all.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

struct GradientsOfLoss {
  std::vector<Tensor> gradients;  // as grad() gives them
  bool reached = false;  // whether the output is made of any of the inputs by ops with gradients
};
GradientsOfLoss gradients_of(const Tensor& output, std::span<const Tensor> inputs,
                             const Tensor& seed = {});

/// Of each input whether the output is made of it by ops with gradients.
std::vector<char> are_reached(const Tensor& output, std::span<const Tensor> inputs);

}  // namespace tenon
