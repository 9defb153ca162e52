// Column sums that start in a product's epilogue: one part of the rule `reductions`.
#pragma once

#include "plan/merge/merge.h"

namespace tenon {

/// Starts sums over the columns of products' results in the products' epilogues.
void reduce_columns(Merger& merger);

}  // namespace tenon
