// Kernels of one's own, on the CPU and on a GPU from one definition each: a gated activation, which
// the library fuses with its neighbours, and the normalisation of rows by their root mean square. A
// network with both learns.
//
// own_kernels DEVICE runs on that device; without an argument, on the CPU.
#include <tenon/tenon.h>

#include "check.h"

using namespace tenon;

namespace {

// x sigmoid(x) gate, and its derivatives.
const ElementwiseKernel& gated() {
  static const ElementwiseKernel of_x(
      "gated_of_x", TENON_ELEMENTWISE((x, gate), gate * (1 + exp(-x) * (1 + x)) /
                                                     ((1 + exp(-x)) * (1 + exp(-x))))),
      of_gate("gated_of_gate", TENON_ELEMENTWISE((x, gate), x / (1 + exp(-x)))),
      kernel("gated", TENON_ELEMENTWISE((x, gate), x / (1 + exp(-x)) * gate), {of_x, of_gate});
  return kernel;
}

constexpr char kRmsSource[] = R"(
// A warp for each row.
extern "C" __global__ void rms(const T* x, Result0* y, Result1* scale, long long rows, long long columns) {
  __shared__ Real sums[4][32];
  const long long row = blockIdx.x * 4ll + threadIdx.y;
  if (row >= rows) return;
  Real sum = 0;
  for (long long k = threadIdx.x; k < columns; k += 32) {
    const Real value = x[row * columns + k];
    sum += value * value;
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  for (int half = 16; half > 0; half /= 2) {
    __syncwarp();
    if (threadIdx.x < half) sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y][threadIdx.x + half];
  }
  __syncwarp();
  const Real factor = tenon::scalar::rsqrt(sums[threadIdx.y][0] / columns + Real(1e-6));
  if (threadIdx.x == 0) scale[row] = factor;
  for (long long k = threadIdx.x; k < columns; k += 32) y[row * columns + k] = x[row * columns + k] * factor;
}
)";

void rms_on_the_cpu(std::span<const HostInput> in, std::span<const HostOutput> out) {
  const std::int64_t rows = in[0].shape()[0], columns = in[0].shape()[1];
  const float* const x = in[0].values<float>().data();
  float* const y = out[0].values<float>().data();
  float* const scale = out[1].values<float>().data();
  parallel_for(0, rows, 16, [&](std::int64_t row, std::int64_t end) {
    for (; row < end; ++row) {
      float sum = 0;
      for (std::int64_t k = 0; k < columns; ++k) sum += x[row * columns + k] * x[row * columns + k];
      scale[row] = 1 / std::sqrt(sum / static_cast<float>(columns) + 1e-6F);
      for (std::int64_t k = 0; k < columns; ++k)
        y[row * columns + k] = x[row * columns + k] * scale[row];
    }
  });
}

// The rows divided by their root mean square, and the factors.
const Operation& rms() {
  static const Operation operation(
      "rms", {.infer =
                  [](std::span<const TensorType> in) {
                    if (in[0].shape.rank() != 2) throw ShapeError("takes a matrix");
                    return std::vector<TensorType>{in[0], {in[0].dtype, {in[0].shape[0], 1}}};
                  },
              .cpu = rms_on_the_cpu,
              .cuda = {.source = kRmsSource,
                       .entry = "rms",
                       .launch =
                           [](const KernelTypes& types) {
                             const Shape& shape = types.inputs[0].shape;
                             return CudaLaunch{.grid = {(shape[0] + 3) / 4},
                                               .block = {32, 4},
                                               .numbers = {shape[0], shape[1]}};
                           }},
              .gradient =
                  [](const FunctionContext& context, const Tensor& g, const Tensor&) {
                    const Tensor &y = context.results()[0], &scale = context.results()[1];
                    return scale * (g - y * mean(g * y, 1, true));
                  }});
  return operation;
}

class GatedLayer final : public nn::Module {
 public:
  GatedLayer(std::int64_t inputs, std::int64_t outputs)
      : up_(child("up", nn::Linear(inputs, 2 * outputs))) {}
  Tensor forward(const Tensor& x) const override {
    const std::vector<Tensor> halves = chunk(up_(rms().apply({x})[0]), 2, 1);
    return gated()(halves[0], halves[1]);
  }

 private:
  nn::Linear up_;
};

}  // namespace

int main(int argc, char** argv) {
  compile_in_processes(argc, argv);
  set_device(argc > 1 ? argv[1] : "cpu");
  manual_seed(3);

  const Tensor x = variable(randn({16, 40})), gate = variable(randn({40}));
  const Tensor own = grad(square(gated()(rms().apply({x})[0], gate)).sum(), x);
  const Tensor rows = x * rsqrt(mean(x * x, 1, true) + 1e-6);
  const Tensor composed = grad(square(rows * sigmoid(rows) * gate).sum(), x);
  check(allclose(own, composed, 1e-3, 1e-4), "own gradients equal the composed ones");
  check(plan({gated()(x, gate) * 2 + x}).step_count() == 1, "the activation is fused");

  nn::Sequential net(GatedLayer(4, 32), GatedLayer(32, 32), nn::Linear(32, 1));
  optim::Adam adam(net, {.lr = 1e-2});
  const Tensor points = randn({256, 4}).compute();
  const Tensor targets = (points.select(1, 0) * points.select(1, 1)).unsqueeze(1).compute();
  double first = 0, last = 0;
  for (int step = 0; step < 150; ++step) {
    last = adam.step(mse_loss(net(points), targets)).item();
    if (step == 0) first = last;
    if (step % 50 == 0) std::printf("step %3d  loss %.5f\n", step, last);
  }
  std::printf("loss %.5f\n", last);
  check(last < 0.5 * first, "the network learns through both kernels");
}
