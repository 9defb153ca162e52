// Line search by the strong Wolfe conditions: PyTorch's, which is that of minFunc (M. Schmidt).
#pragma once

#include <functional>

#include <tenon/tensor.h>

namespace tenon::optim {

/// A point on the line: its distance, the loss, the slope along the line and the gradient.
struct LinePoint {
  double t = 0, loss = 0, slope = 0;
  Tensor grad{};
};
struct LineSearch {
  double largest = 0;           ///< largest absolute element of the direction
  double tolerance_change = 0;  ///< brackets whose points differ less are not divided
  int most = 0;                 ///< evaluations at most, but at least 1
};
/// The accepted point. `at` evaluates the loss at a distance.
LinePoint strong_wolfe(const std::function<LinePoint(double t)>& at, const LinePoint& start,
                       double first, const LineSearch& options);

}  // namespace tenon::optim
