// State that a compiled function depends on besides its inputs: modes, frozen parameters, precision
// and children of modules, guards; and compiled functions inside others.
#include <doctest/doctest.h>

#include <optional>
#include <thread>
#include <vector>

#include <tenon/tenon.h>

#include "graph/node.h"
#include "graph/tracing/traced_state.h"

using namespace tenon;

namespace {

using List = std::vector<Tensor>;
using Floats = std::vector<float>;

CompiledFunction of_module(nn::AnyModule net) {
  return compile([net](const List& in) { return List{net(in[0])}; });
}

double zeros_in(const Tensor& x) { return (x == 0).to(DType::Float32).mean().item(); }

// Doubles its input while it is in training mode.
struct Doubling : nn::Module {
  Tensor forward(const Tensor& x) const override { return is_training() ? x * 2 : x; }
};

// A scale that the user may change.
struct Scaling : nn::Module {
  explicit Scaling(float value) : value_(parameter("value", full({}, value))) {}
  Tensor forward(const Tensor& x) const override { return x * value_; }
  Tensor value_;
};

}  // namespace

TEST_CASE("compiled state: the mode of a module is part of a trace") {
  nn::Sequential net(nn::Dropout(0.5), nn::BatchNorm1d(4));
  const CompiledFunction f = of_module(net);
  const Tensor x = randn({64, 4}).compute();
  f({x});
  const double training = zeros_in(nn::Dropout(0.5)(x));
  CHECK(training > 0.3);
  net.eval();
  const Tensor expected = net(x).compute();
  for (int k = 0; k < 3; ++k) CHECK(f({x})[0].equal(expected));
  CHECK(f.traced() == 2);
  net.train();
  CHECK(!f({x})[0].equal(expected));
  net.eval();
  CHECK(f({x})[0].allclose(net(x)));
  CHECK(f.traced() == 2);  // earlier traces are used again
}

TEST_CASE("compiled state: only what the function has read makes a new trace") {
  nn::Sequential net(nn::Linear(4, 4));
  nn::Dropout other(0.5);
  const CompiledFunction f = of_module(net);
  const Tensor x = randn({2, 4}).compute();
  f({x});
  other.eval();
  net.eval();
  net.freeze();
  { const nn::Sequential gone(nn::Linear(2, 2)); }
  f({x});
  CHECK(f.traced() == 1);
}

TEST_CASE("compiled state: a mode that the function sets itself is no reason to trace again") {
  Doubling net;
  const CompiledFunction f = compile([net](const List& in) mutable {
    net.eval();
    const Tensor plain = net(in[0]);
    net.train();
    return List{plain, net(in[0])};
  });
  for (const bool training : {true, false, true}) {
    net.train(training);
    const Outputs out = f({ones({2})});
    CHECK(out[0].to_vector<float>() == Floats{1, 1});
    CHECK(out[1].to_vector<float>() == Floats{2, 2});
  }
  CHECK(f.traced() == 1);
  // A mode that the function reads first and restores is read.
  const CompiledFunction g = compile([net](const List& in) mutable {
    const bool before = net.is_training();
    net.eval();
    const Tensor plain = net(in[0]);
    net.train(before);
    return List{plain * (before ? 10 : 1)};
  });
  for (const bool training : {true, false, true}) {
    net.train(training);
    CHECK(g({ones({2})})[0].to_vector<float>()[0] == (training ? 10 : 1));
  }
  CHECK(g.traced() == 2);
}

TEST_CASE("compiled state: frozen parameters are part of a compiled step") {
  nn::Sequential net(nn::Linear(3, 3), nn::Linear(3, 1));
  optim::Sgd sgd(net, {.lr = 0.1});
  const CompiledFunction step = compile([&](const List& in) {
    return sgd.updates(grad(square(net(in[0])).sum(), sgd.parameters()));
  });
  const Tensor x = ones({2, 3});
  const auto moved = [&](std::size_t k) {
    const Tensor before = (net.parameters()[k] * 1).compute();
    step({x});
    return !before.equal(net.parameters()[k]);
  };
  CHECK(moved(0));
  net.freeze("0");
  CHECK(!moved(0));
  CHECK(moved(2));
  net.unfreeze();
  CHECK(moved(0));
  CHECK(step.traced() == 2);
}

