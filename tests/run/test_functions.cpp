// Functions with a gradient of their own: first and second derivatives against the composed
// operations and finite differences; saved tensors; loops, compiled functions, modules; refusals.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <tenon/tenon.h>

#include "null_backend.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

Tensor draw(const Shape& shape, std::uint64_t seed) {
  return randn(shape, DType::Float64, Generator(seed)).compute();
}

double error_of(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  if (found.numel() == 0) return 0;
  const double norm = square(expected).sum().item();
  return std::sqrt(square(found - expected).sum().item() / (norm > 0 ? norm : 1));
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

// x^3, whose gradient is the rule's.
const Function& cube() {
  static const Function function(
      "cube", [](FunctionContext&, const Tensor& x) { return x * x * x; },
      [](const FunctionContext& context, const Tensor& g) {
        return 3 * square(context.arguments()[0]) * g;
      });
  return function;
}

// exp, whose gradient reads the result.
const Function& exponential() {
  static const Function function(
      "exponential", [](FunctionContext&, const Tensors& in) { return Tensors{exp(in[0])}; },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{context.results()[0] * g[0]};
      });
  return function;
}

Tensor host_map(const char* name, const Tensor& x, double (*f)(double)) {
  return host_call(name, {x}, {x.dtype(), x.shape()},
                   [f](std::span<const HostInput> in, std::span<const HostOutput> out) {
                     const auto from = in[0].values<double>();
                     for (std::size_t k = 0; k < from.size(); ++k)
                       out[0].values<double>()[k] = f(from[k]);
                   });
}

// sin in host code; each derivative is a function with host code of its own.
Tensor host_cos(const Tensor& x);
Tensor host_sin(const Tensor& x) {
  static const Function function(
      "host_sin",
      [](FunctionContext&, const Tensors& in) {
        return Tensors{host_map("host_sin", in[0], [](double v) { return std::sin(v); })};
      },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{host_cos(context.arguments()[0]) * g[0]};
      });
  return function(x);
}
Tensor host_cos(const Tensor& x) {
  static const Function function(
      "host_cos",
      [](FunctionContext&, const Tensors& in) {
        return Tensors{host_map("host_cos", in[0], [](double v) { return std::cos(v); })};
      },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{-host_sin(context.arguments()[0]) * g[0]};
      });
  return function(x);
}

}  // namespace

TEST_CASE("function: the result and three derivatives equal those of composed operations") {
  for (const Shape& shape : {Shape{5}, Shape{3, 1, 4}, Shape{}, Shape{0, 2}}) {
    const Tensor x = draw(shape, 1), weights = draw(shape, 2);
    const auto derivatives = [&](const std::function<Tensor(const Tensor&)>& f) {
      Tensors all{f(x)};
      for (int k = 0; k < 3; ++k) all.push_back(grad((all.back() * weights).sum(), x));
      return all;
    };
    const auto check = [&](const auto& own, const auto& composed) {
      const Tensors found = derivatives(own), expected = derivatives(composed);
      for (std::size_t k = 0; k < found.size(); ++k) CHECK(error_of(found[k], expected[k]) < 1e-12);
    };
    check([](const Tensor& t) { return cube()(t); }, [](const Tensor& t) { return t * t * t; });
    check([](const Tensor& t) { return exponential()(t * 0.5); },
          [](const Tensor& t) { return exp(t * 0.5); });
    check([](const Tensor& t) { return host_sin(t * t); },
          [](const Tensor& t) { return sin(t * t); });
    check([](const Tensor& t) { return cube()(exponential()(t)) + t; },
          [](const Tensor& t) { return exp(t) * exp(t) * exp(t) + t; });
  }
}

TEST_CASE("function: host code against finite differences") {
  const Tensor x = draw({7}, 3);
  const Tensor slope = grad(host_sin(x).sum(), x);
  constexpr double kStep = 1e-6;
  const Tensor differences = (host_sin(x + kStep) - host_sin(x - kStep)) / (2 * kStep);
  CHECK(error_of(slope, differences) < 1e-8);
}

