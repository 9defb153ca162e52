// The form of a graph: its structure apart from sizes, and the sizes separately. Two graphs with
// the same structure are one graph at two sizes.
//
// Sizes are extents, and attributes that count elements (the start of a slice, the length of a
// loop, the extents that a sum covers). Everything else is fixed: ops, dtypes, edges, labels,
// numbers, the bodies of loops and branches. Two graphs with the same `fixed` list their sizes in
// the same order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tenon/tensor.h>

#include "graph/order.h"

namespace tenon {

struct GraphForm {
  /// A run of sizes that are the extents of one tensor.
  struct Extents {
    std::uint32_t first = 0, rank = 0;
  };
  std::vector<std::uint64_t> fixed;
  std::vector<std::int64_t> sizes;
  std::vector<Extents> extents;
  /// Whole numbers that the graph computes with: a divisor of a sum may be the number of summands.
  std::vector<std::int64_t> numbers;
};

/// The form of the graph of `roots`; `order` is all of its nodes. Realised nodes are leaves.
GraphForm form_of(const NumberedOrder& order, std::span<const Tensor> roots);

}  // namespace tenon
