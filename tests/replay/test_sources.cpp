// The CUDA backend's kernel sources for training steps: the longest kernel of each printer,
// compared with the committed one; no GPU is needed.
//
// When a kernel is meant to change, record it with ./dev replay and commit the difference.
#include <doctest/doctest.h>

#include <tenon/grad.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/optim.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cuda/cuda.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/jit.h"
#include "cuda/jit/nvrtc.h"
#include "graph/node.h"
#include "graph/order.h"
#include "plan/program/program.h"
#include "recorded.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Training {
  const char* model;
  const char* optimizer;
  std::int64_t batch;
  double clip_norm = 0;  // 0: gradients as they are
};

// The reference networks, fcn_r and fcn_s with smaller hidden layers (kernels depend on the sizes'
// patterns alone), and a clipped step whose products are large enough for every engine
// of products.
const Training kTrainings[] = {
    {"lenet5", "sgd", 64},
    {"keras_cnn", "adam", 128},
    {"mlp:784-64-128-32-10", "sgd", 1024},
    {"mlp:26752-16-16-16-26752", "sgd", 64},
    {"mlp:784-2048-1024-10", "sgd", 1024, 1.0},
};
const std::string kFolder = "tests/replay/sources/";

/// Claims what no engine of the GPU does: this test is about those that do.
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

std::shared_ptr<const Program> plan(const std::vector<Tensor>& roots) {
  std::vector<Node*> leaves;
  for (Node* node : topological_order(roots))
    if (node->realised()) leaves.push_back(node);
  static const Rest rest;
  const auto of_gpu = cuda::engines(cuda::Target());
  std::vector<const Engine*> engines(of_gpu.begin(), of_gpu.end());
  engines.push_back(&rest);
  PlanOptions plan;
  plan.device = {Device::Kind::Cuda, 0};
  plan.traits = cuda::backend().traits();
  plan.engines = engines;
  return plan_program(roots, leaves, plan);
}

Tensor numbers(const Shape& shape) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel())), shape);
}

std::vector<Tensor> training_step(const Training& r, std::int64_t batch) {
  const nn::AnyModule net = models::create(r.model);
  optim::OptimizerOptions options;
  if (std::string(r.optimizer) == "sgd") options.momentum = 0.9;
  const auto optimizer = optim::create(r.optimizer, net, options);
  const std::string model = r.model;
  const std::int64_t width = model.rfind("mlp:", 0) == 0 ? std::stoll(model.substr(4)) : 784;
  const Tensor x = numbers(width == 784 ? Shape{batch, 1, 28, 28} : Shape{batch, width});
  const Tensor y =
      Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(batch)), {batch});
  const Tensor loss = cross_entropy(net(x), y);
  std::vector<Tensor> grads = grad(loss, optimizer->parameters());
  if (r.clip_norm > 0) grads = optim::clip_grad_norm(grads, r.clip_norm).grads;
  std::vector<Tensor> roots = optimizer->updates(grads);
  roots.insert(roots.begin(), loss);
  return roots;
}

/// Kernels that no training step above has: a product with a prologue, and data movement.
std::vector<Tensor> others() {
  const Tensor a = numbers({64, 120}), w = numbers({120, 84});
  const Tensor rows = Tensor::from(std::vector<std::int64_t>(8), {8});
  return {matmul(relu(a), w), concat({a, slice(a, 1, 0, 60)}, 1), index_select(w, 0, rows)};
}

enum class Which : std::uint8_t { Maps, All };

/// The sources printed for a program's regions, each once, in the order of their first step.
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

/// The sources of a step in float32, then those that only the step in bfloat16 has.
std::vector<std::string> sources_of(const std::function<std::vector<Tensor>()>& step, Which which) {
  std::vector<std::string> sources;
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    const PrecisionScope scope(precision);
    add_sources(sources, *plan(step()), which);
  }
  return sources;
}

std::vector<std::string> all_sources() {
  std::vector<std::string> all = sources_of(others, Which::All);
  for (const Training& r : kTrainings)
    for (std::string& text : sources_of([&] { return training_step(r, r.batch); }, Which::All))
      if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
  return all;
}

/// Which printer a kernel is from: the first device header that is no element-wise one's, or the
/// kind of kernel with which the name of its entry begins. What a struct in front of a product adds
/// counts as a printer of its own.
std::string printer_of(const std::string& text) {
  const std::string include = "#include \"cuda/kernels/";
  const char* prologue = text.find("struct Prologue") != std::string::npos ? "_prologue" : "";
  for (std::size_t at = text.find(include); at != std::string::npos;
       at = text.find(include, at + 1)) {
    const std::size_t from = at + include.size();
    std::string header = text.substr(from, text.find('.', from) - from);
    header.erase(0, header.rfind('/') + 1);
    if (header.rfind("map", 0) != 0 && header != "philox") return header + prologue;
  }
  const std::size_t bounds = text.find("__launch_bounds__"), from = text.find(") ", bounds) + 2;
  return "map_" + text.substr(from, text.find('_', from) - from);
}

/// The longest kernel of each printer, by the printer's name.
std::map<std::string, std::string> longest_sources() {
  std::map<std::string, std::string> longest;
  for (std::string& text : all_sources()) {
    std::string& kept = longest[printer_of(text)];
    if (text.size() > kept.size()) kept = std::move(text);
  }
  return longest;
}

}  // namespace

TEST_CASE("replay: each printer's longest kernel is the recorded one") {
  const bool write = records();
  const auto printed = longest_sources();
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const bool known = printed.count(entry.path().stem().string()) != 0;
    if (write && !known)
      std::filesystem::remove(entry.path());
    else
      CHECK_MESSAGE(known, entry.path().string() << ": nothing is printed by such a printer");
  }
  for (const auto& [printer, text] : printed) {
    const std::string path = kFolder + printer + ".cu";
    if (write) {
      io::write_file(path, text);
    } else {
      const bool same = std::filesystem::exists(path) && io::read_file(path) == text;
      CHECK_MESSAGE(same, path << " differs: ./dev replay records the new kernel");
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
  for (const std::string& text : all_sources()) {
    CAPTURE(text);
    CHECK(count(text, "__global__") >= 1);
    CHECK(count(text, cuda::kAwaits) == count(text, "__global__"));
  }
}

TEST_CASE("replay: another batch size has the same kernels") {
  for (const Training& r : kTrainings) {
    CAPTURE(std::string(r.model));
    const auto whole = sources_of([&] { return training_step(r, r.batch); }, Which::Maps);
    for (const std::string& text :
         sources_of([&] { return training_step(r, r.batch / 2); }, Which::Maps)) {
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
  int count = 0;
  for (const std::string& text : all_sources()) {
    // In turns for the oldest and the newest GPU: their templates have tests of their own.
    const bool hopper = text.find("__cluster_dims__") != std::string::npos;
    const int arch = ++count % 2 == 0 && !hopper ? 80 : 90;
    const auto result = cuda::nvrtc().compile(text, "kernel.cu", cuda::headers_of(text), arch);
    CHECK_MESSAGE(!result.image.empty(), result.log << "\n" << text);
  }
}
