// 16-bit copies of weights, kept beside the weight so that products need not round the weight in
// every run. A program that assigns the weight also assigns the copy. After any other assignment
// the copy is refreshed before the next program that reads it. Which weights get copies is decided
// in plan/precision/rounding.h.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/node.h"
#include "plan/program/program.h"

namespace tenon {

/// A weight that a program reads rounded, and whether the program assigns the weight.
struct KeptWeight {
  Tensor weight, copy;
  bool assigned = false;
};

/// Copies of the weights that the graph of `roots` would round. Assignments of the copies are
/// appended to `roots`.
struct KeptWeights {
  std::vector<KeptWeight> weights;
  std::vector<RoundedCopy> copies;
};
KeptWeights keep_rounded(std::vector<Tensor>& roots, const PlanOptions& options);

/// Before a run: refreshes copies whose weights were assigned elsewhere.
void refresh(const std::vector<KeptWeight>& weights);
/// After a run that assigned weights and copies, and after mark_assigned(): records that each copy
/// holds its weight's value at time `at`.
void mark_fresh(const std::vector<KeptWeight>& weights, std::uint64_t at);

}  // namespace tenon
