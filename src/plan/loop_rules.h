// Rules about loops and branches in the graph, before anything is lowered.
#pragma once

#include "plan/graph_passes.h"

namespace tenon {

/// Scans of one body over the same inputs become one that gives what any of them is asked for: a
/// gradient asks the forward scan for more of its steps. Results that nobody reads go. Where the
/// program runs on a GPU, both branches of a cond are computed and one is taken.
Roots simplify_loops(Roots roots, const PlanOptions& options);

}  // namespace tenon
