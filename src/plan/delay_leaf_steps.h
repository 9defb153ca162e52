// Kernels of what a program is given, placed where they are needed.
#pragma once

#include <vector>

#include "plan/program.h"

namespace tenon {

/// Puts kernels that read nothing of the arena (filters that are rounded or laid otherwise)
/// directly in front of the first step that waits for them, rather than in front of all, where the
/// arena then has markedly less live at its peak. `after`: of each step, those that wait for it.
void delay_leaf_steps(const Program& program, const std::vector<std::vector<int>>& after,
                      std::vector<int>& order);

}  // namespace tenon
