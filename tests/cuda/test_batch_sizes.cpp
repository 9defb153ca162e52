// A new batch size on a GPU, real or emulated, compiles nothing if a size between the same powers
// of two was seen: choices depend on the next power of two of a batch. Between planned sizes of
// such a class a program is re-bound, with the result that planning would give.
#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/optim.h>
#include <tenon/shapes_only.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/str.h"
#include "cuda/jit/jit.h"
#include "gpu.h"
#include "graph/context.h"
#include "graph/order.h"
#include "plan/program/program.h"
#include "run/api/settings.h"
#include "run/tuning/known_plans.h"

using namespace tenon;
using test::has_gpu;

namespace {

struct OnGpu {
  OnGpu() { set_device("cuda"); }
  ~OnGpu() { set_device("cpu"); }
};

/// Number of sources that plans for these batch sizes request in addition to earlier ones.
std::size_t texts_for(const CompiledFunction& f, const Shape& sample, std::int64_t first,
                      std::int64_t last) {
  const std::size_t before = cuda::sources_for(0).size();
  for (std::int64_t n = first; n <= last; ++n) {
    Shape shape{n};
    for (const std::int64_t extent : sample) shape.push_back(extent);
    f.plan({zeros(shape)});
  }
  return cuda::sources_for(0).size() - before;
}

/// Programs of a served network or of its gradients.
class Subject {
 public:
  Subject(const std::string& name, Shape sample, bool training)
      : net_(models::create(name)), sample_(std::move(sample)), training_(training) {
    if (!training) net_.eval();
  }
  std::shared_ptr<const Program> at(std::int64_t size, bool anew) const {
    Shape shape{size};
    for (const std::int64_t extent : sample_) shape.push_back(extent);
    const Device gpu = current_device();
    const Tensor out = net_(without_memory(shape, DType::Float32, gpu));
    std::vector<Tensor> roots{softmax(out)};
    if (training_) roots = grad(sum(square(out)), net_.parameters());
    const NumberedOrder order = numbered_order(roots);
    std::vector<Node*> leaves;
    for (Node* node : order.nodes)
      if (node->realised()) leaves.push_back(node);
    const PlanOptions options = plan_options(current_context(), gpu);
    if (anew) return plan_program(roots, leaves, options);
    return known_or_planned(order, roots, leaves, options, planning_key(current_context()));
  }

 private:
  nn::AnyModule net_;
  const Shape sample_;
  const bool training_;
};

/// All that a run goes by.
std::string run_by(const Program& p) {
  std::string text = print_steps(p) + print_arena(p) + std::to_string(p.peak_bytes());
  for (const Step& step : p.steps)
    text += cat(" ", step.engine->name(), " ", step.configuration, " ", step.workspace_offset, "+",
                step.kernel->workspace_bytes);
  return text;
}

}  // namespace

TEST_CASE("batch sizes: between planned sizes of a class, the program equals a planned one") {
  if (!has_gpu()) return;
  const OnGpu gpu;
  for (const Subject& subject :
       {Subject("lenet5", {1, 28, 28}, false), Subject("mlp:40-60-10", {40}, true)}) {
    clear_caches();
    std::vector<std::shared_ptr<const Program>> held;
    int rebound = 0;
    for (const std::int64_t first : {33, 65})
      for (std::int64_t k = 0; k < first - 1; ++k) {
        // Both ends of the class come early, sizes between in an order without a pattern.
        const std::int64_t size = first + (k == 1 ? first - 2 : k * 13 % (first - 1));
        held.push_back(subject.at(size, false));
        rebound += held.back()->rebound ? 1 : 0;
        CAPTURE(size);
        CHECK(run_by(*held.back()) == run_by(*subject.at(size, true)));
      }
    CHECK(rebound > 60);  // of 96
    MESSAGE(rebound << " of 96 sizes re-bound");
  }
}

TEST_CASE("batch sizes: a size between planned ones costs less than planning") {
  if (!has_gpu()) return;
  const OnGpu gpu;
  const Subject subject("lenet5", {1, 28, 28}, false);
  clear_caches();
  std::vector<std::shared_ptr<const Program>> held;
  for (const std::int64_t size : {33, 64, 47}) held.push_back(subject.at(size, false));
  // In turn, so that other work on the machine meets both.
  double known = 1, planned = 1;
  for (int k = 0; k < 100; ++k)
    for (double* least : {&known, &planned}) {
      const std::clock_t start = std::clock();
      held.back() = subject.at(53, least == &planned);
      *least = std::min(*least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
  CHECK(subject.at(53, false)->rebound);
  MESSAGE((1e6 * known) << " us re-bound, " << (1e6 * planned) << " us planned");
  CHECK(known < planned);
}

TEST_CASE("batch sizes: a served network compiles for the first one of a class alone") {
  if (!has_gpu()) return;
  const OnGpu gpu;
  for (const auto& [name, sample] :
       {std::pair<std::string, Shape>{"lenet5", {1, 28, 28}}, {"mlp:40-60-10", {40}}}) {
    CAPTURE(name);
    nn::AnyModule net = models::create(name);
    net.eval();
    const CompiledFunction f = compile(
        [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{softmax(net(in[0]))}; });
    texts_for(f, sample, 1, 2);
    for (std::int64_t most = 4; most <= 64; most *= 2) {
      CAPTURE(most);
      texts_for(f, sample, most, most);  // one of a class, then all of it
      CHECK(texts_for(f, sample, most / 2 + 1, most) == 0);
    }
    // It gives a result.
    Shape shape{37};
    for (const std::int64_t extent : sample) shape.push_back(extent);
    const std::size_t before = cuda::sources_for(0).size();
    CHECK(std::isfinite(f({rand(shape).compute()})[0].to_vector<float>()[0]));
    CHECK(cuda::sources_for(0).size() - before <= 1);  // that of the random numbers
  }
}
