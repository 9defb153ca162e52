// An operation of one's own: the projection onto a ball of a given radius, computed by a C++
// function for each row in several threads, with a gradient in closed form. A network of ordinary
// layers learns through it.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

namespace {

// Rows longer than the radius are scaled to it; the second result is each row's length.
void project(std::span<const HostInput> in, std::span<const HostOutput> out, float radius) {
  const std::int64_t rows = in[0].shape()[0], columns = in[0].shape()[1];
  const float* from = in[0].values<float>().data();
  float* to = out[0].values<float>().data();
  float* lengths = out[1].values<float>().data();
  parallel_for(0, rows, 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const float* x = from + row * columns;
      float square = 0;
      for (std::int64_t k = 0; k < columns; ++k) square += x[k] * x[k];
      lengths[row] = std::sqrt(square);
      const float scale = lengths[row] > radius ? radius / lengths[row] : 1;
      for (std::int64_t k = 0; k < columns; ++k) to[row * columns + k] = scale * x[k];
    }
  });
}

class Ball final : public nn::Module {
 public:
  explicit Ball(float radius)
      : project_(
            "ball",
            [radius](FunctionContext& context, const Tensor& x) {
              const std::vector<Tensor> out = host_call(
                  "ball", {x}, {{x.dtype(), x.shape()}, {x.dtype(), {x.size(0), 1}}},
                  [radius](std::span<const HostInput> from, std::span<const HostOutput> to) {
                    project(from, to, radius);
                  });
              context.save({out[1]});
              return out[0];
            },
            [radius](const FunctionContext& context, const Tensor& g) {
              // Outside of the ball only the part of the gradient along its surface remains.
              const Tensor &x = context.arguments()[0], &length = context.saved()[0];
              const Tensor direction = x / length;
              const Tensor along = g - direction * sum(g * direction, 1, true);
              return where(gt(length, radius), along * (radius / length), g);
            }) {}
  Tensor forward(const Tensor& x) const override { return project_(x); }

 private:
  Function project_;
};

}  // namespace

int main() {
  manual_seed(3);
  const Ball ball(1);
  const Tensor x = variable(randn({32, 8}) * 0.4);
  const Tensor slope = grad((ball(x) * arange(0, 8)).sum(), x);
  const Tensor scale = where(gt(x.norm(1, true), 1.0), 1.0 / x.norm(1, true), ones({32, 1}));
  const Tensor composed = grad((x * scale * arange(0, 8)).sum(), x);
  check(allclose(slope, composed, 1e-4, 1e-4), "the closed form equals the composed gradient");

  // A network whose outputs stay in the ball learns targets on the sphere.
  nn::Sequential net(nn::Linear(4, 32), nn::Tanh(), nn::Linear(32, 8), ball);
  optim::Adam adam(net, {.lr = 1e-2});
  const Tensor points = randn({256, 4}).compute();
  Tensor targets = matmul(points, randn({4, 8})).compute();
  targets = (targets / targets.norm(1, true)).compute();
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    last = adam.step(mse_loss(net(points), targets)).item();
    if (step == 0) first = last;
    if (step % 50 == 0) std::printf("step %3d  loss %.5f\n", step, last);
  }
  std::printf("loss %.5f, longest output %.6f\n", last, net(points).norm(1).max().item());
  check(last < 0.1 * first, "the network learns through the operation");
  check(net(points).norm(1).max().item() < 1.0001, "every output is in the ball");
}
