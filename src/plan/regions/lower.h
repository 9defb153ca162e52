// Lowering: from nodes to items, whose arguments are strided references. After lowering no views
// exist: each view is folded into the way its users read, or replaced by a copy if strides cannot
// express it. Fusion (fuse.h) starts from these items.
#pragma once

#include <span>

#include "graph/order.h"
#include "plan/program/pass_tally.h"
#include "plan/program/program.h"
#include "plan/regions/items.h"

namespace tenon {

/// `order`: the nodes that the roots need. `tally`: what the passes did that share this walk.
Lowered lower(std::span<const Tensor> roots, const NumberedOrder& order,
              std::span<Node* const> leaves, const PlanOptions& options, PassTally& tally);

}  // namespace tenon
