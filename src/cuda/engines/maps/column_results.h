// Regions that process the results of a column reduction inside the same launch. Each result ends
// up in one block.
#pragma once

#include <optional>
#include <span>

#include "cuda/engines/maps/loop_nests.h"

namespace tenon::cuda {

/// Joins the regions `later` (in order), which process the results of `columns`, into one program
/// over the results. Every element that one of them reads of another must belong to the same
/// result.
std::optional<MapProgram> merge_column_results(const LoopNest& columns,
                                               std::span<const Region> later,
                                               std::span<const Value> values);

}  // namespace tenon::cuda
