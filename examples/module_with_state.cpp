// A module with state: forward() updates a buffer in one line. The example is a layer that learns
// the scale of its inputs from the batches it sees. Batch normalization is written the same way.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

class Standardise : public nn::Module {
 public:
  explicit Standardise(std::int64_t width)
      : size_(buffer("size", ones({width}))), seen_(buffer("seen", scalar(0))) {}

  Tensor forward(const Tensor& x) const override {
    update(size_, 0.9 * size_ + 0.1 * mean(abs(x), {0}));  // no effect in evaluation mode
    update(seen_, seen_ + 1);
    return x / size_;
  }
  const Tensor& size() const { return size_; }
  const Tensor& seen() const { return seen_; }

 private:
  Tensor size_, seen_;
};

int main() {
  manual_seed(1);
  const Standardise input(8);
  nn::Sequential net(input, nn::Linear(8, 16), nn::BatchNorm1d(16), nn::Tanh(), nn::Linear(16, 1));
  const Tensor x = randn({256, 8}) * 40, y = sum(sin(x / 40), {1}, true);
  compute({x, y});

  // Calling the network updates nothing yet. The step evaluates the loss and with it the updates.
  optim::Adam adam(net, {.lr = 0.01});
  Tensor loss;
  for (int step = 0; step < 300; ++step) loss = adam.step(mse_loss(net(x), y));
  std::printf("loss %.4f after %.0f steps; the inputs are about %.1f in size\n", loss.item(),
              input.seen().item(), input.size().to_vector<float>()[0]);
  check(loss.item() < 0.1, "the network fits the function");
  check(input.seen().item() == 300, "a step updates each buffer once");

  // Compiled functions and the Trainer do the same. In evaluation mode buffers keep their values.
  auto compiled = compile([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{mse_loss(net(in[0]), in[1])};
  });
  compiled({x, y});
  check(input.seen().item() == 301, "a compiled function updates it too");
  net.eval();
  net(x).compute();
  check(input.seen().item() == 301, "evaluation mode updates nothing");

  // To update buffers only if the loss is finite, take the updates from the loss and guard them.
  net.train();
  std::vector<Tensor> values{mse_loss(net(x / 0.0), y)};
  std::vector<Tensor> work = take_updates(values);
  const Tensor fine = isfinite(values[0]);
  for (Tensor& update : work) update = guarded(update, fine);
  for (const Tensor& update : adam.updates(grad(values[0], adam.parameters()), fine))
    work.push_back(update);
  compute(work);
  check(input.seen().item() == 301, "a guarded step with a non-finite loss updates nothing");
}
