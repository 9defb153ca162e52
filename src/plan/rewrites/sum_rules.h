// Moves factors that are constant along the axes of a sum out of the sum, so that sums of one
// tensor times different factors become one sum.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Moves factors that are constant along the axes of a sum out of the sum.
Roots factors(Roots roots, const PlanOptions& options);

/// x, if the node is the sum of (x - mean of x)² with the mean over the summed axes; otherwise
/// null.
Node* summed_deviations(const Node& node);

}  // namespace tenon
