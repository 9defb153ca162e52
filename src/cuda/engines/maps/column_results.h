// What a launch makes of the results of columns, each of which one block has in the end.
#pragma once

#include <optional>
#include <span>

#include "cuda/engines/maps/loop_nests.h"

namespace tenon::cuda {

/// What regions behind a kernel over columns make of its results, as one program over these, where
/// each element of what they read of one another is that of the same result. `later`: in order.
std::optional<MapProgram> made_of_columns(const LoopNest& columns, std::span<const Region> later,
                                          std::span<const Value> values);

}  // namespace tenon::cuda
