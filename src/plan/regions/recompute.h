// Recomputation: values of an earlier kernel that a later kernel computes itself, from values
// stored anyway, instead of loading them.
#pragma once

#include "device/traits.h"
#include "plan/regions/groups.h"

namespace tenon {

/// Fills Group::recomputed. A value that every reader recomputes needs no memory.
void recompute_values(const Lowered& graph, Fused& fused, const DeviceTraits& traits);

/// By item: the item that assigns the variable, or -1.
std::vector<int> assignments(const Lowered& graph);

/// By item: whether a group other than its own reads it or recomputes something from it.
std::vector<char> read_outside(const Lowered& graph, const Fused& fused);

}  // namespace tenon
