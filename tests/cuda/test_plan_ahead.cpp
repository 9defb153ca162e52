// The start of a run on a GPU, real or emulated: kernels are requested before weights exist, and
// the first checkpoint is written while it trains.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/eval.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include "../io/folder.h"
#include "cuda/jit/jit.h"
#include "gpu.h"

using namespace tenon;
using test::has_gpu;

namespace {

constexpr char kModel[] = "mlp:784-300-10";

train::Settings small_run() {
  train::Settings s = train::Settings::resolve(kModel, "", {});
  s.data = "digits:192,32";
  s.device = "cuda";
  s.epochs = 1;
  s.batch = 64;
  s.seed = 11;
  s.checkpoint_steps = 1;
  s.keep_checkpoints = 9;
  return s;
}

struct Watch final : train::Callback {
  void on_step(const train::StepReport& step) override {
    (step.step == 1 ? after_first_step : after_last_step) = cuda::sources_for(0).size();
  }
  void on_checkpoint(const std::string& path) override {
    checkpoints.push_back(std::filesystem::path(path).stem().string());
  }
  std::size_t after_first_step = 0, after_last_step = 0;
  std::vector<std::string> checkpoints;
};

}  // namespace

TEST_CASE("plan ahead: the step is planned once, by the thread that comes first") {
  if (!has_gpu()) return;
  const TestFolder folder;
  const auto plans_of = [](const auto& run) {
    const std::int64_t before = runner_stats().programs_planned;
    run();
    return runner_stats().programs_planned - before;
  };
  struct Counted {
    const char* what;
    std::string model, data, precision;
  };
  // As many samples for validation as for testing, so that one plan measures both.
  const std::string data = "digits:192,32,validation=0.167";
  for (const Counted& c :
       {Counted{"a classifier", "mlp:784-20-10", data, "fp32"},
        Counted{"with rounded copies of its weights", "mlp:784-64-10", data, "bf16"},
        Counted{"with a scaled loss", "mlp:784-64-10", data, "fp16"},
        Counted{"with convolutions", "lenet5", data, "fp32"}}) {
    INFO(c.what);
    train::Settings s = small_run();
    s.model = c.model;
    s.data = c.data;
    s.precision = c.precision;
    s.schedule = "constant";  // a new rate is a number, which is a program of one step
    train::start_run(s, folder / "first",
                     {});  // the programs that run once (weights) are planned then
    // The step and the evaluation.
    CHECK(plans_of([&] { train::start_run(s, folder / "second", {}); }) == 2);
    const auto resume = [&](const char* epochs) {
      train::resume_run(folder / "second", {}, {{"epochs", epochs}});
    };
    resume("2"), resume("3");  // the programs of loading are planned then
    CHECK(plans_of([&] { resume("4"); }) == 2);
    std::filesystem::remove_all(folder / "first");
    std::filesystem::remove_all(folder / "second");
  }
}

TEST_CASE("plan ahead: an incomplete batch requests no kernels either") {
  if (!has_gpu()) return;
  const TestFolder folder;
  const auto watch = std::make_shared<Watch>();
  train::Settings s = small_run();
  s.data = "digits:288,32";
  s.batch = 256;
  s.precision = "tf32";  // no other case requests these kernels
  CHECK(train::start_run(s, folder / "run", {{watch}, {}}).steps == 2);
  CHECK(watch->after_last_step == watch->after_first_step);
}

TEST_CASE("plan ahead: the weights follow from the seed, and the first checkpoint has them") {
  if (!has_gpu()) return;
  const TestFolder folder;
  const auto watch = std::make_shared<Watch>();
  train::start_run(small_run(), folder / "run", {{watch}, {}});
  CHECK(watch->checkpoints == std::vector<std::string>{"step-00000000", "step-00000001",
                                                       "step-00000002", "step-00000003"});
  const io::TensorMap first =
      io::load_safetensors(folder / "run/checkpoints/step-00000000.safetensors").tensors;
  set_device("cuda");
  manual_seed(11);
  const StateDict drawn = models::create(kModel, {10, "", nullptr}).state_dict();
  for (const auto& weight : drawn) {
    INFO(weight.first);
    const auto kept = first.find("model." + weight.first);
    REQUIRE(kept != first.end());
    CHECK(kept->second.to_vector<float>() == weight.second.to_vector<float>());
  }
  set_device("cpu");
}
