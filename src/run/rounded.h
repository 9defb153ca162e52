// Copies of weights in 16 bits, kept beside the weight so that products need not round it at every
// run. A program that assigns the weight assigns the copy too; after any other assignment the copy
// is made anew before the next program that reads it.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/node.h"
#include "plan/program.h"

namespace tenon {

/// What a program reads rounded, and whether it assigns it.
struct KeptWeight {
  Tensor weight, copy;
  bool assigned = false;
};

/// Copies of the weights that the graph of `roots` would round, and their assignments, which are
/// added to `roots`.
struct KeptWeights {
  std::vector<KeptWeight> weights;
  std::vector<RoundedCopy> copies;
};
KeptWeights keep_rounded(std::vector<Tensor>& roots, const PlanOptions& options);

/// Before a run: copies whose weights were assigned elsewhere are made anew.
void refresh(const std::vector<KeptWeight>& weights);
/// After a run that assigned both, and mark_assigned(): copies hold what their weights had `at`
/// then.
void mark_fresh(const std::vector<KeptWeight>& weights, std::uint64_t at);

}  // namespace tenon
