// What loops on a GPU read and hand on in 16 bits.
#pragma once

#include "plan/graph_passes.h"

namespace tenon {

/// What all steps of a scan share and only products read, which round it, is rounded once in front
/// of the loop, and a carry that such products alone read is carried rounded.
Roots round_loop_operands(Roots roots, const PlanOptions& options);
/// What a scan stacks for readers that all round it is stacked rounded.
Roots round_loop_results(Roots roots);

}  // namespace tenon
