// The precision of floating-point element types.
#pragma once
#include <tenon/dtype.h>

namespace tenon {

/// The distance from 1 to the next larger number of a floating-point dtype, as
/// std::numeric_limits<T>::epsilon() and torch.finfo(dtype).eps.
double epsilon_of(DType dtype) noexcept;

}  // namespace tenon
