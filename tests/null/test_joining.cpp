// Which regions share a launch, on both backends. Needs no GPU.
#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/cuda.h"
#include "cuda/engines/maps/map_engine.h"
#include "graph/node.h"
#include "graph/order.h"
#include "plan/program/program.h"

using namespace tenon;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Tensor loss_of(const nn::AnyModule& net, std::int64_t batch) {
  const auto pixels = static_cast<std::size_t>(batch * 784);
  const Tensor x = Tensor::from(std::vector<float>(pixels, 0.5f), {batch, 1, 28, 28});
  const Tensor y =
      Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(batch)), {batch});
  return cross_entropy(net(x), y);
}

/// A training step, as roots.
std::vector<Tensor> step_of(const nn::AnyModule& net, optim::Optimizer& optimizer, double clip) {
  const Tensor loss = loss_of(net, 16);
  std::vector<Tensor> grads = grad(loss, optimizer.parameters());
  if (clip > 0) grads = optim::clip_grad_norm(grads, clip).grads;
  std::vector<Tensor> roots = optimizer.updates(grads);
  roots.insert(roots.begin(), loss);
  return roots;
}

/// Planned for a GPU that need not exist.
std::shared_ptr<const Program> planned(const std::vector<Tensor>& roots, PassSet disabled,
                                       const cuda::Target& target = {}) {
  std::vector<Node*> leaves;
  for (Node* node : topological_order(roots))
    if (node->realised()) leaves.push_back(node);
  PlanOptions options;
  options.device = {Device::Kind::Cuda, 0};
  options.traits = cuda::backend().traits();
  options.engines = cuda::engines(target);
  options.disabled = disabled;
  return plan_program(roots, leaves, options);
}

constexpr PassSet kNoJoin{kJoin}, kNoPhases{kPhases};

std::shared_ptr<const Program> planned(const std::string& model, double clip, PassSet disabled = {},
                                       const cuda::Target& target = {}) {
  const nn::AnyModule net = models::create(model);
  optim::Adam adam(net);
  return planned(step_of(net, adam, clip), disabled, target);
}

/// The step with the update of the last weights, which waits for the norm.
const Region& update_of(const Program& program) {
  const Region* found = nullptr;
  for (const Step& step : program.steps)
    for (const Region& part : step.region.parts)
      if (contains(part.title, "assign") && part.map.space.numel() > 500) found = &step.region;
  REQUIRE(found != nullptr);
  return *found;
}

std::size_t launches(const std::shared_ptr<const Program>& program) {
  return program->steps.size();
}

/// The length of the longest path of steps that wait for each other.
int longest_path(const Program& p) {
  std::vector<int> end(p.steps.size(), 0), wrote(p.values.size(), 0), read(p.values.size(), 0);
  int longest = 0;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const Region& region = p.steps[s].region;
    for (ValueId id : region.reads) end[s] = std::max(end[s], wrote[static_cast<std::size_t>(id)]);
    for (ValueId id : region.writes)
      end[s] = std::max(
          {end[s], wrote[static_cast<std::size_t>(id)], read[static_cast<std::size_t>(id)]});
    ++end[s];
    for (ValueId id : region.reads)
      read[static_cast<std::size_t>(id)] = std::max(read[static_cast<std::size_t>(id)], end[s]);
    for (ValueId id : region.writes) wrote[static_cast<std::size_t>(id)] = end[s];
    longest = std::max(longest, end[s]);
  }
  return longest;
}

/// The GPU's engine of maps; counts how often it is asked what a map needs of a launch.
class Counting final : public Engine {
 public:
  const char* name() const override { return engine_.name(); }
  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    return engine_.claims(region, values, why);
  }
  Capabilities capabilities(const Region& region, std::span<const Value> values) const override {
    if (region.kind == RegionKind::Map && !region.map.instrs.empty()) ++asked;
    return engine_.capabilities(region, values);
  }
  double saves(std::span<const LaunchPart> parts, std::string* why) const override {
    ++weighed;
    return engine_.saves(parts, why);
  }
  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return engine_.prepare(region, values, threads);
  }
  mutable std::size_t asked = 0, weighed = 0;

 private:
  const Engine& engine_ = cuda::map_engine(cuda::Target());
};

}  // namespace

