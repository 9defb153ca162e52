// Epilogues: element-wise work that a contraction does on its result before it is stored.
#pragma once

#include "plan/regions/grouping.h"

namespace tenon {

/// Moves the loop nest behind each contraction into the contraction's epilogue, where the space and
/// the references allow it. Returns the number of epilogues.
int attach_epilogues(Grouping& groups);

}  // namespace tenon
