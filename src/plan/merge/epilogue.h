// What rules that put kernels over a product's result into its epilogue have in common.
#pragma once

#include <functional>
#include <vector>

#include "plan/region.h"

namespace tenon {

bool is_written(const Region& region, ValueId id);

/// The space of a product's epilogue, whether it has one or not.
Shape space_of_epilogue(const Region& product);

/// Whether the kernel meets a value that the product writes in the order in which that makes its
/// elements.
bool reads_in_order(const Region& product, const MapProgram& kernel, const View& view);

/// Adds a kernel's instructions, but for reductions of its rows, to the product's epilogue; gives
/// the place of each, -1 for what is left out. What the kernel reads of the product's results, it
/// reads element by element (reads_in_order); `over_result` says how the epilogue reads the rest.
std::vector<int> add_to_epilogue(Region& product, const MapProgram& kernel,
                                 const std::function<View(const View&)>& over_result);

}  // namespace tenon
