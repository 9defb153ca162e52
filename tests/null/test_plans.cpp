// Decisions of plans, without running them: what fuses, how much memory is planned, what each pass
// contributes.
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <string>
#include <vector>

using namespace tenon;

namespace {

Plan plan_of(const std::vector<Tensor>& tensors) { return plan(tensors); }
/// Data, not a constant: constants are folded into their readers.
Tensor leaf(const Shape& shape) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), 0.5f), shape);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Switches a pass off while it lives.
class Without {
 public:
  explicit Without(const std::string& pass) : pass_(pass) { set_pass_enabled(pass_, false); }
  ~Without() { set_pass_enabled(pass_, true); }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  std::string pass_;
};

Plan training_plan(const std::string& model, const std::vector<Tensor>& batch) {
  const nn::AnyModule net = models::create(model);
  optim::Sgd sgd(net, {.lr = 0.1, .momentum = 0.9});
  return compile([&](const std::vector<Tensor>& in) {
           const Tensor loss = cross_entropy(net(in[0]), in[1]);
           std::vector<Tensor> out = sgd.updates(grad(loss, sgd.parameters()));
           out.push_back(loss);
           return out;
         })
      .plan(batch);
}

std::vector<Tensor> digits(std::int64_t n) {
  return {leaf({n, 1, 28, 28}),
          Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(n)), {n})};
}

}  // namespace

TEST_CASE("plans: the initial zeros of a gather's gradient are one constant") {
  const Tensor table = leaf({4000, 8});
  const Tensor rows = Tensor::from(std::vector<std::int64_t>{3, 999, 3}, {3});
  const Plan plan = plan_of({grad(sum(square(index_select(table, 0, rows))), table)});
  CHECK(plan.arena_bytes() < 16000);
  CHECK_FALSE(contains(plan.steps(), "over [32000]"));
}

TEST_CASE("plans: a chain of element-wise ops is one step without intermediates") {
  const Tensor x = leaf({33, 17}), y = leaf({17});
  const Plan p = plan_of({tanh(exp(x * 2.0 + y) - 1.0) * sigmoid(x)});
  CHECK(p.step_count() == 1);
  CHECK_FALSE(contains(p.arena(), "float32"));  // workspace only
}

TEST_CASE("plans: rows with their reductions are one step") {
  const Tensor x = leaf({33, 17});
  CHECK(plan_of({softmax(x * 3.0)}).step_count() == 1);
  CHECK(plan_of({log_softmax(x)}).step_count() == 1);
  CHECK(plan_of({(x - mean(x, {1}, true)) / sqrt(var(x, {1}, true) + 1e-5)}).step_count() == 1);
}

TEST_CASE("plans: bias and activation follow their product inside one step") {
  const Tensor x = leaf({9, 20}), w = leaf({30, 20}), b = leaf({30});
  CHECK(plan_of({relu(linear(x, w, b))}).step_count() == 1);
  const Tensor image = leaf({2, 3, 9, 9}), filter = leaf({4, 3, 3, 3}), bias = leaf({4});
  CHECK(plan_of({tanh(conv2d(image, filter, bias))}).step_count() == 1);
  CHECK(plan_of({relu(linear(x, w, b))}).arena_bytes() < 1 << 20);
}

TEST_CASE("plans: views cost nothing where a stride can express them") {
  const Tensor x = leaf({4, 6, 5});
  CHECK(plan_of({permute(x, {2, 0, 1}) * 2.0}).step_count() == 1);
  CHECK(plan_of({slice(transpose(x), 1, 1, 4, 2) + 1.0}).step_count() == 1);
  CHECK(plan_of({matmul(transpose(x), x)}).step_count() == 1);
}

TEST_CASE("plans: rows are selected by an index vector, which is not expanded") {
  const Tensor index = Tensor::from<std::int64_t>({3, 0, 7}, {3});
  const Plan p = plan_of({index_select(leaf({8, 5, 6}), 0, index)});
  CHECK(p.step_count() == 1);
  CHECK(p.arena_bytes() == 0);
}

TEST_CASE("plans: a value requested twice is computed once, numbers are folded, no-ops vanish") {
  const Tensor x = leaf({8, 8});
  CHECK(plan_of({exp(x) * exp(x)}).node_count() < plan_of({exp(x) * exp(x + 1.0)}).node_count());
  const Tensor folded = x * (full({8, 8}, 2) + full({8, 8}, 3));
  CHECK(contains(plan_of({folded}).graph(), "5"));
  CHECK_FALSE(contains(plan_of({folded}).graph(), "add"));
  CHECK_FALSE(contains(plan_of({exp(permute(permute(x, {1, 0}), {1, 0}))}).graph(), "permute"));
}

TEST_CASE("plans: memory of dead values is reused") {
  Tensor y = leaf({256, 256});
  const Tensor w = leaf({256, 256});
  const Plan one = plan_of({matmul(y, w)});
  for (int k = 0; k < 10; ++k) y = matmul(y, w);
  const Plan ten = plan_of({y});
  const std::int64_t matrix = 256 * 256 * 4;
  CHECK(ten.step_count() == 10);
  CHECK(ten.arena_bytes() <= one.arena_bytes() + 2 * matrix);
  const Without planning("plan_memory");
  CHECK(plan_of({y}).arena_bytes() >= ten.arena_bytes() + 7 * matrix);
}

TEST_CASE("plans: a plan above the memory limit is refused before it runs, with both sizes") {
  const Tensor x = leaf({512, 512});
  const Tensor big = matmul(exp(x), matmul(x, x));
  set_memory_limit(1 << 20);
  std::string message;
  try {
    big.eval();
  } catch (const MemoryError& error) {
    message = error.what();
  }
  set_memory_limit(0);
  REQUIRE_FALSE(message.empty());
  CHECK(contains(message, "limit"));
  CHECK(sum(big).item() > 0);
}

TEST_CASE("plans: a training step of lenet5 stays small") {
  const Plan p = training_plan("lenet5", digits(64));
  CHECK(p.step_count() <= 33);
  CHECK(p.planning_ms() < 200);
  CHECK(p.peak_bytes() >= p.arena_bytes());
  // Updates fuse into the kernels that compute the gradients, so no weight gradient is a value of
  // its own.
  CHECK_FALSE(contains(p.arena(), "[120, 16, 5, 5]"));
  CHECK_FALSE(contains(p.arena(), "[84, 120]"));
  const Without fusing("fuse");
  CHECK(training_plan("lenet5", digits(64)).step_count() > 2 * p.step_count());
}

TEST_CASE("plans: memory of a training step grows with the batch, not with the steps taken") {
  const std::int64_t small = training_plan("lenet5", digits(32)).arena_bytes();
  const std::int64_t large = training_plan("lenet5", digits(64)).arena_bytes();
  CHECK(large > small);
  CHECK(large < 2 * small + (1 << 20));
}

TEST_CASE("plans: each region says why it was fused") {
  const Plan p = training_plan("lenet5", digits(8));
  CHECK(contains(p.fusion(), "runs as a step of its own"));
  CHECK(contains(p.passes(), "fuse"));
  CHECK(contains(p.passes(), "plan_memory"));
}
