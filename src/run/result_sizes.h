// Sizes of the lists among the results of a typed function (tenon/compile.h). The function itself
// returns tensors only; the sizes go with the trace, because they may depend on the shapes and on
// everything else that a trace depends on.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

/// The function that this thread traces calls this with its results.
void give_result_sizes(std::vector<std::int64_t> sizes);
/// The sizes of the function that has just returned; empty if it is not a typed function.
std::vector<std::int64_t> take_result_sizes();

}  // namespace tenon
