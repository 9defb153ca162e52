// Residual streams of large networks and their gradients, on a GPU in bfloat16: stored in 16 bits.
#pragma once

#include "plan/graph_passes.h"

namespace tenon {

/// Rounds large float32 sums to bfloat16 where a product's result is added to a residual stream
/// that is normalised, and where a product reads the sum rounded while others read it as it is (a
/// stream's gradient). Finds the products as lower_product_precision() leaves them.
Roots lower_residual_precision(Roots roots);

}  // namespace tenon
