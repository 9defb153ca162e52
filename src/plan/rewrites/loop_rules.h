// Graph rules for loops (scan) and branches (cond). They run before lowering.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// For a GPU: both branches of a cond are computed and one result is selected.
Roots inline_branches(Roots roots, const PlanOptions& options);
/// Merges scans with one body and equal inputs into one scan that returns all requested results: a
/// gradient asks the forward scan for more of its per-step values. Drops results and inputs that
/// nothing reads.
Roots merge_loops(Roots roots, const PlanOptions& options);
/// Drops results of branches, and of the steps of loops, that nothing reads, and inputs that
/// nothing reads then. A kernel of a loop writes all its results.
Roots drop_loop_results(Roots roots, const PlanOptions& options);
/// For a GPU: pads the rows of stacked inputs and results of scans to the alignment of allocations.
Roots pad_loop_rows(Roots roots, const PlanOptions& options);

}  // namespace tenon
