// Helpers of the rules that put maps over a product's result into its epilogue. The rules
// themselves are in reductions.cpp and product_columns.cpp.
#pragma once

#include <functional>
#include <vector>

#include "plan/program/region.h"

namespace tenon {

bool is_written(const Region& region, ValueId id);

/// The iteration space of a product's epilogue, even if it has no epilogue yet.
Shape space_of_epilogue(const Region& product);

/// Whether the map reads a value that the product writes, element by element in the order of the
/// product's result.
bool reads_in_order(const Region& product, const MapProgram& map, const View& view);

/// Adds a map's instructions to the product's epilogue, without its row reductions. Returns the new
/// index of each instruction, -1 for those left out. The map must read the product's results
/// element by element (reads_in_order); `over_result` gives the epilogue's view for everything else
/// that the map reads.
std::vector<int> add_to_epilogue(Region& product, const MapProgram& added,
                                 const std::function<View(const View&)>& over_result);

}  // namespace tenon