TEST_CASE("joining: an engine is asked once about a map's share of a launch") {
  const nn::AnyModule net = models::create("mlp:784-300-10");
  optim::Adam adam(net);
  const std::vector<Tensor> roots = step_of(net, adam, 1);
  std::vector<Node*> leaves;
  for (Node* node : topological_order(roots))
    if (node->realised()) leaves.push_back(node);
  const Counting counting;
  std::vector<const Engine*> engines{&counting};
  for (const Engine* engine : cuda::engines(cuda::Target())) engines.push_back(engine);
  PlanOptions options;
  options.device = {Device::Kind::Cuda, 0};
  options.engines = engines;
  const auto program = plan_program(roots, leaves, options);
  std::size_t maps = 0;
  for (const Step& step : program->steps)
    maps += step.region.kind == RegionKind::Map ? 1 : step.region.parts.size();
  CHECK(counting.weighed > 0);
  CHECK(counting.asked == maps);
}

TEST_CASE("joining: on the CPU nothing is joined, and the plan says why") {
  const nn::AnyModule net = models::create("lenet5");
  optim::Adam adam(net);
  const std::vector<Tensor> roots = step_of(net, adam, 1);
  CHECK(contains(plan(roots).fusion(), "joined: nothing: a region is a function call"));
  CHECK_FALSE(contains(plan(roots).fusion(), "launch of its own"));
  CHECK_FALSE(contains(plan(roots).fusion(), "phase"));
}

TEST_CASE("joining: small updates and bias sums of a GPU share launches") {
  for (const char* model : {"lenet5", "keras_cnn"}) {
    CAPTURE(std::string(model));
    const auto apart = planned(model, 0, kNoJoin), joined = planned(model, 0);
    CHECK(launches(joined) + 6 <= launches(apart));
    CHECK(longest_path(*joined) <= longest_path(*apart));
    CHECK(contains(print_fusion(*apart), "joined: nothing: the pass is switched off"));
    const std::string text = print_fusion(*joined);
    CHECK(contains(text, "share a launch"));
    CHECK(contains(text, "has a launch of its own: "));
    CHECK(contains(print_steps(*joined), "joined"));
    // All bias updates in one launch, at the end.
    int updates = 0;
    for (const Region& part : joined->steps.back().region.parts)
      if (contains(part.title, "assign")) ++updates;
    CHECK(updates >= 5);
  }
}

TEST_CASE("joining: without phases, clipping by the norm takes three launches with the updates") {
  for (const char* model : {"lenet5", "keras_cnn", "mlp:784-300-10"}) {
    CAPTURE(std::string(model));
    const auto plain = planned(model, 0), clipped = planned(model, 1, kNoPhases);
    INFO(print_steps(*clipped));
    // Sums of squares, the factor, the updates; without clipping each update was its gradient's
    // epilogue.
    CHECK(launches(clipped) <= launches(plain) + 3);
    CHECK(launches(clipped) + 5 <= launches(planned(model, 1, kNoJoin)));
    CHECK(contains(print_fusion(*clipped), "; no phases: the pass is switched off"));
  }
}

