// Hooks of modules: order, replacement, removal, and compiled functions.
#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/grad.h>
#include <tenon/layers.h>
#include <tenon/loops.h>
#include <tenon/nn.h>
#include <tenon/optim.h>

using namespace tenon;

namespace {

struct State {
  Tensor hidden;
  int steps = 0;
};

// Several inputs and outputs.
struct Cell : nn::ModuleOf<Cell> {
  std::pair<Tensor, State> forward(const Tensor& x, const State& before, double factor) const {
    return {x * factor, {before.hidden + x, before.steps + 1}};
  }
};

// Changes an argument.
struct Counter : nn::ModuleOf<Counter> {
  Tensor forward(const Tensor& x, State& state) const {
    ++state.steps;
    return x + state.hidden;
  }
};

struct Gathered : nn::ModuleOf<Gathered> {
  Tensor forward(TensorList parts) const { return concat(parts); }
};

struct Named : nn::ModuleOf<Named> {
  Tensor forward(const Tensor& x, const char* how) const { return how[0] == 'n' ? -x : x; }
};

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

const nn::ForwardHook kNothing = [](const nn::ModuleBase&, std::span<const Tensor>,
                                    std::vector<Tensor>&) {};

}  // namespace

TEST_CASE("hooks: they replace inputs and outputs, in the order in which they were added") {
  nn::Identity net;
  const Tensor x = variable(Tensor::from({1.f, 2.f}, {2}));
  net.register_forward_pre_hook(
      [](const nn::ModuleBase&, std::vector<Tensor>& in) { in[0] = in[0] + 1; });
  net.register_forward_pre_hook(
      [](const nn::ModuleBase&, std::vector<Tensor>& in) { in[0] = in[0] * 10; });
  CHECK(values(net(x)) == std::vector<float>{20, 30});
  net.register_forward_hook(
      [](const nn::ModuleBase& module, std::span<const Tensor> in, std::vector<Tensor>& out) {
        CHECK(module.describe() == "Identity()");
        CHECK(values(in[0]) == std::vector<float>{20, 30});
        out[0] = out[0] - 20;
      });
  CHECK(values(net(x)) == std::vector<float>{0, 10});
  // Gradients flow through what hooks build.
  CHECK(values(grad(sum(net(x)), x)) == std::vector<float>{10, 10});
  // Hooks belong to the module, whichever handle calls it.
  const nn::Identity handle = net;
  CHECK(values(handle(x)) == std::vector<float>{0, 10});
  const nn::Sequential outer(net);
  CHECK(values(outer(x)) == std::vector<float>{0, 10});
  CHECK(values(clone(net)(x)) == std::vector<float>{0, 10});
}

TEST_CASE("hooks: several inputs and outputs in structs, and arguments of all kinds") {
  Cell cell;
  const Tensor x = Tensor::from({1.f}, {1});
  const nn::HookHandle pre =
      cell.register_forward_pre_hook([](const nn::ModuleBase&, std::vector<Tensor>& in) {
        REQUIRE(in.size() == 2);
        in[1] = in[1] * 100;
      });
  cell.register_forward_hook(
      [](const nn::ModuleBase&, std::span<const Tensor> in, std::vector<Tensor>& out) {
        CHECK(in.size() == 2);
        REQUIRE(out.size() == 2);
        out[0] = -out[0];
      });
  const State before{Tensor::from({2.f}, {1}), 3};
  const auto [y, after] = cell(x, before, 5.0);
  CHECK(values(y) == std::vector<float>{-5});
  CHECK(values(after.hidden) == std::vector<float>{201});
  CHECK(after.steps == 4);
  CHECK(values(before.hidden) == std::vector<float>{2});  // the caller's value stays
  nn::HookHandle(pre).remove();
  CHECK(values(cell(x, before, 5.0).second.hidden) == std::vector<float>{3});

  Counter counter;
  counter.register_forward_pre_hook(
      [](const nn::ModuleBase&, std::vector<Tensor>& in) { in[0] = in[0] * 2; });
  State state{Tensor::from({1.f}, {1}), 0};
  CHECK(values(counter(x, state)) == std::vector<float>{3});
  CHECK(state.steps == 1);

  Named named;
  named.register_forward_pre_hook(
      [](const nn::ModuleBase&, std::vector<Tensor>& in) { in[0] = in[0] * 2; });
  CHECK(values(named(x, "negative")) == std::vector<float>{-2});
  // A view of constant tensors cannot be changed.
  Gathered gathered;
  const std::vector<Tensor> parts{x, x};
  gathered.register_forward_hook(kNothing);
  CHECK(gathered(TensorList(parts)).size(0) == 2);
  nn::HookHandle changing = gathered.register_forward_pre_hook(
      [](const nn::ModuleBase&, std::vector<Tensor>& in) { in[0] = in[0] * 2; });
  CHECK_THROWS_WITH_AS(gathered(TensorList(parts)), doctest::Contains("constant"), ValueError);
  changing.remove();
  CHECK(gathered(TensorList(parts)).size(0) == 2);
}

