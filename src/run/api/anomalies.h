// The search for the first value that is not finite (tenon/anomaly.h).
#pragma once

#include <span>

#include <tenon/tensor.h>

namespace tenon {

/// Throws the NumericError if a value of `roots`, or a value that evaluating them would assign, is
/// not finite. Evaluates without effects.
void refuse_anomalies(std::span<const Tensor> roots);

}  // namespace tenon
