// Graph rules for loops (scan) and branches (cond). They run before lowering.
#pragma once

#include "plan/graph_passes.h"

namespace tenon {

/// Merges scans with one body and equal inputs into one scan that returns all requested results: a
/// gradient asks the forward scan for more of its per-step values. Drops results that nothing
/// reads. If the program runs on a GPU, both branches of a cond are computed and one result is
/// selected.
Roots simplify_loops(Roots roots, const PlanOptions& options);

}  // namespace tenon
