// Comparing results with PyTorch's: by relative norm with torch.testing's tolerances, element by
// element for extremes.
#pragma once

#include <string>

#include <tenon/tensor.h>

namespace conformance {

enum class What { Value, Gradient, Second };
const char* name(What what);

/// "" when `got` agrees with one of the two or is no further from the truth than PyTorch is, else
/// what differs. `out` is PyTorch's result in the
/// dtype (undefined: none; Second has none), `truth` the one in float64 (undefined: none).
/// Elementwise: each number by itself, zeros by their sign too; else by relative norm, with NaN and
/// infinities at the same places.
std::string compare(const tenon::Tensor& got, const tenon::Tensor& out, const tenon::Tensor& truth,
                    What what, bool elementwise);

}  // namespace conformance
