// Emission: turns groups of items into regions over a table of values. Grouping is decided before,
// by fuse.h; engines are chosen afterwards, by schedule.h.
#pragma once

#include "plan/regions/groups.h"

namespace tenon {

/// Fills program.values, the steps' regions (one for each group, in the order of fused.groups),
/// slots, outputs and assigned.
void emit(const Lowered& graph, const Fused& fused, int slot_count, Program& program);

/// For each group: the groups that must run before it.
std::vector<std::vector<int>> group_dependencies(const Lowered& graph, const Fused& fused);

}  // namespace tenon
