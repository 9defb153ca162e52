// Large products whose results go into sums of rows, on a GPU in bfloat16: stored in 16 bits.
#pragma once

#include "plan/graph_passes.h"
#include "plan/node_users.h"

namespace tenon {

/// Rounds products of bfloat16 operands where they are large, and sums of rows follow from them
/// element by element (a residual stream's parts, gradients of normalised values).
Roots lower_product_precision(Roots roots);

/// Elements from which on a product, or a sum of one, is worth rounding.
constexpr std::int64_t kFewestRounded = 1 << 20;

/// Whether a reduction is over rows: over the last axis alone.
bool is_of_rows(const Node& reduction);

/// The tensor of `dtype` that `wide` is in float32; undefined when it is something else.
Tensor before_cast(const Node& wide, DType dtype);

/// Whether sums of rows follow from x element by element, and no largest element of rows.
bool ends_in_row_sums(const Node& x, const NodeUsers& users);

}  // namespace tenon
