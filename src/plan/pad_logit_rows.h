// Wide rows of class scores on a GPU: 16 bits each where operands are rounded, and rows that begin
// at multiples of 128 bytes.
#pragma once

#include "plan/graph_passes.h"

namespace tenon {

/// Products of 16-bit operands whose rows go through a softmax over at least 1,024 classes are kept
/// in 16 bits; where a row is no multiple of 16 bytes, they and what is computed of them element by
/// element have columns beyond the last class, which nobody reads but products of the gradient: for
/// them there are zeros.
Roots convert_rows(Roots roots, const PlanOptions& options);

}  // namespace tenon
