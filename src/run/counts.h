// Counts of plans and runs, for runner_stats().
#pragma once

#include "plan/program/program.h"

namespace tenon {

/// Counts a planned program in runner_stats().
void count_planned(const Program& program);
void count_run();

}  // namespace tenon
