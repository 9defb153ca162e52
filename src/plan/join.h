// Joining: small map regions that do not depend on one another become parts of one step, so that
// they share a launch. Only engines that launch (Engine::joins) have use for it.
//
// The longest path through the steps never grows: a region joins others only where it waits for
// nothing that matters and nothing that matters waits for it.
#pragma once

#include <vector>

#include "plan/program.h"

namespace tenon {

/// Rewrites the steps and `before` (for each step, the steps it waits for), and says in
/// Program::joining and in the regions' why what was joined and what was not.
void join_regions(Program& program, std::vector<std::vector<int>>& before,
                  const PlanOptions& options);

}  // namespace tenon