TEST_CASE("compiled state: trainable_parameters() inside a function is read again") {
  nn::Linear net(2, 2);
  const CompiledFunction count = compile([&](const List&) {
    return List{full({1}, static_cast<double>(net.trainable_parameters().size()))};
  });
  CHECK(count({})[0].item() == 2);
  net.freeze("weight");
  CHECK(count({})[0].item() == 1);
}

TEST_CASE("compiled state: the precision of a module is part of a trace") {
  nn::Linear net(64, 64);
  const CompiledFunction f = of_module(net);
  const Tensor x = randn({8, 64}).compute();
  CHECK(f({x})[0].equal(net(x)));
  const Tensor exact = net(x).compute();
  net.set_precision(Precision::Bf16);
  CHECK(f({x})[0].equal(net(x)));
  CHECK(!f({x})[0].equal(exact));
}

TEST_CASE("compiled state: the dtype of a variable is part of a trace") {
  const Tensor w = variable(full({3}, 2), "w");
  const CompiledFunction f = compile([&](const List& in) { return List{in[0] * w}; });
  CHECK(f({ones({3})})[0].to_vector<float>() == Floats{2, 2, 2});
  // What conversion of a module in place does.
  const Tensor wide = full({3}, 5, DType::Float64).compute();
  w.node()->dtype = DType::Float64;
  w.node()->value = wide.node()->value;
  note_state_changed();
  CHECK(f({ones({3})})[0].to_vector<double>() == std::vector<double>{5, 5, 5});
}

TEST_CASE("compiled state: a module that is appended is called") {
  nn::Sequential net{Doubling()};
  nn::ModuleList list{std::vector<nn::AnyModule>{Doubling()}};
  struct Two : nn::Module {
    Two(nn::Sequential n, nn::ModuleList l) : net(child("net", n)), list(child("list", l)) {}
    Tensor forward(const Tensor& x) const override {
      Tensor y = net(x);
      for (std::int64_t k = 0; k < list.size(); ++k) y = list[k](y);
      return y;
    }
    nn::Sequential net;
    nn::ModuleList list;
  };
  const CompiledFunction f = of_module(Two(net, list));
  CHECK(f({ones({})})[0].item() == 4);
  net.append(Doubling());
  CHECK(f({ones({})})[0].item() == 8);
  list.append(Doubling());
  CHECK(f({ones({})})[0].item() == 16);
}

TEST_CASE("compiled state: a module that the program replaces is called") {
  Scaling net(2), kept = net;
  const CompiledFunction f = compile([&](const List& in) { return List{net(in[0])}; });
  CHECK(f({ones({})})[0].item() == 2);
  net = Scaling(3);  // the old module lives on in `kept`
  CHECK(f({ones({})})[0].item() == 3);
  net = Scaling(4);
  CHECK(f({ones({})})[0].item() == 4);
  // Handles that the function itself replaces while it is traced do not count.
  const std::vector<Scaling> layers{Scaling(2), Scaling(3)};
  const CompiledFunction chain = compile([&](const List& in) {
    Tensor y = in[0];
    Scaling layer = layers[0];
    for (const Scaling& next : layers) {
      layer = next;
      y = layer(y);
    }
    return List{y};
  });
  for (int k = 0; k < 3; ++k)
    for (int n = 1; n < 3; ++n) CHECK(chain({ones({n})})[0].to_vector<float>()[0] == 6);
  CHECK(chain.traced() == 2);
}

