// The four equations of back-propagation for a network with sigmoid units and the quadratic cost
// C = 1/(2n) Σ ‖y(x) - a‖², written out and compared with grad(). Then gradient descent,
// w ← w - (η/m) Σ ∂C/∂w, until the error is small.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

int main() {
  manual_seed(3);
  // The parity of two bits (XOR). One layer cannot learn it.
  const Tensor x = Tensor::from({0.f, 0.f, 0.f, 1.f, 1.f, 0.f, 1.f, 1.f}, {4, 2});
  const Tensor y = Tensor::from({0.f, 1.f, 1.f, 0.f}, {4, 1});
  const Tensor w1 = variable(randn({8, 2}), "w1"), b1 = variable(randn({8}), "b1");
  const Tensor w2 = variable(randn({1, 8}), "w2"), b2 = variable(randn({1}), "b2");
  const double n = 4, eta = 20;

  auto layer = [](const Tensor& in, const Tensor& w, const Tensor& b) {
    return sigmoid(linear(in, w, b));
  };
  auto cost = [&] { return sum(square(y - layer(layer(x, w1, b1), w2, b2))) / (2 * n); };

  // sigmoid'(z) = a (1 - a).
  const Tensor a1 = layer(x, w1, b1), a2 = layer(a1, w2, b2);
  const Tensor delta2 = (a2 - y) / n * a2 * (1 - a2);  // 1: error of the last layer
  const Tensor delta1 =
      matmul(delta2, w2) * a1 * (1 - a1);  // 2: error of a layer, from the error of the next layer
  const Tensor db1 = sum(delta1, {0}), db2 = sum(delta2, {0});  // 3: ∂C/∂b = δ
  const Tensor dw1 = matmul(transpose(delta1), x);  // 4: ∂C/∂w = δ · input activation
  const Tensor dw2 = matmul(transpose(delta2), a1);

  const Tensor params[] = {w1, b1, w2, b2};
  const Tensor by_hand[] = {dw1, db1, dw2, db2};
  const std::vector<Tensor> by_grad = grad(cost(), params);
  for (int k = 0; k < 4; ++k)
    check(amax(abs(by_hand[k] - by_grad[static_cast<std::size_t>(k)])).item() < 1e-6,
          "the four equations agree with grad()");

  // Cost, gradients and updates are one program. The first call traces it, later calls replay it.
  CompiledFunction step = compile([&](const std::vector<Tensor>&) {
    const Tensor c = cost();
    std::vector<Tensor> out{c};
    const std::vector<Tensor> g = grad(c, params);
    for (std::size_t k = 0; k < 4; ++k) out.push_back(assign(params[k], params[k] - eta * g[k]));
    return out;
  });
  double error = 1;
  int steps = 0;
  for (; steps < 5000 && error > 1e-3; ++steps) {
    error = step({})[0].item();
    if (steps % 100 == 0) std::printf("step %4d  cost %.5f\n", steps, error);
  }
  std::printf("cost %.5f after %d steps\noutputs %s\n", error, steps,
              layer(layer(x, w1, b1), w2, b2).str().c_str());
  check(error <= 1e-3, "gradient descent reaches a cost of 0.001");
}
