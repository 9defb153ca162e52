// Training steps of deep networks as graphs with small tensors, for tests of planning time.
#pragma once

#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include <vector>

namespace tenon::test {

/// The loss and one step of plain gradient descent.
inline std::vector<Tensor> training_step(const Tensor& loss, const std::vector<Tensor>& weights) {
  std::vector<Tensor> roots{loss};
  const std::vector<Tensor> slopes = grad(loss, weights);
  for (std::size_t k = 0; k < weights.size(); ++k)
    roots.push_back(assign(weights[k], weights[k] - slopes[k] * 0.01));
  return roots;
}

inline Tensor weight(const Shape& shape, std::vector<Tensor>& weights) {
  weights.push_back(variable(full(shape, 0.5)));
  return weights.back();
}

/// Layers of `width`; each is a product, a bias and an activation.
inline std::vector<Tensor> deep_mlp(int layers, std::int64_t width = 16, std::int64_t batch = 8) {
  std::vector<Tensor> weights;
  Tensor h = full({batch, width}, 0.5).compute();
  for (int k = 0; k < layers; ++k) {
    const Tensor w = weight({width, width}, weights), b = weight({width}, weights);
    h = tanh(linear(h, w, b));
  }
  return training_step(mean(square(h)), weights);
}

/// A plain chain of linear layers, with nothing between its products.
inline std::vector<Tensor> linear_chain(int layers, std::int64_t width = 4,
                                        std::int64_t batch = 2) {
  std::vector<Tensor> weights;
  Tensor h = full({batch, width}, 0.5).compute();
  for (int k = 0; k < layers; ++k) {
    const Tensor w = weight({width, width}, weights), b = weight({width}, weights);
    h = linear(h, w, b);
  }
  return training_step(mean(square(h)), weights);
}

inline Tensor batch_norm(const Tensor& x, std::int64_t channels, std::vector<Tensor>& weights) {
  const Tensor m = mean(x, {0, 2, 3}, true), v = var(x, {0, 2, 3}, true, 0);
  const Tensor scale = weight({channels, 1, 1}, weights), shift = weight({channels, 1, 1}, weights);
  return (x - m) * rsqrt(v + 1e-5) * scale + shift;
}

/// A residual network of bottleneck blocks with batch norm written by hand: 3 * blocks + 1
/// convolutions.
inline std::vector<Tensor> deep_resnet(int blocks, std::int64_t channels = 8,
                                       std::int64_t batch = 2) {
  std::vector<Tensor> weights;
  const auto conv = [&](const Tensor& x, std::int64_t in, std::int64_t out, std::int64_t side) {
    Conv2dOptions options;
    options.padding = {side / 2, side / 2};
    return batch_norm(conv2d(x, weight({out, in, side, side}, weights), Tensor(), options), out,
                      weights);
  };
  Tensor h = relu(conv(full({batch, 3, 8, 8}, 0.5).compute(), 3, 4 * channels, 3));
  for (int k = 0; k < blocks; ++k) {
    Tensor y = relu(conv(h, 4 * channels, channels, 1));
    y = relu(conv(y, channels, channels, 3));
    h = relu(conv(y, channels, 4 * channels, 1) + h);
  }
  const Tensor out = linear(mean(h, {2, 3}), weight({10, 4 * channels}, weights));
  return training_step(mean(square(out)), weights);
}

/// A recurrent network: this many unrolled steps of an LSTM.
inline std::vector<Tensor> unrolled_lstm(int steps, std::int64_t width = 8) {
  std::vector<Tensor> weights;
  const Tensor x = full({steps, 4, width}, 0.5).compute();
  const Tensor w = weight({4 * width, width}, weights), u = weight({4 * width, width}, weights);
  const Tensor b = weight({4 * width}, weights);
  Tensor h = full({4, width}, 0.1).compute(), c = h;
  for (int t = 0; t < steps; ++t) {
    const Tensor gates = linear(reshape(slice(x, 0, t, t + 1), {4, width}), w, b) + linear(h, u);
    const auto gate = [&](int k) { return slice(gates, 1, k * width, (k + 1) * width); };
    c = sigmoid(gate(0)) * c + sigmoid(gate(1)) * tanh(gate(2));
    h = sigmoid(gate(3)) * tanh(c);
  }
  return training_step(mean(square(h)), weights);
}

}  // namespace tenon::test
