// Batches on their way to a GPU: sent while other work runs, scaled there, and how long the GPU
// waited.
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <doctest/doctest.h>
#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "gpu.h"

using namespace tenon;
using test::has_gpu;

namespace {

// 3 x 4 x 5 bytes that encode sample and position; targets encode the sample.
class Bytes : public data::Dataset {
 public:
  explicit Bytes(std::int64_t size, std::chrono::milliseconds each = {})
      : Dataset({.input_shape = {3, 4, 5}, .input_dtype = DType::UInt8, .classes = 4}),
        size_(size),
        each_(each) {}
  std::int64_t size() const override { return size_; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto* out = static_cast<std::uint8_t*>(inputs);
    auto* target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      if (index == bad) throw FormatError("example 11 is bad");
      std::this_thread::sleep_for(each_);
      for (std::int64_t k = 0; k < 60; ++k)
        *out++ = static_cast<std::uint8_t>(index * 37 + k * (1 + index % 4));
      *target++ = index % 4;
    }
  }
  std::int64_t bad = -1;

 private:
  std::int64_t size_;
  std::chrono::milliseconds each_;
};

data::LoaderOptions with(std::int64_t batch, int workers) {
  data::LoaderOptions o;
  o.batch = batch;
  o.workers = workers;
  o.seed = 5;
  o.channel_mean = {0.4, 0.5, 0.6};
  o.channel_std = {0.2, 0.3, 0.4};
  return o;
}

struct OnGpu {
  OnGpu() { set_device("cuda"); }
  ~OnGpu() { set_device("cpu"); }
};

train::TrainResult fit(const std::string& where, const std::shared_ptr<data::Dataset>& set,
                       const data::LoaderOptions& loading, std::vector<float>& weights) {
  set_device(where);
  manual_seed(1);
  nn::AnyModule net = nn::Sequential(nn::Flatten(), nn::Linear(60, 4));
  optim::SgdOptions sgd;
  sgd.lr = 0.05;
  optim::Sgd optimizer(net, sgd);
  data::Loader loader(set, loading);
  train::TrainOptions options;
  options.epochs = 2;
  options.keep_best = false;
  train::Trainer trainer(net, nn::CrossEntropyLoss(), optimizer, options);
  train::TrainResult result = trainer.fit(loader);
  weights = net.parameters()[0].to_vector<float>();
  set_device("cpu");
  return result;
}

double apart(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    most = std::max(most, std::abs(static_cast<double>(a[k] - b[k])));
  return most;
}

}  // namespace

TEST_CASE("GPU batches: what threads sent is what the set stores, epoch after epoch") {
  if (!has_gpu()) return;
  const auto set = std::make_shared<Bytes>(37);
  data::LoaderOptions options = with(5, 0);
  options.scale = false;
  data::Loader expected(set, options);
  const OnGpu on_gpu;
  for (const int workers : {0, 1, 3, 9}) {
    options = with(5, workers);
    options.prefetch = workers == 3 ? 1 : 4;
    data::Loader loader(set, options);
    expected.set_epoch(0);
    for (int batch = 0; batch < 20; ++batch) {
      if (batch == 11) loader.set_state(loader.state());  // left and begun anew, in the middle
      data::Batch given;
      std::vector<std::uint8_t> bytes(5 * 60);
      std::vector<std::int64_t> targets(5);
      const std::int64_t count = expected.next(bytes.data(), targets.data());
      REQUIRE(loader.next_stored(given) == (count > 0));
      CHECK(given.size == count);
      if (count == 0) continue;
      CHECK(given.input.dtype() == DType::UInt8);
      CHECK(given.input.shape() == Shape{count, 3, 4, 5});
      CHECK(given.input.device() == current_device());
      bytes.resize(static_cast<std::size_t>(count) * 60);
      targets.resize(static_cast<std::size_t>(count));
      CHECK(given.input.to_vector<std::uint8_t>() == bytes);
      CHECK(given.target.to_vector<std::int64_t>() == targets);
    }
  }
}

TEST_CASE("GPU batches: an error comes at its batch, and the batch can be tried again") {
  if (!has_gpu()) return;
  const auto set = std::make_shared<Bytes>(20);
  set->bad = 11;
  data::LoaderOptions options = with(4, 2);
  options.shuffle = false;
  const OnGpu on_gpu;
  data::Loader loader(set, options);
  data::Batch batch;
  CHECK(loader.next_stored(batch));
  CHECK(loader.next_stored(batch));
  CHECK_THROWS_AS(loader.next_stored(batch), FormatError);
  set->bad = -1;
  REQUIRE(loader.next_stored(batch));
  CHECK(batch.target.to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2, 3});
  REQUIRE(loader.next(batch));  // scaled, from now on
  CHECK(batch.input.dtype() == DType::Float32);
  CHECK(batch.input.to_vector<float>()[0] ==
        doctest::Approx((12 * 37 % 256 / 255.0 - 0.4) / 0.2).epsilon(1e-5));
}

TEST_CASE("GPU batches: bytes that are scaled on the GPU train as those scaled on the host") {
  if (!has_gpu()) return;
  const auto set = std::make_shared<Bytes>(36);
  std::vector<float> cpu, gpu;
  fit("cpu", set, with(6, 2), cpu);
  fit("cuda", set, with(6, 2), gpu);
  CHECK(apart(cpu, gpu) < 1e-5);
  // A set that lies on the GPU as a whole.
  std::vector<std::uint8_t> bytes(36 * 60);
  std::vector<std::int64_t> targets(36), all(36);
  for (std::size_t k = 0; k < 36; ++k) all[k] = static_cast<std::int64_t>(k);
  set->get(all, bytes.data(), targets.data());
  fit("cuda",
      data::from_tensors(Tensor::from(bytes, {36, 3, 4, 5}), Tensor::from(targets, {36}), 4),
      with(6, 0), gpu);
  CHECK(apart(cpu, gpu) < 1e-5);
}

TEST_CASE("GPU batches: the GPU waits for a slow dataset, and not for one in memory") {
  if (!has_gpu()) return;
  std::vector<float> weights;
  const auto slow = std::make_shared<Bytes>(24, std::chrono::milliseconds(10));
  const train::TrainResult result = fit("cuda", slow, with(6, 1), weights);
  // Two epochs of 240 ms, which one thread needs, less what went by while steps were planned.
  CHECK(result.data_seconds > 0.24);
  CHECK(result.data_seconds < result.seconds);
  CHECK(result.epochs[0].data_seconds + result.epochs[1].data_seconds ==
        doctest::Approx(result.data_seconds));
  const auto quick = std::make_shared<Bytes>(24);
  CHECK(fit("cuda", quick, with(6, 1), weights).data_seconds < 0.12);
}
