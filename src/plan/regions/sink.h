// Sinking: cheap results move to their only later reader.
#pragma once

#include "plan/regions/grouping.h"

namespace tenon {

/// Moves a result with only one later reader to that reader if the result is cheap to compute there
/// from values that are stored anyway (1 - y*y beside y). The greedy walk of fusion has put it
/// where its arguments are computed. Returns the number of readers that compute something
/// themselves.
int sink(Grouping& groups);

}  // namespace tenon
