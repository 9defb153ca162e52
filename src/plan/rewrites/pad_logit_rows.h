// Wide rows of class scores (logits) on a GPU: stored in 16 bits if operands are rounded, with rows
// that start at multiples of 128 bytes.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Products of 16-bit operands whose rows go through a softmax over at least 1,024 classes are
/// stored in 16 bits. If a row is not a multiple of 16 bytes, the product and element-wise values
/// computed from it get padded columns after the last class. Only the products of the gradient read
/// the padded columns, and find zeros there.
Roots pad_logit_rows(Roots roots, const PlanOptions& options);

}  // namespace tenon