TEST_CASE("compiled state: guards name the C++ values that a function reads") {
  double factor = 2;
  int guarded = 0;
  const CompiledFunction f = compile([&](const List& in) { return List{in[0] * factor}; },
                                     [&] { return ++guarded, std::vector<double>{factor}; });
  for (const double value : {2.0, 2.0, 3.0, 2.0, 3.0}) {
    factor = value;
    CHECK(f({ones({})})[0].item() == value);
  }
  CHECK(f.traced() == 2);
  CHECK(guarded >= 5);
  for (int k = 0; k < 40; ++k) {
    factor = k;
    CHECK(f({ones({})})[0].item() == k);
    CHECK(f.traced() <= 16);
  }
  // The traces of another shape are counted on their own.
  f({ones({3})});
  CHECK(f.traced() == 17);
}

TEST_CASE("compiled state: many threads call a function while modules come and go") {
  nn::Sequential net(nn::Linear(4, 4), nn::Dropout(0.5));
  net.eval();
  const CompiledFunction f = of_module(net);
  const Tensor x = randn({2, 4}).compute();
  const Floats expected = net(x).to_vector<float>();
  std::vector<char> right(3, 1);
  std::vector<std::thread> callers;
  for (char& r : right)
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        const nn::Dropout gone(0.5);
        r = static_cast<char>(r != 0 && f({x})[0].to_vector<float>() == expected);
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (const char r : right) CHECK(r == 1);
  CHECK(f.traced() == 1);
}

TEST_CASE("compiled state: a compiled function inside another one is inlined") {
  const Tensor w = variable(full({3}, 2), "w");
  const CompiledFunction inner = compile([&](const List& in) {
    return List{in[0] * w, in[0] + 1};
  });
  const CompiledFunction outer = compile([&](const List& in) {
    const Outputs half = inner({in[0] * 3});
    const Tensor loss = (half[0] * half[1]).sum();
    return List{loss, grad(loss, w), grad(loss, in[0])};
  });
  const auto plain = [&](const Tensor& x) { return (x * 3 * w * (x * 3 + 1)).sum(); };
  const Tensor x = variable(Tensor::from({1.0F, 2.0F, 3.0F}, {3}));
  const Outputs out = outer({x});
  CHECK(out[0].equal(plain(x)));
  CHECK(out[1].equal(grad(plain(x), w)));
  CHECK(out[2].equal(grad(plain(x), x)));
  CHECK(inner.traced() == 0);
  CHECK(inner({x})[0].equal(x * w));
  // An input that is already known is no reason to run the inner function while tracing.
  const CompiledFunction constant = compile([&](const List&) { return List(inner({x})); });
  CHECK(constant({})[0].equal(x * w));
  set_value(w, full({3}, 5));
  CHECK(constant({})[0].equal(x * w));
}

TEST_CASE("compiled state: an inlined function keeps its context and its NoGrad") {
  std::optional<CompiledFunction> constant, rounded;
  {
    const NoGrad no_grad;
    constant = compile([](const List& in) { return List{in[0] * 2}; });
  }
  nn::Linear net(64, 64);
  {
    Context context = current_context();
    context.precision = Precision::Bf16;
    const ContextScope scope(context);
    rounded = compile([net](const List& in) { return List{net(in[0])}; });
  }
  const Tensor x = randn({4, 64}).compute();
  const CompiledFunction outer = compile([&](const List& in) {
    const Tensor y = (*constant)({in[0]})[0] + in[0];
    return List{grad(y.sum(), in[0]), (*rounded)({in[0]})[0], net(in[0])};
  });
  const Outputs out = outer({x});
  CHECK(out[0].equal(ones({4, 64})));
  CHECK(out[1].equal((*rounded)({x})[0]));
  CHECK(out[2].equal(net(x)));
  CHECK(!out[1].equal(out[2]));
  // The NoGrad of the caller applies too.
  const CompiledFunction twice = compile([](const List& in) { return List{in[0] * 2}; });
  const CompiledFunction none = compile([&](const List& in) {
    const Tensor y = [&] {
      const NoGrad no_grad;
      return twice({in[0]})[0];
    }();
    return List{grad((y + in[0]).sum(), in[0])};
  });
  CHECK(none({x})[0].equal(ones({4, 64})));
}

