// Stores the activations between 16-bit convolutions in 16 bits. Other values are rounded in the
// other lower_… files and in rounding.h.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Changes graphs that plan/layout/layout.h selects, with NHWC or NCHW activations.
Roots lower_activation_precision(Roots roots, const PlanOptions& options);

}  // namespace tenon
