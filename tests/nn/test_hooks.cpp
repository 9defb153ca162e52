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

TEST_CASE("backward hooks: they see and replace the gradients of inputs and outputs") {
  const Tensor x = variable(Tensor::from({1.f, 2.f}, {1, 2}));
  nn::Linear first(2, 2, {.bias = false}), second(2, 2, {.bias = false});
  set_value(first.weight(), Tensor::from({1.f, 0.f, 0.f, 2.f}, {2, 2}));
  set_value(second.weight(), Tensor::from({3.f, 0.f, 0.f, 4.f}, {2, 2}));
  std::vector<float> of_input, of_output;
  std::string module;
  nn::HookHandle hook = second.register_full_backward_hook([&](const nn::ModuleBase& called,
                                                               std::vector<Tensor>& inputs,
                                                               std::span<const Tensor> outputs) {
    REQUIRE(inputs.size() == 1);
    REQUIRE(outputs.size() == 1);
    module = called.describe();
    of_input = values(inputs[0]);
    of_output = values(outputs[0]);
    inputs[0] = inputs[0] * 10;
  });
  const auto loss = [&] { return sum(second(first(x)) * 5); };
  const std::vector<Tensor> gradients =
      grad(loss(), std::vector{x, first.weight(), second.weight()});
  CHECK(module == "Linear(2, 2, bias=false)");
  CHECK(of_output == std::vector<float>{5, 5});
  CHECK(of_input == std::vector<float>{15, 20});
  CHECK(values(gradients[0]) == std::vector<float>{150, 400});
  CHECK(values(gradients[1]) == std::vector<float>{150, 300, 200, 400});
  CHECK(values(gradients[2]) == std::vector<float>{5, 20, 5, 20});  // below the hook
  hook.remove();
  CHECK(values(grad(loss(), x)) == std::vector<float>{15, 40});
}

TEST_CASE("backward hooks: first layers, frozen inputs, several tensors, integer inputs") {
  int calls = 0, undefined = 0;
  const nn::BackwardHook count = [&](const nn::ModuleBase&, std::vector<Tensor>& inputs,
                                     std::span<const Tensor> outputs) {
    ++calls;
    for (const Tensor& gradient : inputs) undefined += gradient.defined() ? 0 : 1;
    for (const Tensor& gradient : outputs) CHECK(gradient.defined());
  };
  nn::Linear first(2, 3), second(3, 1);
  first.register_full_backward_hook(count);
  const Tensor x = randn({4, 2}).compute();
  (void)grad(sum(second(first(x))), first.weight());
  CHECK(calls == 1);
  CHECK(undefined == 1);  // the input is data
  second.register_full_backward_hook(count);
  (void)grad(sum(second(first(x))), std::vector{first.weight(), second.weight()});
  CHECK(calls == 3);
  CHECK(undefined == 2);
  first.freeze();
  (void)grad(sum(second(first(x))), second.weight());
  CHECK(calls == 4);
  CHECK(undefined == 3);
  nn::Embedding words(5, 2);
  words.register_full_backward_hook(count);
  (void)grad(sum(words(Tensor::from<std::int64_t>({1, 2}, {2}))), words.weight());
  CHECK(calls == 5);
  CHECK(undefined == 4);

  // Several inputs: one call with all gradients, which it scales.
  Cell cell;
  calls = 0;
  cell.register_full_backward_hook(
      [&](const nn::ModuleBase&, std::vector<Tensor>& inputs, std::span<const Tensor> outputs) {
        ++calls;
        REQUIRE(inputs.size() == 2);
        REQUIRE(outputs.size() == 2);
        for (Tensor& gradient : inputs) gradient = gradient * 2;
      });
  const Tensor a = variable(ones({1})), h = variable(ones({1}));
  const auto [y, after] = cell(a, State{h, 0}, 3.0);
  const std::vector<Tensor> gradients = grad(sum(y + after.hidden * 5), std::vector{a, h});
  CHECK(calls == 1);
  CHECK(values(gradients[0]) == std::vector<float>{16});
  CHECK(values(gradients[1]) == std::vector<float>{10});
}

TEST_CASE("backward hooks: second derivatives, steps, and compiled functions") {
  const Tensor x = variable(Tensor::from({2.f}, {1}));
  struct Cube : nn::Module {
    Tensor forward(const Tensor& in) const override { return in * in * in; }
  };
  Cube cube;
  cube.register_full_backward_hook([](const nn::ModuleBase&, std::vector<Tensor>& inputs,
                                      std::span<const Tensor>) { inputs[0] = inputs[0] * 3; });
  const Tensor slope = grad(sum(cube(x)), x);
  CHECK(values(slope) == std::vector<float>{36});  // 3 · 3 x²
  // The derivative of 9 x²: it does not pass the module's output, so the hook does not run again.
  CHECK(values(grad(sum(slope), x)) == std::vector<float>{36});

  // The hook clips the gradient of a layer's output in a compiled step.
  manual_seed(2);
  nn::Sequential net(nn::Linear(2, 3), nn::Tanh(), nn::Linear(3, 1));
  nn::AnyModule head = net[2];
  optim::Sgd sgd(net, {.lr = 0.1});
  int calls = 0;
  CompiledFunction step = compile([&](const std::vector<Tensor>& in) {
    return sgd.updates(grad(mean(square(net(in[0]))), sgd.parameters()));
  });
  const Tensor data = randn({4, 2}).compute();
  step({data});
  const Tensor before = clone(net.parameters()[0]);
  nn::HookHandle hook = head.register_full_backward_hook(
      [&](const nn::ModuleBase&, std::vector<Tensor>& inputs, std::span<const Tensor>) {
        ++calls;
        inputs[0] = zeros_like(inputs[0]);
      });
  step({data});
  step({data});
  CHECK(calls == 1);
  CHECK(step.traced() == 2);
  CHECK(equal(before, net.parameters()[0]));  // no gradient below the hook
  hook.remove();
  step({data});
  CHECK(!equal(before, net.parameters()[0]));
  const Tensor now = clone(net.parameters()[0]);
  head.register_full_backward_hook([](const nn::ModuleBase&, std::vector<Tensor>& inputs,
                                      std::span<const Tensor>) { inputs[0] = Tensor(); });
  sgd.step(mean(square(net(data))));
  CHECK(equal(now, net.parameters()[0]));  // an undefined gradient is zero
}
