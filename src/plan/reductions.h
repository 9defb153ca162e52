// Reductions of a product's whole result (the sum of squares of a weight's gradient, for clipping
// by a norm) become part of its epilogue, so that nobody reads the result again for them.
//
// Engines say whether they can (Capabilities). Where another than the product's own
// engine would have to run it then, their models weigh that (Engine::estimate). What was tuned does
// not count: the same graph is planned the same way, whatever a machine has measured.
#pragma once

#include <vector>

#include "plan/program.h"

namespace tenon {

/// Rewrites the steps and `before` (for each step, the steps it waits for), and says in the
/// regions' why what became part of an epilogue and what did not.
void attach_reductions(Program& program, std::vector<std::vector<int>>& before,
                       const PlanOptions& options);

}  // namespace tenon
