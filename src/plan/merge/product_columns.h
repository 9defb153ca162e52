// A part of the rule for reductions of products' results.
#pragma once

#include "plan/merge/merge.h"

namespace tenon {

/// Sums over the columns of products' results begin in those products' epilogues.
void reduce_columns(Merger& merger);

}  // namespace tenon
