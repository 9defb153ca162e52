// Shared by the modes of the case table: computing a case's values on the current device with the
// current settings, and comparing two results.
#pragma once

#include <cstdint>

#include "cases/cases.h"

namespace cases {

/// The output, and the gradients of a weighted sum of it if the case has gradients; not evaluated.
std::vector<tenon::Tensor> results(const Case& c, tenon::DType dtype, bool gradients = true);

/// Inputs of a case; another seed gives other values.
Tensors make_inputs(const Case& c, tenon::DType dtype, std::uint64_t seed = 100);
/// Those of them that have gradients.
Tensors floating_only(const Tensors& inputs);
/// A scalar with a different weight for each element, so that no gradient cancels another.
tenon::Tensor weighted(const tenon::Tensor& y, std::uint64_t seed);
/// The elements as float64.
std::vector<double> numbers(const tenon::Tensor& t);

/// Their values.
using Values = std::vector<std::vector<double>>;
Values values(const Case& c, tenon::DType dtype, bool gradients = true);

/// Fails the test if the distance, relative to the norm, reaches the tolerance.
void compare(const Case& c, const Values& got, const Values& wanted, double tolerance);

/// Runs `mode` on every case. An exception fails that case only. Settings and the current device
/// are restored afterwards.
void each_case(const std::function<void(const Case&)>& mode);

}  // namespace cases
