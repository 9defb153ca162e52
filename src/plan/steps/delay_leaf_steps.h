// Delays steps that read only leaves until their results are needed. Changes only the order of
// steps.
#pragma once

#include <vector>

#include "plan/program/program.h"

namespace tenon {

/// Moves steps that read nothing from the arena (rounding or permuting a weight) to directly before
/// the first step that waits for them, instead of the front of the program. The order changes only
/// where the arena's peak becomes markedly lower. `after`: by step, the steps that wait for it.
/// Returns the number of steps that moved.
int delay_leaf_steps(const Program& program, const std::vector<std::vector<int>>& after,
                     std::vector<int>& order);

}  // namespace tenon
