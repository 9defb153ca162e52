// Training on a GPU, real or emulated: the same course as on the CPU, the same errors.
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>

#include <doctest/doctest.h>
#include <tenon/compute.h>
#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "cuda/cuda.h"
#include "gpu.h"
#include "train/toy.h"

using namespace tenon;
using test::has_gpu;

namespace {

// Two clouds of points, told apart by a small network.
std::shared_ptr<data::Dataset> clouds() {
  manual_seed(3);
  const Tensor labels = cast(arange(0, 48), DType::Int64);
  const Tensor side = remainder(labels, 2);
  const Tensor x =
      randn({48, 6}) * 0.3f + (cast(reshape(side, {48, 1}), DType::Float32) * 2.0f - 1.0f);
  return data::from_tensors(x.compute(), side.compute(), 2);
}

train::TrainResult fit(const std::string& where, Precision precision, train::TrainOptions options,
                       const std::shared_ptr<data::Dataset>& set, StateDict* weights = nullptr,
                       float loss_factor = 1) {
  set_device(where);
  set_precision(precision);
  manual_seed(1);
  nn::AnyModule net = nn::Sequential(nn::Linear(6, 8), nn::Tanh(), nn::Linear(8, 2));
  optim::SgdOptions sgd;
  sgd.lr = 0.1;
  sgd.momentum = 0.9;
  optim::Sgd optimizer(net, sgd);
  data::LoaderOptions loading;
  loading.batch = 8;
  data::Loader loader(set, loading);
  const nn::Loss loss = [loss_factor](const Tensor& scores, const Tensor& target) {
    return cross_entropy(scores, target) * loss_factor;
  };
  train::Trainer trainer(net, loss, optimizer, std::move(options));
  train::TrainResult result = trainer.fit(loader);
  if (weights != nullptr)
    for (const auto& [name, t] : net.state_dict())
      weights->emplace(name, Tensor::from_data(t.data(), t.shape(), t.dtype(), Device{}));
  set_precision(Precision::Fp32);
  set_device("cpu");
  return result;
}

double distance(const StateDict& a, const StateDict& b) {
  double difference = 0, size = 0;
  for (const auto& [name, t] : a) {
    const std::vector<float> x = t.to_vector<float>(), y = b.at(name).to_vector<float>();
    for (std::size_t k = 0; k < x.size(); ++k) {
      difference += (x[k] - y[k]) * (x[k] - y[k]);
      size += x[k] * x[k];
    }
  }
  return std::sqrt(difference / size);
}

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "tenon-test-gpu").string();
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("GPU training: the course of the CPU in every precision") {
  if (!has_gpu()) return;
  const std::shared_ptr<data::Dataset> set = clouds();
  train::TrainOptions options;
  options.epochs = 3;
  options.keep_best = false;
  StateDict cpu;
  const double loss = fit("cpu", Precision::Fp32, options, set, &cpu).epochs.back().train_loss;
  const std::pair<Precision, double> bounds[] = {{Precision::Fp32, 1e-5},
                                                 {Precision::Tf32, 5e-3},
                                                 {Precision::Bf16, 3e-2},
                                                 {Precision::Fp16, 5e-3}};
  for (const auto& entry : bounds) {  // no structured binding: INFO captures, and clang 14 cannot
    const Precision precision = entry.first;
    const double bound = entry.second;
    INFO(name(precision));
    StateDict gpu;
    const train::TrainResult result = fit("cuda", precision, options, set, &gpu);
    CHECK(result.steps == 18);
    CHECK(result.epochs.back().train_loss == doctest::Approx(loss).epsilon(0.02));
    CHECK(distance(cpu, gpu) < bound);
  }
}

TEST_CASE("GPU training: begun on the CPU, ended on the GPU") {
  if (!has_gpu()) return;
  const std::shared_ptr<data::Dataset> set = clouds();
  const Folder folder;
  train::TrainOptions options;
  options.keep_best = false;
  options.epochs = 3;
  StateDict whole, resumed;
  fit("cpu", Precision::Fp32, options, set, &whole);
  options.run_dir = folder.path;
  options.stop_after = 8;
  CHECK(fit("cpu", Precision::Fp32, options, set).reason == train::StopReason::Interrupted);
  options.stop_after = 0;
  options.resume = true;
  CHECK(fit("cuda", Precision::Fp32, options, set, &resumed).steps == 18);
  CHECK(distance(whole, resumed) < 1e-5);
}

TEST_CASE("GPU training: a loss that is not finite stops the run and names where it arose") {
  if (!has_gpu()) return;
  std::vector<float> x(48 * 6, 0.5f);
  x[30 * 6 + 2] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::int64_t> y(48, 1);
  const std::shared_ptr<data::Dataset> set =
      data::from_tensors(Tensor::from(x, {48, 6}), Tensor::from(y, {48}), 2);
  train::TrainOptions options;
  options.epochs = 1;
  std::string message;
  try {
    fit("cuda", Precision::Fp32, options, set);
  } catch (const NumericError& error) {
    message = error.what();
  }
  set_device("cpu");
  INFO(message);
  CHECK(message.find("the input") != std::string::npos);
}

TEST_CASE("GPU training: the loss of an epoch of sequences is the mean over counted targets") {
  if (!has_gpu()) return;
  set_device("cuda");
  const toy::MeanLosses mean = toy::mean_losses_of_sequences(3);
  set_device("cpu");
  CHECK(mean.trained == doctest::Approx(mean.evaluated).epsilon(1e-6));
  CHECK(mean.trained == doctest::Approx(toy::mean_losses_of_sequences(3).trained).epsilon(1e-5));
}

TEST_CASE("GPU training: an overflow of float16 skips the step and halves the scale") {
  if (!has_gpu()) return;
  const Folder folder;
  train::TrainOptions options;
  options.epochs = 1;
  options.run_dir = folder.path;
  // Gradients of the scores, 65536 times as large, leave the range of float16.
  fit("cuda", Precision::Fp16, options, clouds(), nullptr, 100);
  const std::string log = io::read_file(folder.path + "/log.jsonl");
  CHECK(log.find("\"overflow\"") != std::string::npos);
  CHECK(log.find("the loss scale is halved") != std::string::npos);
}

TEST_CASE("cuda: a program that runs out of memory names its largest values by layer") {
  if (!has_gpu()) return;
  set_device("cuda");
  const nn::AnyModule net = nn::Sequential(nn::Linear(64, 4096), nn::Tanh(), nn::Linear(4096, 2));
  CompiledFunction scores =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; });
  const Tensor x = ones({2048, 64}).compute();
  cuda::memory().trim(0);
  cuda::memory().set_limit(cuda::memory().stats(0).in_use + (8 << 20), 0);
  std::string text;
  try {
    scores({x});
  } catch (const MemoryError& error) {
    text = error.what();
  }
  cuda::memory().set_limit(0, 0);
  set_device("cpu");
  CHECK(text.find("no room") != std::string::npos);
  CHECK(text.find("float32[2048, 4096] of layer 1") != std::string::npos);
}
