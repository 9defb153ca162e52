// Fusion: decides which items run in one region. It only decides; emit.h turns a group into a
// region.
#pragma once

#include "plan/program/pass_tally.h"
#include "plan/program/program.h"
#include "plan/regions/groups.h"

namespace tenon {

/// Returns the groups. With fusion disabled every item is a group of its own. Nothing is recomputed
/// yet (recompute.h). `tally` receives the times and counts of the passes that work on groups.
Fused fuse(const Lowered& graph, const PlanOptions& options, PassTally& tally);

}  // namespace tenon
