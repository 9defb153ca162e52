// A small problem for tests of training: points in the plane by quadrant, and a network with
// dropout that learns them.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include <tenon/data.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/train.h>

namespace toy {

using namespace tenon;

inline std::shared_ptr<data::Dataset> points(std::int64_t count, std::uint64_t seed) {
  Generator g(seed);
  const Tensor x = rand({count, 2}, DType::Float32, &g) * 2 - 1;
  const Tensor quadrant =
      cast(gt(select(x, 1, 0), 0), DType::Int64) * 2 + cast(gt(select(x, 1, 1), 0), DType::Int64);
  return data::from_tensors(x.eval(), quadrant.eval(), 4);
}

/// Network, optimizer and loaders of one session, the same for the same seed.
struct Session {
  explicit Session(std::uint64_t seed = 0, std::int64_t batch = 16, double lr = 0.3)
      : net((manual_seed(seed),
             nn::Sequential(nn::Linear(2, 24), nn::ReLU(), nn::Dropout(0.1), nn::Linear(24, 4)))),
        optimizer(net, {.lr = lr, .momentum = 0.9}),
        train(points(250, 1), {.batch = batch, .seed = seed}),
        test(points(100, 2), {.batch = 30, .shuffle = false}) {}

  train::TrainResult fit(const train::TrainOptions& options) {
    return train::Trainer(net, nn::CrossEntropyLoss(), optimizer, options).fit(train, test);
  }

  nn::Sequential net;
  optim::Sgd optimizer;
  data::Loader train, test;
};

inline StateDict snapshot(const StateDict& state) {
  StateDict out;
  for (const auto& [name, t] : state)
    out.emplace(name, Tensor::from_data(t.data(), t.shape(), t.dtype()));
  return out;
}

/// The first name whose bits differ, "" when none does.
inline std::string difference(const StateDict& a, const StateDict& b) {
  if (a.size() != b.size()) return "(sizes)";
  for (const auto& [name, t] : a) {
    const auto it = b.find(name);
    if (it == b.end() || it->second.shape() != t.shape() || it->second.dtype() != t.dtype())
      return name;
    if (std::memcmp(t.data(), it->second.data(),
                    static_cast<std::size_t>(t.numel()) * item_size(t.dtype())) != 0)
      return name;
  }
  return "";
}

}  // namespace toy
