// What modes of the case table share: computing a case's values on the current device with the
// current settings, and comparing two such computations.
#pragma once

#include "cases/cases.h"

namespace cases {

/// The output, and the gradients of a weighted sum of it where the case has them.
using Values = std::vector<std::vector<double>>;
Values values(const Case& c, tenon::DType dtype, bool gradients = true);

/// Fails the test where the distance, relative to the norm, reaches the tolerance.
void compare(const Case& c, const Values& got, const Values& wanted, double tolerance);

/// Runs `mode` on every case; what one throws is that case's failure and not the end of the others.
/// Settings and the current device are restored behind the last.
void each_case(const std::function<void(const Case&)>& mode);

}  // namespace cases
