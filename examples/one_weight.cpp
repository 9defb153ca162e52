// Back-propagation for one weight: the chain rule by hand, and by grad().
//
// An output unit with sigmoid activation O and target T has the error E = (O - T)² / 2. The weight
// w of its input I then has the gradient dE/dw = I · (O - T) · O · (1 - O).
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

int main() {
  const double input = 0.13, target = 0.9, out = 0.35;
  const double by_hand = input * (out - target) * out * (1 - out);

  // The weighted sum of a unit with output 0.35 is ln(O / (1 - O)). The bias holds the part of the
  // sum that w · I does not give.
  const Tensor w = variable(scalar(0.7, DType::Float64), "w");
  const double bias = std::log(out / (1 - out)) - 0.7 * input;
  const Tensor o = sigmoid(w * input + bias);
  const Tensor error = square(o - target) / 2;
  const double by_grad = grad(error, w).item();

  std::printf("O = %.4f, dE/dw by hand %.6f, by grad() %.6f\n", o.item(), by_hand, by_grad);
  check(near(by_hand, by_grad, 1e-9), "the same gradient both ways");

  // Gradients are part of the graph, so they can be differentiated again.
  const Tensor slope = grad(error, w);
  std::printf("d²E/dw² = %.6f\n", grad(slope, w).item());
}
