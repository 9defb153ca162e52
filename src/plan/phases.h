// Phases: a map step that waits for another becomes a later phase of its launch, where a launch in
// phases is expected to take less time than two. What a short row comes to and the element-wise
// steps that read that are one launch so: the factor of clipping by a norm and the updates, say.
//
// Engines weigh (Engine::saves); here stands who may wait for whom. Nothing else than the two is
// ever put off.
#pragma once

#include <vector>

#include "plan/program.h"

namespace tenon {

/// Rewrites the steps and `before` (for each step, the steps it waits for), and says in
/// Program::joining and in the regions' why what became phases and what did not. Without the pass
/// join nothing shares a launch.
void join_in_phases(Program& program, std::vector<std::vector<int>>& before,
                    const PlanOptions& options);

}  // namespace tenon
