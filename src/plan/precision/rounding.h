// Which operands of float32 products are rounded to 16 bits before the product reads them, and
// which weights get a rounded copy that outlives the step.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// The tensors that autocast() rounded, by the node whose value they round.
using RoundedValues = std::unordered_map<const Node*, Tensor>;
/// Rounds the operands of float32 contractions to the precision that was chosen. Sums and results
/// stay float32. Adds what it rounded to `rounded`.
Roots autocast(Roots roots, const PlanOptions& options, RoundedValues& rounded);
/// A bias gradient sums values that a product also reads, rounded. This pass makes the bias
/// gradient sum the rounded values instead, so the float32 values have no reader and are never
/// written.
Roots sum_rounded(Roots roots, const PlanOptions& options, RoundedValues& rounded);

/// Whether a graph stores or multiplies values in 16 bits, and whether it has products that round
/// their operands to bfloat16.
struct LowPrecision {
  bool any = false, bf16_products = false;
};
LowPrecision low_precision_in(std::span<Node* const> nodes);

/// The 16-bit dtype that both operands of a product are rounded to ahead of it, if rounding the
/// `kept` operands costs nothing; Float32: they are not rounded ahead.
DType rounded_ahead(const Node& product, const std::array<bool, 2>& kept,
                    const PlanOptions& options);

struct WeightToKeep {
  Node* weight = nullptr;
  DType dtype = DType::BFloat16;  // the dtype of the copy
  bool channels_last = false;     // filters [K, C, R, S], kept as [K, R*S, C]
};
/// The contents of a weight's rounded copy.
Tensor rounded_copy(const Tensor& weight, DType dtype, bool channels_last);
bool is_stored_channels_last(const Tensor& copy, const Node& weight);

/// Large variables that products of this graph would read rounded in every run. A rounded copy
/// beside the variable, written together with the variable, saves these casts. Filters that the
/// graph does not assign need no work in any run: small ones get copies too, and every copy has the
/// layout that convolutions read. On the CPU only matrices that the graph does not assign get
/// copies: a product rounds while packing, and a step that assigns would write as many additional
/// bytes as it saves reading.
std::vector<WeightToKeep> weights_to_keep_rounded(std::span<const Tensor> roots,
                                                  const PlanOptions& options);

}  // namespace tenon
