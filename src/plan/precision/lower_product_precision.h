// Large products whose results go into row sums, on a GPU in bfloat16: stored in 16 bits.
#pragma once

#include "plan/cleanup/rewrite.h"
#include "plan/graph/node_users.h"
#include "plan/program/program.h"

namespace tenon {

/// Rounds large products of bfloat16 operands if row sums follow from them element by element
/// (parts of a residual stream, gradients of normalised values).
Roots lower_product_precision(Roots roots, const PlanOptions& options);

/// The minimum number of elements for which rounding a product, or a sum of one, pays.
constexpr std::int64_t kFewestRounded = 1 << 20;

/// Whether a reduction is over rows: over the last axis alone.
bool is_of_rows(const Node& reduction);

/// The tensor of `dtype` that `wide` is the float32 cast of; undefined if it is no such cast.
Tensor before_cast(const Node& wide, DType dtype);

/// Whether row sums follow from x element by element, and no row maximum does.
bool ends_in_row_sums(const Node& x, const NodeUsers& users);

}  // namespace tenon
