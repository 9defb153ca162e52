// Large products whose results go into sums of rows or columns, on a card in bfloat16: stored in 16
// bits.
#pragma once

#include "plan/graph_passes.h"
#include "plan/node_users.h"

namespace tenon {

/// Rounds products of bfloat16 operands where they are large, and sums of rows follow from them
/// element by element (a residual stream's parts, gradients of normalised values), or sums of
/// columns beside a rounding (an activation's gradient).
Roots narrow_products(Roots roots);

/// Whether sums of rows follow from x element by element, and no largest element of rows.
bool ends_in_row_sums(const Node& x, const NodeUsers& users);

}  // namespace tenon
