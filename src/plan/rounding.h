// Which operands of float32 products are rounded to 16 bits before the product reads them, and
// which weights deserve a rounded copy that outlives the step.
#pragma once

#include <array>
#include <vector>

#include "plan/graph_passes.h"

namespace tenon {

/// The 16-bit type that both operands of a product are rounded to ahead of it, where rounding those
/// that are `kept` costs nothing; Float32: they are not.
DType rounded_ahead(const Node& product, const std::array<bool, 2>& kept,
                    const PlanOptions& options);

struct WeightToKeep {
  Node* weight = nullptr;
  DType dtype = DType::BFloat16;  // that it is rounded to
  bool channels_last = false;     // filters [K, C, R, S], kept as [K, R*S, C]
};
/// What the copy of a weight holds, and whether it is one of the other kind.
Tensor rounded_copy(const Tensor& weight, DType dtype, bool channels_last);
bool lies_channels_last(const Tensor& copy, const Node& weight);

/// Variables that products of this graph would read rounded at every run, and that are large: a
/// copy kept beside the variable, written by whoever assigns it, saves casting them again and
/// again. Of filters that the graph does not assign, copies cost nothing at any run: those of small
/// ones are kept too, and all of them as convolutions read them. On the CPU only matrices that the
/// graph does not assign: a product rounds as it packs, and a step that assigns would write as many
/// bytes more as it reads less.
std::vector<WeightToKeep> weights_to_keep_rounded(std::span<const Tensor> roots,
                                                  const PlanOptions& options);

}  // namespace tenon
