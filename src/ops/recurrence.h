// Op::Recurrence for the families that use it: cumulative operations, running extremes, and the
// gradient of products.
#pragma once

#include <tenon/ops.h>

#include "graph/attrs.h"

namespace tenon {

/// Inputs: x, or a and b of one dtype and shape; float32, float64 or int64, with an axis and
/// elements. The result has their dtype, or int64 for indices.
Tensor recurrence(RecurrenceKind kind, TensorList inputs, int axis, bool reverse = false);

/// Moves elements by one place along an axis, towards its end, or its beginning if `reverse`;
/// `first` takes the free place.
Tensor shifted_by_one(const Tensor& x, int axis, Scalar first, bool reverse);

}  // namespace tenon