TEST_CASE("function: the gradient is the backward function's, whatever the forward function is") {
  const Function straight_through(
      "round", [](FunctionContext&, const Tensors& in) { return Tensors{round(in[0])}; },
      [](const FunctionContext&, const Tensors& g) { return g; });
  const Tensor x = draw({6}, 4);
  CHECK(error_of(straight_through(x), round(x)) == 0);
  CHECK(error_of(grad((straight_through(x) * x).sum(), x), round(x) + x) < 1e-12);
  const Function reversed(
      "reverse", [](FunctionContext&, const Tensors& in) { return in; },
      [](const FunctionContext&, const Tensors& g) { return Tensors{-2 * g[0]}; });
  CHECK(error_of(grad(square(reversed(x)).sum(), x), -4 * x) < 1e-12);
}

TEST_CASE("function: several arguments and results, numbers, saved tensors, no gradient") {
  const double power = 3;
  const Function pair(
      "pair",
      [power](FunctionContext& context, const Tensors& in) {
        const Tensor factor = exp(in[0] * power);
        context.save({factor});
        context.mark_non_differentiable(2);
        return Tensors{factor * in[1], in[0] + in[1], gt(in[0], 0.0), square(in[0])};
      },
      [power](const FunctionContext& context, const Tensors& g) {
        const Tensor& factor = context.saved()[0];
        const Tensor& a = context.arguments()[0];
        const Tensor& b = context.arguments()[1];
        CHECK(context.results().size() == 4);
        return Tensors{g[0] * factor * b * power + g[1] + 2 * a * g[3], g[0] * factor + g[1], {}};
      });
  const Tensor a = draw({2, 3}, 5), b = draw({2, 3}, 6), index = arange(0, 3);
  const auto composed = [&] { return Tensors{exp(a * power) * b, a + b, gt(a, 0.0), square(a)}; };
  const auto check = [&](const std::function<Tensor(const Tensors&)>& loss) {
    const Tensor own = loss(pair.apply({a, b, index})), other = loss(composed());
    const Tensors first = grad(own, Tensors{a, b}), expected = grad(other, Tensors{a, b});
    for (std::size_t k = 0; k < 2; ++k) {
      const Tensors second = grad(square(first[k]).sum(), Tensors{a, b}),
                    wanted = grad(square(expected[k]).sum(), Tensors{a, b});
      for (std::size_t j = 0; j < 2; ++j) CHECK(error_of(second[j], wanted[j]) < 1e-12);
    }
    for (std::size_t k = 0; k < 2; ++k) {
      CHECK(error_of(first[k], expected[k]) < 1e-12);
    }
    CHECK(own.item() == doctest::Approx(other.item()));
  };
  check([](const Tensors& y) { return (y[0] * y[1]).sum() + (y[3] * y[3]).sum(); });
  check([](const Tensors& y) { return square(y[0]).sum(); });
  check([](const Tensors& y) { return y[1].sum(); });
  const Tensors y = pair.apply({a, b, index});
  CHECK(y[2].dtype() == DType::Bool);
  CHECK(grad((detach(y[3]) * a).sum(), b).sum().item() == 0);
}

TEST_CASE("function: gradients with respect to its result, also through its backward function") {
  const Tensor x = draw({5}, 7), y = exponential()(x), g = grad(y.sum(), x);
  CHECK(error_of(grad(square(y).sum(), y), 2 * y) < 1e-14);
  CHECK(error_of(grad(square(g).sum(), y), 2 * y) < 1e-12);
  CHECK(error_of(grad((g * y).sum(), y), 2 * y) < 1e-12);
  const auto [values, places] = sort(x);
  CHECK(error_of(grad(square(values).sum(), values), 2 * values) < 1e-14);
}

