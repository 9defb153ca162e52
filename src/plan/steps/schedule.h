// Chooses engines, orders steps and lays out the arena: the passes after merging. Engines only
// answer; they do not see other steps.
#pragma once

#include <vector>

#include "plan/program/pass_tally.h"
#include "plan/program/program.h"

namespace tenon {

/// Gives every step the engine that measurements advise. Without advice, the step gets the engine
/// with the best estimate that claims its region (by_estimate) and can prepare it. Throws
/// NotSupported, naming the step and every engine's reason, if there is none.
void choose_engines(Program& program, const PlanOptions& options);
/// Reports the choices of an already planned program and of its bodies to `tuning` again.
void repeat_choices(const Program& program, Tuning& tuning);
/// Reorders steps. Among ready steps it takes the one that leaves the least memory live. If memory
/// is not shared, it takes the one with the longest path of waiting steps. Without kOrder it takes
/// the first one. `before` is by step. `tally`: what the passes did that share this walk.
void order_steps(Program& program, std::vector<std::vector<int>> before, const PlanOptions& options,
                 PassTally& tally);
/// Whether no arena values share bytes: the device runs steps concurrently, and the arena is small.
bool shares_no_memory(const Program& program);
/// Lifetimes and offsets of arena values and workspaces. Sequential steps share one workspace at
/// the end of the arena, as large as the largest. For concurrent steps each workspace has bytes of
/// its own, and freed bytes are reused only after a while. Throws MemoryError if the peak exceeds
/// the limit.
void plan_memory(Program& program, const PlanOptions& options);

}  // namespace tenon
