// Choosing engines, ordering steps, placing values in the arena.
#pragma once

#include "plan/fuse.h"

namespace tenon {

/// Gives every step the engine that measurements advise, where they do; else the one that claims
/// its region that expects to be fastest (by_estimate) and can prepare it. Throws
/// NotSupported, naming the step and every engine's reason, when none does.
void choose_engines(Program& program, const PlanOptions& options);
/// The latter, of one step.
void choose_by_estimate(Step& step, std::span<const Value> values, const PlanOptions& options);
/// Reorders steps: among those that are ready, the one that leaves the least memory live; or, where
/// memory is not shared, the one that most has to wait for. `before` is by step.
void order_steps(Program& program, std::vector<std::vector<int>> before, bool greedy);
/// Whether nothing in the arena shares a place: steps run side by side, and it is small.
bool shares_no_memory(const Program& program);
/// Lifetimes and offsets of arena values and of workspaces. Of steps that follow one another the
/// workspace (the largest any step needs) stands at the end; of others each has a place of its own,
/// and places are taken again only after a while. Throws MemoryError when a limit is set and the
/// peak would pass it.
void plan_memory(Program& program, const PlanOptions& options);

}  // namespace tenon
