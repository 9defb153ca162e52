// Slices: which part of each value a region meets when it runs for a few entries of one axis only,
// and the region that does so.
//
// Of maps, and of epilogues, the index maps tell: an axis of the space is an axis of a value's
// memory where its stride is the distance of neighbouring entries and no other axis leaves an
// entry. Of contractions and opaque regions the engine tells (Capabilities): slices are cut along
// the first axis of what it names.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/engine.h"

namespace tenon {

/// How a part of a chain meets a value: entries lie `step` bytes apart, in each of `places` equal
/// stretches of it; or (step 0) every slice meets the whole of it.
struct ChainAccess {
  ValueId value = kNoValue;
  std::int64_t step = 0;
  std::int64_t places = 1;
};

/// Finds the axis in the part's own terms (Region::axis) from what is known of values that it
/// shares with others. A map's space is split where the axis is a part of one of its axes. Null, or
/// why it has none.
const char* find_axis(Region& part, const Capabilities& can, std::span<const Value> values,
                      std::int64_t entries, std::span<const ChainAccess> known);

/// The same of a map: the axis of its space.
const char* find_axis(MapProgram& map, std::span<const Value> values, std::int64_t entries,
                      std::span<const ChainAccess> known, int& axis);

/// Adds what the part reads and writes while slices of its axis of `entries` run. Null, or why it
/// cannot run so, or not beside what is listed already; the list may then have more in it. The
/// epilogue of a part that sums over slices is left out: it runs after all of them, on their sum.
const char* list_accesses(const Region& part, const Capabilities& can,
                          std::span<const Value> values, std::int64_t entries,
                          std::vector<ChainAccess>& out);

/// The same of a map, along an axis of its space.
const char* list_accesses(const MapProgram& map, int axis, std::span<const Value> values,
                          std::int64_t entries, std::vector<ChainAccess>& out);

/// Makes a view of a whole value, whose `entries` it crosses by an axis of its space, one of a
/// value that holds `count` of them.
void keep_slice(View& view, int axis, int rank, std::int64_t entries, std::int64_t count);

/// The part for `count` entries of its chain's. Local values then hold a slice and nothing else.
/// `values` takes the shapes that go with it.
Region sliced(const Region& part, const Capabilities& can, const Region& chain, std::int64_t count,
              std::span<Value> values);

}  // namespace tenon