TEST_CASE("function: a saved result has the function's gradient, a saved argument its own") {
  const Function half_slope(
      "half_slope",
      [](FunctionContext& context, const Tensors& in) {
        const Tensor y = exp(in[0]);
        context.save({y, in[0]});
        return Tensors{y};
      },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{0.5 * context.saved()[0] * g[0] * context.saved()[1]};
      });
  // g = x y / 2 with dy/dx = x y / 2: dg/dx = y / 2 + x^2 y / 4.
  const Tensor x = draw({4}, 8), y = exp(x);
  const Tensor g = grad(half_slope(x).sum(), x);
  CHECK(error_of(g, 0.5 * x * y) < 1e-12);
  CHECK(error_of(grad(g.sum(), x), 0.5 * y + 0.25 * x * x * y) < 1e-12);
}

TEST_CASE("function: evaluation at any place leaves the gradients of variables unchanged") {
  const Tensor w = variable(draw({4}, 9));
  const Tensor y = exponential()(w * 2), z = cube()(y);
  y.compute();
  z.sum().item();
  const Tensor g = grad(z.sum(), w);
  CHECK(error_of(g, 6 * exp(w * 6)) < 1e-12);
  g.compute();
  CHECK(error_of(grad(g.sum(), w), 36 * exp(w * 6)) < 1e-12);
}

TEST_CASE("function: in loops, with gradients and second derivatives") {
  const Tensor start = draw({3}, 10), xs = draw({5, 3}, 11), w = draw({3}, 12);
  const auto run = [&](const std::function<Tensor(const Tensor&, const Tensor&)>& f) {
    return scan(
        [&](const Tensor& carry, const Tensor& row) {
          const Tensor next = f(carry * w, row);
          return std::pair(next, square(next));
        },
        start, xs);
  };
  // host code, a saved tensor and a tensor from outside
  const Function own(
      "mix",
      [](FunctionContext& context, const Tensors& in) {
        const Tensor s = host_sin(in[0] + in[1]);
        context.save({host_cos(in[0] + in[1])});
        return Tensors{s * in[1]};
      },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensor& row = context.arguments()[1];
        const Tensor slope = context.saved()[0] * row * g[0];
        return Tensors{slope, slope + g[0] * context.results()[0] / row};
      });
  const auto values = [&](const auto& f) {
    const auto [last, all] = run(f);
    const Tensor loss = last.sum() + all.sum();
    Tensors out{loss};
    const Tensors inputs{start, xs, w};
    for (const Tensor& g : grad(loss, inputs)) out.push_back(g);
    Tensor of_gradients = square(out[1]).sum() + square(out[2]).sum() + square(out[3]).sum();
    for (const Tensor& g : grad(of_gradients, inputs)) out.push_back(g);
    return out;
  };
  const Tensors found = values([&](const Tensor&a, const Tensor&b) { return own(a, b); }),
                expected = values([](const Tensor&a, const Tensor&b) { return sin(a + b) * b; });
  for (std::size_t k = 0; k < found.size(); ++k) CHECK(error_of(found[k], expected[k]) < 1e-11);
}

TEST_CASE("function: in branches and compiled functions of several sizes") {
  const Tensor x = draw({4}, 13);
  for (const double sign : {1.0, -1.0}) {
    const Tensor y = cond(
        scalar(sign) > 0, [](const Tensors& in) { return Tensors{cube()(in[0])}; },
        [](const Tensors& in) { return Tensors{host_sin(in[0])}; }, {x})[0];
    CHECK(error_of(grad(y.sum(), x), sign > 0 ? 3 * x * x : cos(x)) < 1e-12);
  }
  CompiledFunction step = compile([](const Tensors& in) {
    const Tensor loss = (host_sin(in[0]) * cube()(in[0])).sum();
    const Tensor g = grad(loss, in[0]);
    return Tensors{loss, g, grad(g.sum(), in[0])};
  });
  for (const std::int64_t n : {2, 7, 11, 30, 7}) {
    const Tensor at = draw({n}, 14);
    const Outputs out = step({at});
    const Tensor loss = (sin(at) * at * at * at).sum(), g = grad(loss, at);
    CHECK(out[0].item() == doctest::Approx(loss.item()));
    CHECK(error_of(out[1], g) < 1e-12);
    CHECK(error_of(out[2], grad(g.sum(), at)) < 1e-12);
  }
}

