// Prologues: an element-wise region whose result only contractions read, as operands, is computed
// by those contractions while they load, so that the result is never in memory.
//
// Engines say whether they can (Capabilities) and what it costs (Engine::estimate); a
// contraction never changes to a slower engine for the sake of a prologue.
#pragma once

#include <vector>

#include "plan/program.h"

namespace tenon {

/// Rewrites the steps and `before` (for each step, the steps it waits for), and says in the
/// regions' why what became a prologue and what did not.
void attach_prologues(Program& program, std::vector<std::vector<int>>& before,
                      const PlanOptions& options);

}  // namespace tenon