TEST_CASE("hooks: handles remove them, and what cannot be is refused") {
  nn::Linear net(2, 2);
  int calls = 0;
  nn::HookHandle first = net.register_forward_hook(
      [&](const nn::ModuleBase&, std::span<const Tensor>, std::vector<Tensor>&) { ++calls; });
  nn::HookHandle second = net.register_forward_hook(
      [&](const nn::ModuleBase&, std::span<const Tensor>, std::vector<Tensor>&) { calls += 10; });
  net(ones({1, 2}));
  CHECK(calls == 11);
  first.remove();
  first.remove();
  net(ones({1, 2}));
  CHECK(calls == 21);
  // A hook may remove itself.
  nn::HookHandle once;
  once = net.register_forward_hook(
      [&](const nn::ModuleBase&, std::span<const Tensor>, std::vector<Tensor>&) {
        calls += 100;
        once.remove();
      });
  net(ones({1, 2}));
  net(ones({1, 2}));
  CHECK(calls == 141);
  nn::HookHandle().remove();
  nn::HookHandle gone;
  {
    nn::ReLU relu;
    gone = relu.register_forward_hook(kNothing);
  }
  gone.remove();
  CHECK_THROWS_AS(net.register_forward_hook({}), ValueError);
  CHECK_THROWS_AS(net.register_forward_pre_hook({}), ValueError);
  nn::ModuleList list({net});
  CHECK_THROWS_WITH_AS(list.register_forward_hook(kNothing), doctest::Contains("ModuleList"),
                       ValueError);
  second.remove();
  net.register_forward_hook([](const nn::ModuleBase&, std::span<const Tensor>,
                               std::vector<Tensor>& out) { out.clear(); });
  CHECK_THROWS_WITH_AS(net(ones({1, 2})), doctest::Contains("Linear(2, 2)"), ValueError);
  nn::ReLU undefined;
  undefined.register_forward_pre_hook(
      [](const nn::ModuleBase&, std::vector<Tensor>& in) { in[0] = Tensor(); });
  CHECK_THROWS_AS(undefined(ones({1})), ValueError);
}

TEST_CASE("hooks: a compiled function is traced again when hooks change") {
  nn::Linear net(2, 1, {.bias = false});
  CompiledFunction f =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{sum(net(in[0]))}; });
  const Tensor x = ones({1, 2});
  const double plain = f({x})[0].item();
  CHECK(f({x})[0].item() == plain);
  CHECK(f.traced() == 1);
  int calls = 0;
  nn::HookHandle hook = net.register_forward_hook(
      [&](const nn::ModuleBase&, std::span<const Tensor>, std::vector<Tensor>& out) {
        ++calls;
        out[0] = out[0] * 3;
      });
  CHECK(f({x})[0].item() == doctest::Approx(3 * plain));
  CHECK(f({x})[0].item() == doctest::Approx(3 * plain));
  CHECK(f.traced() == 2);
  CHECK(calls == 1);  // when the function is traced
  hook.remove();
  CHECK(f({x})[0].item() == plain);
  // Updates of buffers are attached to what the hooks leave.
  nn::BatchNorm1d norm(2);
  norm.register_forward_hook([](const nn::ModuleBase&, std::span<const Tensor>,
                                std::vector<Tensor>& out) { out[0] = out[0] * 2; });
  norm(randn({4, 2})).compute();
  CHECK(norm.state_dict().at("num_batches_tracked").item() == 1);
}

TEST_CASE("hooks: a layer in a scan keeps its hook") {
  nn::Linear cell(2, 2);
  const Tensor x = randn({5, 2}).compute();
  const auto run = [&] {
    return scan(
               [&](const Tensor& state, const Tensor& row) {
                 const Tensor next = tanh(cell(unsqueeze(state + row, 0)).squeeze(0));
                 return std::pair(next, next);
               },
               zeros({2}), x)
        .first;
  };
  const Tensor plain = run().compute();
  cell.register_forward_hook([](const nn::ModuleBase&, std::span<const Tensor>,
                                std::vector<Tensor>& out) { out[0] = out[0] * 0; });
  CHECK(!equal(run(), plain));
  CHECK(equal(run(), zeros({2})));
}
