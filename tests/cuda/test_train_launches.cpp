// Training with several steps in one launch, on a GPU, real or emulated: the bits, logs, stops and
// errors of single steps.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <sstream>

#include <doctest/doctest.h>
#include <tenon/compute.h>
#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "cuda/cuda.h"
#include "gpu.h"

using namespace tenon;
using test::has_gpu;

namespace {

constexpr std::int64_t kExamples = 58, kBatch = 8, kStepsPerEpoch = 8;  // the last batch has 2

std::shared_ptr<data::Dataset> examples(std::int64_t spoilt = -1) {
  manual_seed(3);
  const Tensor labels = remainder(cast(arange(0, kExamples), DType::Int64), 2);
  std::vector<float> x = (randn({kExamples, 6}) +
                          (cast(reshape(labels, {kExamples, 1}), DType::Float32) * 2.0f - 1.0f))
                             .to_vector<float>();
  if (spoilt >= 0)
    x[static_cast<std::size_t>(spoilt * 6)] = std::numeric_limits<float>::quiet_NaN();
  return data::from_tensors(Tensor::from(x, {kExamples, 6}), labels.compute(), 2);
}

struct Run {
  train::TrainResult result;
  std::vector<float> weights, moments;
  std::string error;
};

void append(std::vector<float>& to, const StateDict& state) {
  for (const auto& [name, t] : state)
    if (t.dtype() == DType::Float32)
      for (float f : t.to_vector<float>()) to.push_back(f);
}

/// Dropout, a schedule that changes at every step, clipping.
Run fit(train::TrainOptions options, const std::shared_ptr<data::Dataset>& set,
        Precision arithmetic = Precision::Fp32, float loss_factor = 1) {
  set_device("cuda");
  set_precision(arithmetic);
  manual_seed(1);
  nn::AnyModule net =
      nn::Sequential(nn::Linear(6, 8), nn::Tanh(), nn::Dropout(0.25), nn::Linear(8, 2));
  optim::Adam optimizer(net, {.lr = 0.02});
  data::LoaderOptions loading;
  loading.batch = kBatch;
  data::Loader loader(set, loading);
  options.schedule = "cosine";
  options.keep_best = false;
  const nn::Loss loss = [loss_factor](const Tensor& scores, const Tensor& target) {
    return cross_entropy(scores, target) * loss_factor;
  };
  Run run;
  train::Trainer trainer(net, loss, optimizer, std::move(options));
  try {
    run.result = trainer.fit(loader);
  } catch (const NumericError& error) {
    run.error = error.what();
  }
  append(run.weights, net.state_dict());
  append(run.moments, optimizer.state_dict());
  set_precision(Precision::Fp32);
  set_device("cpu");
  return run;
}

train::TrainOptions options_for(int steps, int epochs = 3) {
  train::TrainOptions options;
  options.epochs = epochs;
  options.clip_norm = 0.7;
  options.steps_per_launch = steps;
  return options;
}

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "tenon-test-launches").string();
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

void check_same(const Run& a, const Run& b) {
  CHECK(a.result.steps == b.result.steps);
  CHECK(a.weights == b.weights);
  CHECK(a.moments == b.moments);
  CHECK(a.error == b.error);
  REQUIRE(a.result.epochs.size() == b.result.epochs.size());
  for (std::size_t e = 0; e < a.result.epochs.size(); ++e) {
    CHECK(a.result.epochs[e].train_loss == b.result.epochs[e].train_loss);
    CHECK(a.result.epochs[e].train_accuracy == b.result.epochs[e].train_accuracy);
    CHECK(a.result.epochs[e].lr == b.result.epochs[e].lr);
  }
}

/// Lines of log.jsonl that do not tell times.
std::string log_of(const std::string& dir) {
  std::istringstream log(io::read_file(dir + "/log.jsonl"));
  std::string out;
  for (std::string line; std::getline(log, line);)
    if (line.find("seconds") == std::string::npos) out += line + '\n';
  return out;
}

}  // namespace

TEST_CASE("GPU launches: the bits of single steps, with a schedule, dropout and clipping") {
  if (!has_gpu()) return;
  const std::shared_ptr<data::Dataset> set = examples();
  const Run single = fit(options_for(1), set);
  CHECK(single.result.steps == 3 * kStepsPerEpoch);
  for (const int steps : {0, 2, 3, 5, 32}) {
    CAPTURE(steps);
    check_same(single, fit(options_for(steps), set));
  }
}

TEST_CASE("GPU launches: averaged weights and accumulated gradients") {
  if (!has_gpu()) return;
  const std::shared_ptr<data::Dataset> set = examples();
  for (const optim::Averaging& averaging : {optim::ema(0.8, 1), optim::swa(1)}) {
    train::TrainOptions options = options_for(1);
    options.accumulate = 3;
    options.averaging = averaging;
    const Run single = fit(options, set);
    CHECK(single.weights != fit(options_for(1), set).weights);
    options.steps_per_launch = 4;
    check_same(single, fit(options, set));
  }
}

TEST_CASE("GPU launches: float16 with its scale, and the log") {
  if (!has_gpu()) return;
  const std::shared_ptr<data::Dataset> set = examples();
  for (const float factor : {1.0f, 100.0f}) {  // 100: gradients leave the range of float16
    CAPTURE(factor);
    const Folder folder;
    train::TrainOptions options = options_for(1, 2);
    options.run_dir = folder.path;
    const Run single = fit(options, set, Precision::Fp16, factor);
    const std::string log = log_of(folder.path);
    CHECK((log.find("\"overflow\"") != std::string::npos) == (factor > 1));
    std::filesystem::remove_all(folder.path);
    options.steps_per_launch = 3;
    check_same(single, fit(options, set, Precision::Fp16, factor));
    CHECK(log_of(folder.path) == log);
  }
}

TEST_CASE("GPU launches: nothing follows a loss that is not finite") {
  if (!has_gpu()) return;
  const std::shared_ptr<data::Dataset> set = examples(29);
  const Run single = fit(options_for(1), set), together = fit(options_for(4), set);
  CHECK(single.error.find("the input") != std::string::npos);
  check_same(single, together);
  for (float w : together.weights) CHECK(w == w);
}

TEST_CASE("GPU launches: a run stopped after a step, by request or between checkpoints, resumes") {
  if (!has_gpu()) return;
  const std::shared_ptr<data::Dataset> set = examples();
  const Run whole = fit(options_for(1), set);
  for (const int stop_after : {1, 7, 11}) {
    CAPTURE(stop_after);
    const Folder folder;
    train::TrainOptions options = options_for(4);
    options.run_dir = folder.path;
    options.checkpoint_steps = 3;
    options.stop_after = stop_after;
    const Run part = fit(options, set);
    CHECK(part.result.reason == train::StopReason::Interrupted);
    CHECK(part.result.steps == stop_after);
    options.stop_after = 0;
    options.resume = true;
    int asked = 0;  // stopped again, by request: between launches
    options.stop = [&asked] { return ++asked > 3; };
    const Run more = fit(options, set);
    CHECK(more.result.reason == train::StopReason::Interrupted);
    CHECK(more.result.steps > stop_after);
    options.stop = {};
    check_same(whole, fit(options, set));
  }
}
