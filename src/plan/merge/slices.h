// Slices: which part of each value a region reads and writes if it runs for a few entries of one
// axis only, and the region that does so.
//
// For maps and epilogues the views tell: an axis of the space is an axis of a value's memory if its
// stride is the distance of neighbouring entries and no other axis leaves an entry. For
// contractions and opaque regions the engine tells (Capabilities): slices are cut along the first
// axis of the operands that it names.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/program/engine.h"

namespace tenon {

/// How a part of a chain accesses a value. Entries are `step` bytes apart, inside each of `places`
/// equal ranges of the value. With step 0 every slice accesses the whole value.
struct ChainAccess {
  ValueId value = kNoValue;
  std::int64_t step = 0;
  std::int64_t places = 1;
};

/// Finds the axis in the part's own terms (Region::axis), from values that it shares with other
/// parts. Splits a map's space if the axis is a part of one of its axes. Returns null, or why the
/// part has no such axis.
const char* find_axis(Region& part, const Capabilities& can, std::span<const Value> values,
                      std::int64_t entries, std::span<const ChainAccess> known);

/// The same for a map: finds the axis of its space.
const char* find_axis(MapProgram& map, std::span<const Value> values, std::int64_t entries,
                      std::span<const ChainAccess> known, int& axis);

/// Adds the part's accesses for slices of its axis of `entries`. Returns null, or why the part
/// cannot run so, alone or beside the accesses already listed; the list may then contain extra
/// entries. The epilogue of a part that sums over slices is left out: it runs after all slices, on
/// their sum.
const char* list_accesses(const Region& part, const Capabilities& can,
                          std::span<const Value> values, std::int64_t entries,
                          std::vector<ChainAccess>& out);

/// The same for a map, along an axis of its space.
const char* list_accesses(const MapProgram& map, int axis, std::span<const Value> values,
                          std::int64_t entries, std::vector<ChainAccess>& out);

/// Changes a view of a whole value, whose `entries` it crosses by an axis of its space, into a view
/// of a value with `count` entries.
void keep_slice(View& view, int axis, int rank, std::int64_t entries, std::int64_t count);

/// The part for `count` entries of its chain's axis. Local values then hold one slice. `values`
/// receives the shapes that go with it.
Region sliced(const Region& part, const Capabilities& can, const Region& chain, std::int64_t count,
              std::span<Value> values);

}  // namespace tenon
