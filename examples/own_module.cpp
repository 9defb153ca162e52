// A network of your own: derive from Module, register its children and parameters, and override
// forward(). The example is two layers with a residual connection.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

class Residual : public nn::Module {
 public:
  explicit Residual(std::int64_t width)
      : first_(child("first", nn::Linear(width, width))),
        second_(child("second", nn::Linear(width, width))),
        scale_(parameter("scale", ones({}))) {}
  Tensor forward(const Tensor& x) const override { return x + scale_ * second_(relu(first_(x))); }

 private:
  nn::Linear first_, second_;
  Tensor scale_;
};

int main() {
  nn::Sequential net(nn::Linear(8, 16), Residual(16), nn::Linear(16, 1));
  for (const nn::NamedTensor& p : net.named_parameters())
    std::printf("%-18s %s\n", p.name.c_str(), p.tensor.shape().str().c_str());

  // Train it to compute a function of eight numbers.
  const Tensor x = randn({256, 8}), y = sum(sin(x), {1}, true);
  compute({x, y});
  optim::Adam adam(net, {.lr = 0.01});
  Tensor loss;
  for (int step = 0; step <= 400; ++step) {
    loss = adam.step(mse_loss(net(x), y));
    if (step % 100 == 0) std::printf("step %3d  loss %.4f\n", step, loss.item());
  }
  check(loss.item() < 0.1, "the network fits the function");

  // A wrong shape throws at once, and the message names the layer.
  try {
    net(randn({4, 9}));
    check(false, "a wrong number of features is refused");
  } catch (const ShapeError& error) {
    std::printf("refused: %s\n", error.what());
  }
}
