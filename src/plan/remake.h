// What a kernel recomputes instead of reading it: values of an earlier kernel that it can compute
// from what is stored anyway.
#pragma once

#include "device/traits.h"
#include "plan/fuse.h"

namespace tenon {

/// Fills Group::remade. Values that every reader recomputes need no memory.
void remake(const Lowered& graph, Fused& fused, const DeviceTraits& traits);

/// By item: the assignment of the variable, or -1.
std::vector<int> assignments(const Lowered& graph);

/// By item: whether another group than its own reads it, or makes something again from it.
std::vector<char> read_outside(const Lowered& graph, const Fused& fused);

}  // namespace tenon
