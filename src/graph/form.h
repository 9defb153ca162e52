// A graph apart from its sizes: what two graphs must agree in for one to be the other at another
// size, and the sizes themselves.
//
// Sizes are extents, and what attributes count in elements (where a slice starts, how long a loop
// is, over which extents a sum goes). All else is fixed: ops, types, edges, labels, numbers, the
// bodies of loops and branches. Two graphs with the same `fixed` list their sizes in the same
// order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node_index.h"

namespace tenon {

struct GraphForm {
  /// Neighbouring sizes that are the extents of one tensor.
  struct Extents {
    std::uint32_t first = 0, rank = 0;
  };
  std::vector<std::uint64_t> fixed;
  std::vector<std::int64_t> sizes;
  std::vector<Extents> extents;
  /// Whole numbers that the graph computes with: one that divides a sum may be how many it adds up.
  std::vector<std::int64_t> numbers;
};

/// Of the graph of `roots`; `order` is all of its nodes. Realised nodes are leaves.
GraphForm form_of(const NumberedOrder& order, std::span<const Tensor> roots);

}  // namespace tenon
