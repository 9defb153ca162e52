// The rewrites of single map regions: equal loads and neighbouring axes become one.
#pragma once

#include "plan/program/region.h"

namespace tenon {

/// Calls f(View&) for each view over the iteration space.
template <class F>
void each_view(MapProgram& map, F&& f) {
  for (MapInstr& instr : map.instrs)
    if (instr.code == MapCode::Load || instr.code == MapCode::Affine) f(instr.view);
  for (MapStore& store : map.stores) f(store.view);
}

/// Merges loads of the same elements, and equal numbers and index ramps. Returns how many went.
int merge_loads(MapProgram& map);

/// Merges neighbouring axes that every view crosses contiguously, and drops axes of size 1. The row
/// axis stays as it is. Returns how many axes went.
int collapse_axes(MapProgram& map);

}  // namespace tenon
