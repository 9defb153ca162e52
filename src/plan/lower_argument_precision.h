// Arguments of activation functions on a GPU: kept for the gradient in 16 bits where all that is
// computed of them is rounded to that anyway.
#pragma once

#include "plan/graph_passes.h"

namespace tenon {

/// Rounds sums of products of 16-bit operands where they are large, and whatever follows from them
/// element by element ends in at least two casts to that type (forward and backward).
Roots lower_argument_precision(Roots roots);

}  // namespace tenon