TEST_CASE("function: data parallelism adds the gradients of all devices") {
  const std::vector<Device> devices{test::null_device(0), test::null_device(1)};
  const Tensor w = draw({4}, 20);
  const auto loss = [](const Tensor& weight, const Tensor& x) {
    return (cube()(weight) * host_sin(x * weight)).sum();
  };
  const auto step = [&](const Tensors& parts) {
    Tensors gradients;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const Tensor own = to(w, parts[k].device());
      gradients.push_back(cast(grad(loss(own, parts[k]), own), DType::Float32));
    }
    return all_reduce(gradients);
  };
  const CompiledFunction compiled = compile(step);
  for (const std::uint64_t seed : {21, 22}) {
    const Tensor x = draw({6, 4}, seed);
    const Tensor expected = grad(loss(w, x), w);
    Tensors parts;
    for (std::size_t k = 0; k < devices.size(); ++k) {
      const auto first = static_cast<std::int64_t>(3 * k);
      parts.push_back(to(x[Slice(first, first + 3)], devices[k]).compute());
    }
    for (const Tensors& sums : {step(parts), Tensors(compiled(parts))})
      for (std::size_t k = 0; k < devices.size(); ++k) {
        CHECK(sums[k].device() == devices[k]);
        CHECK(error_of(cast(to(sums[k], Device{}), DType::Float64), expected) < 1e-6);
      }
  }
}

TEST_CASE("function: gradients of other dtypes are cast to their argument's") {
  const Function mixed(
      "mixed", [](FunctionContext&, const Tensors& in) { return Tensors{in[0] * 2}; },
      [](const FunctionContext&, const Tensors& g) { return Tensors{cast(g[0], DType::Float64)}; });
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    const Tensor x = ones({3}, dtype);
    CHECK(grad(mixed(x).sum(), x).dtype() == dtype);
  }
}

TEST_CASE("function: arguments and results as a tensor each, as a tuple or as a list") {
  const Function ratio(
      "ratio", [](FunctionContext&, const Tensor& a, Tensor b) { return std::tuple(a / b, a * b); },
      [](const FunctionContext& context, const Tensor& of_ratio, const Tensor& of_product) {
        const Tensor &a = context.arguments()[0], &b = context.arguments()[1];
        return std::tuple(of_ratio / b + of_product * b, of_product * a - of_ratio * a / square(b));
      });
  const Function listed(
      "listed", [](FunctionContext&, TensorList in) { return in[0] / in[1]; },
      [](const FunctionContext& context, const Tensor& g) {
        const Tensor &a = context.arguments()[0], &b = context.arguments()[1];
        return Tensors{g / b, -g * a / square(b)};
      });
  const Tensor a = draw({4}, 18), b = exp(draw({4}, 19));
  const Tensors out = ratio.apply({a, b}), inputs{a, b};
  const Tensor loss = (out[0] * out[1] + out[1]).sum(), composed = (a * a + a * b).sum();
  const Tensors found = grad(loss, inputs), expected = grad(composed, inputs);
  for (std::size_t k = 0; k < 2; ++k) CHECK(error_of(found[k], expected[k]) < 1e-12);
  CHECK(error_of(grad(listed(a, b).sum(), b), -a / square(b)) < 1e-12);
  CHECK(message_of([&] { ratio.apply({a}); }) == "ratio: it takes 2 arguments and was given 1");
  CHECK(message_of([&] { ratio(a, b); }) == "ratio: it has 2 results: call apply()");
}