TEST_CASE("compiled state: modes and guards of an inlined function count for the outer one") {
  Doubling net;
  double factor = 1;
  const CompiledFunction inner =
      compile([net, &factor](const List& in) { return List{net(in[0]) * factor}; },
              [&] { return std::vector<double>{factor}; });
  const CompiledFunction outer =
      compile([&](const List& in) { return List{inner({in[0]})[0] + 1}; });
  CHECK(outer({ones({})})[0].item() == 3);
  net.eval();
  CHECK(outer({ones({})})[0].item() == 2);
  factor = 5;
  CHECK(outer({ones({})})[0].item() == 6);
  net.train();
  CHECK(outer({ones({})})[0].item() == 11);
  factor = 1;
  CHECK(outer({ones({})})[0].item() == 3);
  CHECK(outer.traced() == 4);
}

TEST_CASE("compiled state: loops, branches and draws use compiled functions") {
  const CompiledFunction twice = compile([](const List& in) { return List{in[0] * 2}; });
  const Tensor start = ones({3}), x = ones({3});
  const auto doubled = [&](const List& carry, const List&) {
    return ScanResult{{twice({carry[0]})[0]}, {}};
  };
  CHECK(scan(doubled, {start}, {}, {.length = 4}).carry[0].to_vector<float>() ==
        Floats{16, 16, 16});
  const auto branch = [&](const List& in) { return List(twice({in[0]})); };
  const auto same = [](const List& in) { return in; };
  CHECK(cond(x.sum() > 2, branch, same, {x})[0].to_vector<float>() == Floats{2, 2, 2});
  const CompiledFunction drawing = compile([](const List& in) { return List{in[0] + rand({3})}; });
  const CompiledFunction both = compile([&](const List& in) {
    return List{drawing({in[0]})[0], drawing({in[0]})[0]};
  });
  manual_seed(3);
  const Outputs first = both({x}), second = both({x});
  manual_seed(3);
  const Tensor a = drawing({x})[0], b = drawing({x})[0], c = drawing({x})[0], d = drawing({x})[0];
  CHECK(first[0].equal(a));
  CHECK(first[1].equal(b));
  CHECK(second[0].equal(c));
  CHECK(second[1].equal(d));
  CHECK_THROWS_AS(
      compile([&](const List& in) { return List(twice.run_many(2, {in[0]})); })({ones({2})}),
      NotSupported);
}

TEST_CASE("compiled state: an inlined assignment is carried out if it is returned") {
  const Tensor w = variable(ones({2}), "w");
  const CompiledFunction grow = compile([&](const List&) { return List{assign(w, w * 2)}; });
  const CompiledFunction outer = compile([&](const List&) { return List{grow({})[0]}; });
  outer({});
  CHECK(w.to_vector<float>() == Floats{2, 2});
  outer({});
  CHECK(w.to_vector<float>() == Floats{4, 4});
}

TEST_CASE("compiled state: guards run once for a call, and may ask the function") {
  int calls = 0;
  double value = 1;
  CompiledFunction f;
  f = compile([&](const List& in) { return List{in[0] * value}; },
              [&] {
                ++calls;
                return std::vector<double>{value, static_cast<double>(f.traced() * 0)};
              });
  const Tensor x = ones({2});
  for (int k = 0; k < 20; ++k) {
    value = k;
    CHECK(f({x})[0].to_vector<float>()[0] == static_cast<float>(k));
  }
  value = 19;
  f({x});
  calls = 0;
  f({x});
  CHECK(calls == 1);
}

TEST_CASE("compiled state: a layer of a vector that has grown is replaced") {
  std::vector<nn::Linear> layers;
  layers.emplace_back(2, 2);
  const nn::Linear first = layers[0];
  const CompiledFunction f = compile([&](const List& in) { return List{layers[0](in[0])}; });
  const Tensor x = ones({1, 2});
  CHECK(f({x})[0].equal(layers[0](x)));
  layers.reserve(layers.capacity() + 8);
  layers[0] = nn::Linear(2, 2);
  CHECK(f({x})[0].equal(layers[0](x)));
}
