// Compares results with PyTorch's: by relative norm with torch.testing's tolerances; element by
// element for extreme values.
#pragma once

#include <string>

#include <tenon/tensor.h>

namespace conformance {

enum class What { Value, Gradient, Second };
const char* name(What what);

/// Returns "" if `got` agrees with one of the two results or is no further from `truth` than
/// PyTorch; otherwise the difference. `out`: PyTorch's result in the dtype (undefined: none; Second
/// has none). `truth`: the float64 result (undefined: none). Elementwise compares each element,
/// including signs of zeros; otherwise the relative norm, with NaN and infinities at the same
/// positions.
std::string compare(const tenon::Tensor& got, const tenon::Tensor& out, const tenon::Tensor& truth,
                    What what, bool elementwise);

}  // namespace conformance
