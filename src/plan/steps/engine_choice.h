// The engine of one step, chosen by estimate. Choices that were measured are in tune.h; schedule.h
// chooses for all steps of a program.
#pragma once

#include <span>

#include "plan/program/program.h"

namespace tenon {

/// Gives the step the engine with the best estimate that claims its region (by_estimate) and can
/// prepare it. Throws NotSupported, naming the step and every engine's reason, if there is none.
void choose_by_estimate(Step& step, std::span<const Value> values, const PlanOptions& options);

}  // namespace tenon
