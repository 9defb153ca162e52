// Images between 16-bit convolutions: stored in 16 bits.
#pragma once

#include "plan/graph_passes.h"

namespace tenon {

/// Of a graph that keeps its images so (plan/layout.h): with their channels last, or in their
/// order.
Roots lower_activation_precision(Roots roots, const PlanOptions& options);

}  // namespace tenon
