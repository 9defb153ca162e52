// Arguments of activation functions on a GPU: stored for the backward pass in 16 bits if everything
// computed from them is rounded to 16 bits anyway.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Rounds large results of products with 16-bit operands if everything computed from them element
/// by element ends in at least two casts to the same 16-bit dtype (forward and backward).
Roots lower_argument_precision(Roots roots, const PlanOptions& options);

}  // namespace tenon