TEST_CASE("function: refused gradients name the operation") {
  const Tensor x = draw({3}, 15), w = draw({3}, 16);
  const auto twice = [](FunctionContext&, const Tensor& in) { return in * 2; };
  const auto refusal = [&](const auto& backward) {
    return message_of([&] { grad(Function("own", twice, backward)(x).sum(), x); });
  };
  CHECK_THROWS_AS(grad(Function("own", twice)(x).sum(), x), NotSupported);
  CHECK(message_of([&] { grad(Function("own", twice)(x).sum(), x); }) ==
        "own: it has no backward function, so it has no gradient: give it one, or detach() its "
        "result");
  CHECK(refusal([](const FunctionContext&, const Tensor& g) {
          return Tensors{g, g};
        }) == "own: its backward function returns 2 gradients for 1 arguments");
  CHECK(refusal([](const FunctionContext&, const Tensor& g, const Tensor&) { return g; }) ==
        "own: its backward function takes 2 gradients, it has 1 results");
  CHECK(refusal([](const FunctionContext&, const Tensor& g) { return g.sum(); }) ==
        "own: its backward function returns a gradient of [] for argument 0, which is [3]");
  CHECK(refusal([](const FunctionContext&, const Tensor& g) {
          return cast(g, DType::Int64);
        }).find("own: its backward function returns a gradient of int64") == 0);
  // a tensor that is no argument
  const Function reads_w(
      "reads_w", [w](FunctionContext&, const Tensor& in) { return in * exp(w); },
      [w](const FunctionContext&, const Tensor& g) { return g * exp(w); });
  CHECK(error_of(grad(reads_w(x).sum(), x), exp(w)) < 1e-14);
  CHECK_THROWS_AS(grad(reads_w(x).sum(), w), ValueError);
  CHECK(message_of([&] {
          grad(reads_w(x).sum(), w);
        }).find("reads_w: its forward function reads") == 0);
  CHECK_THROWS_AS(Function("none", [](FunctionContext&, TensorList) { return Tensors{}; })(x),
                  ValueError);
  CHECK_THROWS_AS(cube().apply({Tensor()}), ValueError);
  const Tensor v = variable(x), old = cube()(v);
  compute({assign(v, v + 1)});
  CHECK(message_of([&] { grad(old.sum(), v); }) ==
        "grad: cube [3] was built before the variable [3] that it reads was assigned, so its "
        "gradient is gone: ask for gradients before the assignment, build the tensor again, or "
        "detach() it if it is a constant");
  // the gradient needs nothing that the forward function has read besides
  const Tensor shift = variable(x);
  const Function shifted(
      "shifted", [&shift](FunctionContext&, const Tensor& in) { return in * 2 + detach(shift); },
      [](const FunctionContext&, const Tensor& g) { return g * 2; });
  const Tensor at = variable(w), y = shifted(at);
  compute({y, assign(shift, shift + 1)});
  CHECK(error_of(grad(y.sum(), at), full({3}, 2, DType::Float64)) < 1e-14);
}

TEST_CASE("function: a module with own operations is trained, step by step and compiled") {
  class Wave final : public nn::Module {
   public:
    Tensor forward(const Tensor& x) const override {
      return cast(host_sin(cast(cube()(x), DType::Float64)), DType::Float32);
    }
  };
  const Tensor x = randn({64, 4}, DType::Float32, Generator(17)).compute(),
               y = tanh(x.sum(1, true)).compute();
  nn::Sequential net(nn::Linear(4, 8), Wave(), nn::Linear(8, 1));
  optim::Adam adam(net, {.lr = 1e-2});
  const auto loss_now = [&] { return mse_loss(net(x), y).item(); };
  const double before = loss_now();
  for (int k = 0; k < 40; ++k) adam.step(mse_loss(net(x), y));
  const double after = loss_now();
  CHECK(after < 0.8 * before);
  CompiledFunction step = compile([&](const Tensors& in) {
    const Tensor loss = mse_loss(net(in[0]), in[1]);
    Tensors out = adam.updates(grad(loss, adam.parameters()));
    out.push_back(loss);
    return out;
  });
  for (int k = 0; k < 40; ++k) step({x, y});
  CHECK(loss_now() < after);
}