TEST_CASE("joining: the factor of clipping is made by every block of the updates") {
  // Sums of squares that wait for the last product, that run beside it, and large ones.
  for (const char* model : {"mlp:784-300-10", "lenet5", "keras_cnn", "mlp:784-2100-2100-10"}) {
    CAPTURE(std::string(model));
    const auto apart = planned(model, 1, kNoPhases), clipped = planned(model, 1);
    const std::string text = print_fusion(*clipped);
    INFO(text);
    CHECK(launches(clipped) + 1 == launches(apart));
    CHECK(longest_path(*clipped) < longest_path(*apart));
    CHECK(contains(text, "2 of these launches are phases of 1"));
    const Region& all = update_of(*clipped);
    CHECK(contains(all.title, "in 2 phases"));
    CHECK(all.parts.front().phase == 0);
    CHECK(contains(all.parts.front().title, "square+sum"));
    CHECK(all.parts.back().phase == 1);
    // A value that one phase leaves for the next is not an input.
    for (ValueId id : all.reads) {
      if (clipped->values[static_cast<std::size_t>(id)].kind != Value::Kind::Arena) continue;
      CHECK(std::find(all.writes.begin(), all.writes.end(), id) == all.writes.end());
    }
  }
}

TEST_CASE("joining: why there are no phases") {
  const auto waits = planned("mlp:784-300-10", 1, PassSet{kReductions});
  CHECK(contains(update_of(*waits).why, "in one launch blocks would have to wait"));
  const auto beside = planned("lenet5", 1);
  CHECK(contains(update_of(*beside).why, "it also waits for a step that ends later"));
  const std::string deep =
      "mlp:784-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-64-10";
  cuda::Target old;
  old.launch_bytes = 4096;
  CHECK(contains(print_fusion(*planned(deep, 1, {}, old)),
                 "together the phases need more arguments than a launch can have"));
  CHECK(contains(update_of(*planned(deep, 1)).title, "in 2 phases"));
  // Without clipping, updates are epilogues: at most one launch can be saved.
  for (const char* model : {"lenet5", "keras_cnn", "mlp:784-300-10"}) {
    CAPTURE(std::string(model));
    const auto with = launches(planned(model, 0)), without = launches(planned(model, 0, kNoPhases));
    CHECK(with <= without);
    CHECK(with + 1 >= without);
  }
}

TEST_CASE("joining: maps that products wait for are not delayed") {
  for (const std::int64_t batch : {24, 16}) {  // 16: as many as a convolution has channels
    CAPTURE(batch);
    const nn::AnyModule net = models::create("lenet5");
    optim::Sgd sgd(net, {.lr = 0.1, .momentum = 0.9});
    const Tensor loss = loss_of(net, batch);
    const auto program = planned(sgd.updates(grad(loss, sgd.parameters()), isfinite(loss)), {});
    INFO(print_steps(*program));
    // The guard of the updates comes before the first of them.
    for (const Step& step : program->steps) {
      if (contains(step.region.title, "isnan")) break;
      CHECK_FALSE(contains(step.region.title, "assign"));
    }
    CHECK(program->steps.back().region.parts.size() >= 5);
  }
}

TEST_CASE("joining: vectors that are read much later share a launch") {
  const PrecisionScope scope(Precision::Bf16);
  const nn::AnyModule net = models::create("resnet20");
  optim::Sgd sgd(net, {.lr = 0.1});
  const Tensor x = Tensor::from(std::vector<float>(16 * 3 * 32 * 32, 0.5f), {16, 3, 32, 32});
  const Tensor y = Tensor::from(std::vector<std::int64_t>(16), {16});
  const Tensor loss = cross_entropy(net(x), y);
  std::vector<Tensor> roots = sgd.updates(grad(loss, sgd.parameters()));
  roots.insert(roots.begin(), loss);
  const auto program = planned(roots, {});
  INFO(print_steps(*program));
  CHECK(longest_path(*program) <= longest_path(*planned(roots, kNoJoin)));
  // Deviations of channels, kept for the gradients, need no launch beside each normalisation's.
  int launches = 0;
  std::size_t vectors = 0;
  for (const Step& step : program->steps) {
    const auto roots_in = [](const Region& region) { return contains(region.title, "rsqrt"); };
    const auto count = static_cast<std::size_t>(
        std::count_if(step.region.parts.begin(), step.region.parts.end(), roots_in));
    vectors += count;
    launches += count > 0 ? 1 : 0;
  }
  CHECK(vectors == 19);
  CHECK(launches <= 4);
}
