// A small problem for tests of training: points in the plane, classified by quadrant, and a network
// with dropout that learns them.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <tenon/data.h>
#include <tenon/functional.h>
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

/// Eleven sequences of up to eight tokens. In sample n the first 1 + n % 8 tokens count; the target
/// repeats them.
class Sequences : public data::Dataset {
 public:
  Sequences()
      : Dataset({.input_shape = {kLength},
                 .input_dtype = DType::Int64,
                 .target_shape = {kLength},
                 .classes = 5,
                 .counted_targets = mean_counted(),
                 .in_memory = true}) {}
  std::int64_t size() const override { return kCount; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto *input = static_cast<std::int64_t*>(inputs), *target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t n : indices)
      for (std::int64_t t = 0; t < kLength; ++t) {
        *input++ = (n * t) % 5;
        *target++ = t < counted(n) ? (n * t) % 5 : data::kIgnoredTarget;
      }
  }

 private:
  static constexpr std::int64_t kCount = 11, kLength = 8;
  static std::int64_t counted(std::int64_t n) { return 1 + n % kLength; }
  static double mean_counted() {
    std::int64_t all = 0;
    for (std::int64_t n = 0; n < kCount; ++n) all += counted(n);
    return static_cast<double>(all) / kCount;
  }
};

/// Losses of a network that does not learn, for such sequences: of the epoch and of an evaluation.
struct MeanLosses {
  double trained = 0, evaluated = 0, accuracy_trained = 0, accuracy_evaluated = 0;
};
inline MeanLosses mean_losses_of_sequences(std::int64_t batch) {
  manual_seed(4);
  const nn::Sequential net(nn::Embedding(5, 5));
  optim::Sgd sgd(net, {.lr = 0});
  data::Loader loader(std::make_shared<Sequences>(), {.batch = batch, .seed = 2});
  train::TrainOptions o;
  o.epochs = 1;
  o.keep_best = false;
  o.task = train::find_task("language");
  const nn::Loss loss = [](const Tensor& scores, const Tensor& target) {
    return cross_entropy(scores, target, ClassLossOptions{.ignore_index = data::kIgnoredTarget});
  };
  train::Trainer trainer(net, loss, sgd, o);
  const train::EpochReport epoch = trainer.fit(loader).epochs.at(0);
  const train::Evaluation evaluation = trainer.evaluate(loader);
  return {epoch.train_loss, evaluation.loss, *epoch.train_accuracy, evaluation.accuracy};
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

/// The first name whose bits differ; "" if all are equal.
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
