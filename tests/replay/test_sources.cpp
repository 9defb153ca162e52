// The kernels that the CUDA backend prints for training steps, compared with the committed ones; no
// card is needed.
//
// When a kernel is meant to change, run the tests with TENON_REPLAY=write and commit the
// difference.
#include <doctest/doctest.h>

#include <tenon/grad.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/optim.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda/cuda.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/jit.h"
#include "cuda/jit/nvrtc.h"
#include "graph/node.h"
#include "plan/program.h"

using namespace tenon;

namespace {

struct Recorded {
  const char* file;
  const char* model;
  const char* optimizer;
  std::int64_t batch;
};

// fcn_s with narrower hidden layers: its kernels depend on the sizes' patterns alone.
const Recorded kRecorded[] = {
    {"lenet5", "lenet5", "sgd", 64},
    {"keras_cnn", "keras_cnn", "adam", 128},
    {"fcn_r", "mlp:784-64-128-32-10", "sgd", 1024},
    {"fcn_s", "mlp:26752-16-16-16-26752", "sgd", 64},
};

/// Claims what no engine of the card does: this test is about those that do.
class Rest final : public Engine {
 public:
  const char* name() const override { return "none"; }
  bool claims(const Region&, std::span<const Value>, std::string*) const override { return true; }
  std::unique_ptr<Kernel> prepare(const Region&, std::span<const Value>, int) const override {
    return std::make_unique<Nothing>();
  }

 private:
  struct Nothing final : Kernel {
    void run(const Binding&) const override {}
  };
};

std::shared_ptr<const Program> training_step(const Recorded& r, std::int64_t batch,
                                             Arithmetic arithmetic = Arithmetic::Fp32) {
  const nn::AnyModule net = models::create(r.model);
  optim::OptimizerOptions options;
  if (std::string(r.optimizer) == "sgd") options.momentum = 0.9;
  const auto optimizer = optim::create(r.optimizer, net, options);
  const std::string model = r.model;
  const std::int64_t width = model.rfind("mlp:", 0) == 0 ? std::stoll(model.substr(4)) : 784;
  const auto pixels = static_cast<std::size_t>(batch * width);
  const Shape images = width == 784 ? Shape{batch, 1, 28, 28} : Shape{batch, width};
  const Tensor x = Tensor::from(std::vector<float>(pixels), images);
  const Tensor y =
      Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(batch)), {batch});
  const Tensor loss = cross_entropy(net(x), y);
  std::vector<Tensor> roots = optimizer->updates(grad(loss, optimizer->parameters()));
  roots.insert(roots.begin(), loss);
  std::vector<Node*> leaves;
  for (Node* node : topological_order(roots))
    if (node->realised()) leaves.push_back(node);
  static const Rest rest;
  const auto of_card = cuda::engines(cuda::Target());
  std::vector<const Engine*> engines(of_card.begin(), of_card.end());
  engines.push_back(&rest);
  PlanOptions plan;
  plan.device = {Device::Kind::Cuda, 0};
  plan.engines = engines;
  plan.arithmetic = arithmetic;
  return plan_program(roots, leaves, plan);
}

enum class Which : std::uint8_t { Maps, All };

/// What is printed for a program's regions, each once, in order of their first step.
void add_sources(std::vector<std::string>& sources, const Program& program, Which which) {
  const std::string between = cuda::kNextLaunch;
  for (const Step& step : program.steps) {
    const bool map = step.region.kind == RegionKind::Map || step.region.kind == RegionKind::Joined;
    std::string rest = map || which == Which::All ? step.kernel->source() : "";
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(between), rest.size());
      const std::string text = rest.substr(0, end);
      rest.erase(0, end + between.size());
      if (std::find(sources.begin(), sources.end(), text) == sources.end()) sources.push_back(text);
    }
  }
}

/// Those of a training step in float32, then those that it has in bfloat16 only.
std::vector<std::string> sources_of(const Recorded& r, std::int64_t batch, Which which) {
  std::vector<std::string> sources;
  for (const Arithmetic arithmetic : {Arithmetic::Fp32, Arithmetic::Bf16})
    add_sources(sources, *training_step(r, batch, arithmetic), which);
  return sources;
}

std::string joined(const std::vector<std::string>& sources) {
  std::string text;
  for (const std::string& source : sources) text += source + cuda::kNextLaunch;
  return text;
}

}  // namespace

TEST_CASE("replay: the kernels of training steps are the recorded ones") {
  const char* mode = std::getenv("TENON_REPLAY");
  const bool write = mode != nullptr && std::string(mode) == "write";
  for (const Recorded& r : kRecorded) {
    const std::string text = joined(sources_of(r, r.batch, Which::All));
    const std::string path = std::string("tests/replay/sources/") + r.file + ".cu";
    if (write) {
      io::write_file(path, text);
    } else {
      const bool same = io::read_file(path) == text;
      CHECK_MESSAGE(same, path << " differs: TENON_REPLAY=write records the new kernels");
    }
  }
}

TEST_CASE("replay: every kernel waits for those in front of it, once") {
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  for (const Recorded& r : kRecorded)
    for (const std::string& text : sources_of(r, r.batch, Which::All)) {
      CAPTURE(text);
      CHECK(count(text, "__global__") == 1);
      CHECK(count(text, cuda::kAwaits) == 1);
    }
}

TEST_CASE("replay: another batch size has the same kernels") {
  for (const Recorded& r : kRecorded) {
    CAPTURE(std::string(r.file));
    const auto whole = sources_of(r, r.batch, Which::Maps);
    for (const std::string& text : sources_of(r, r.batch / 2, Which::Maps)) {
      const bool known = std::find(whole.begin(), whole.end(), text) != whole.end();
      CHECK_MESSAGE(known, text);
    }
  }
}

TEST_CASE("replay: NVRTC takes the kernels of training steps") {
  if (!cuda::nvrtc().problem.empty()) {
    MESSAGE("skipped: " << cuda::nvrtc().problem);
    return;
  }
  std::vector<std::string> done;
  for (const Recorded& r : kRecorded)
    for (const std::string& text : sources_of(r, r.batch, Which::All)) {
      if (std::find(done.begin(), done.end(), text) != done.end()) continue;
      done.push_back(text);
      // In turns for the oldest and the newest card: their templates have tests of their own.
      const int arch = done.size() % 2 == 0 ? 80 : 90;
      const auto result = cuda::nvrtc().compile(text, "kernel.cu", cuda::headers_of(text), arch);
      CHECK_MESSAGE(!result.image.empty(), result.log << "\n" << text);
    }
}
