// Residual streams of large networks and their gradients, on a GPU in bfloat16: stored in 16 bits.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Rounds large float32 sums to bfloat16 in two cases: a product's result is added to a residual
/// stream that is normalised; or a product reads the sum rounded while others read it unrounded (a
/// stream's gradient). Expects the products as lower_product_precision() leaves them.
Roots lower_residual_precision(Roots roots, const PlanOptions& options);

}  // namespace tenon
