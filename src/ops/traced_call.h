// Calls a user's function to record the graph of its results, for transforms of functions.
#pragma once

#include <vector>

#include <tenon/function.h>

namespace tenon {

/// f(arguments). Compiled functions that `f` calls are inlined. The results have values, and there
/// is at least one. Throws ValueError that names `op` otherwise, and for an argument without a
/// value or a wrong number of arguments.
std::vector<Tensor> traced_call(const char* op, const TensorFunction& f,
                                const std::vector<Tensor>& arguments);

/// Throws ValueError for the first tensor without a value: "`op`: `what` 2 has no value".
void check_all_defined(const char* op, const char* what, TensorList tensors);

}  // namespace tenon
