// vjp, jvp, jacobian, hessian and hvp against finite differences in float64.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>

#include <tenon/tenon.h>

#include "base/philox.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;
using ListFunction = std::function<Tensors(const Tensors&)>;

/// Uniform on [-1, 1), the same at each call.
Tensor sample(const Shape& shape, std::uint64_t seed, double offset = 0) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = philox(seed, k, 5).v[0] * 0x1p-31 - 1 + offset;
  return Tensor::from(values, shape);
}

double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  REQUIRE(a.dtype() == b.dtype());
  return a.numel() == 0 ? 0.0 : amax(abs(a - b)).to(DType::Float64).item();
}

/// The Jacobian of result r with respect to input k by central differences: [result…, input…].
Tensor numeric_jacobian(const ListFunction& f, const Tensors& inputs, std::size_t r,
                        std::size_t k) {
  constexpr double kStep = 1e-5;
  std::vector<double> at = inputs[k].to_vector<double>();
  Tensors columns;
  const auto value = [&](std::size_t e, double by) {
    std::vector<double> moved = at;
    moved[e] += by;
    Tensors all = inputs;
    all[k] = Tensor::from(moved, inputs[k].shape());
    return reshape(f(all)[r], {-1});
  };
  for (std::size_t e = 0; e < at.size(); ++e)
    columns.push_back((value(e, kStep) - value(e, -kStep)) / (2 * kStep));
  Ints sizes;
  for (const std::int64_t size : f(inputs)[r].shape()) sizes.push_back(size);
  for (const std::int64_t size : inputs[k].shape()) sizes.push_back(size);
  return reshape(stack(columns, 1), sizes);
}

struct Example {
  std::string name;
  Tensors inputs;
  ListFunction f;
};

std::vector<Example> examples() {
  return {
      {"element-wise and sums",
       {sample({3}, 1), sample({2, 3}, 2)},
       [](const Tensors& x) {
         return Tensors{sin(x[0]) * x[1] + exp(x[1]), sum(x[0] * x[0] * x[1])};
       }},
      {"products",
       {sample({2, 3}, 3), sample({3, 4}, 4)},
       [](const Tensors& x) {
         return Tensors{tanh(matmul(x[0], x[1])), softmax(x[0], 0)};
       }},
      {"a convolution",
       {sample({1, 2, 4, 4}, 5), sample({3, 2, 2, 2}, 6)},
       [](const Tensors& x) {
         return Tensors{square(max_pool2d(conv2d(x[0], x[1]), {.kernel = 2}))};
       }},
      {"indexing",
       {sample({4, 3}, 7)},
       [](const Tensors& x) {
         const auto [values, order] = sort(x[0], 1);
         return Tensors{cumsum(values, 0) * gather(x[0], 1, order), x[0][Slice(1, 4, 2)]};
       }},
      {"a loop",
       {sample({3}, 8), sample({5, 3}, 9)},
       [](const Tensors& x) {
         auto [last, all] = scan(
             [](const Tensor& c, const Tensor& row) {
               const Tensor next = tanh(c * 1.5 + row);
               return std::pair(next, next * row);
             },
             x[0], x[1]);
         return Tensors{last, all};
       }},
      {"an input that a result does not depend on",
       {sample({2}, 10), sample({2}, 11)},
       [](const Tensors& x) {
         return Tensors{x[0] * x[0], x[1] + 0.0, zeros_like(x[0])};
       }},
      {"scalars and one element",
       {sample({}, 12), sample({1, 1}, 13)},
       [](const Tensors& x) {
         return Tensors{x[0] * x[1], x[0] / (x[1] + 3.0)};
       }},
  };
}

TEST_CASE("jacobian against finite differences, in both modes") {
  for (const Example& e : examples()) {
    INFO(e.name);
    const auto backward = jacobian(e.f, e.inputs),
               forward = jacobian(e.f, e.inputs, {.mode = JacobianMode::Forward});
    REQUIRE(backward.size() == e.f(e.inputs).size());
    for (std::size_t r = 0; r < backward.size(); ++r)
      for (std::size_t k = 0; k < e.inputs.size(); ++k) {
        INFO("result " << r << ", input " << k);
        const Tensor wanted = numeric_jacobian(e.f, e.inputs, r, k);
        CHECK(distance(backward[r][k], wanted) < 1e-8);
        CHECK(distance(forward[r][k], wanted) < 1e-8);
      }
  }
}

TEST_CASE("vjp and jvp are products with the jacobian") {
  for (const Example& e : examples()) {
    INFO(e.name);
    const Tensors results = e.f(e.inputs);
    Tensors cotangents, tangents;
    for (const Tensor& y : results) cotangents.push_back(sample(y.shape(), 20 + cotangents.size()));
    for (const Tensor& x : e.inputs) tangents.push_back(sample(x.shape(), 30 + tangents.size()));
    const FunctionProducts back = vjp(e.f, e.inputs, cotangents),
                           ahead = jvp(e.f, e.inputs, tangents);
    const auto blocks = jacobian(e.f, e.inputs);
    for (std::size_t k = 0; k < e.inputs.size(); ++k) {
      Tensor wanted = zeros({e.inputs[k].numel()}, DType::Float64);
      for (std::size_t r = 0; r < results.size(); ++r)
        wanted = wanted + matmul(reshape(cotangents[r], {-1}),
                                 reshape(blocks[r][k], {results[r].numel(), wanted.numel()}));
      CHECK(distance(reshape(back.products[k], {-1}), wanted) < 1e-12);
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
      Tensor wanted = zeros({results[r].numel()}, DType::Float64);
      for (std::size_t k = 0; k < e.inputs.size(); ++k)
        wanted = wanted + matmul(reshape(blocks[r][k], {wanted.numel(), e.inputs[k].numel()}),
                                 reshape(tangents[k], {-1}));
      CHECK(distance(reshape(ahead.products[r], {-1}), wanted) < 1e-12);
      CHECK(distance(ahead.results[r], results[r]) < 1e-14);
      CHECK(distance(back.results[r], results[r]) < 1e-14);
    }
  }
}

Tensor energy(const Tensors& x) {
  return sum(exp(x[0]) * sin(x[0] * x[1])) + sum(matmul(x[0], transpose(x[1])));
}

TEST_CASE("hessian and hvp against finite differences of the gradient") {
  const Tensors inputs{sample({2, 3}, 41), sample({2, 3}, 42)};
  const ListFunction gradient = [](const Tensors& x) {
    return vjp([](const Tensors& v) { return energy(v); }, x).products;
  };
  const auto f = [](const Tensors& x) { return energy(x); };
  for (const JacobianMode mode : {JacobianMode::Reverse, JacobianMode::Forward}) {
    const auto blocks = hessian(f, inputs, {.mode = mode});
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t k = 0; k < 2; ++k)
        CHECK(distance(blocks[i][k], numeric_jacobian(gradient, inputs, i, k)) < 1e-8);
  }
  const auto blocks = hessian(f, inputs);
  const Tensors vectors{sample({2, 3}, 43), sample({2, 3}, 44)};
  const FunctionProducts products = hvp(f, inputs, vectors);
  for (std::size_t i = 0; i < 2; ++i) {
    Tensor wanted = zeros({6}, DType::Float64);
    for (std::size_t k = 0; k < 2; ++k)
      wanted = wanted + matmul(reshape(blocks[i][k], {6, 6}), reshape(vectors[k], {6}));
    CHECK(distance(reshape(products.products[i], {6}), wanted) < 1e-12);
  }
  CHECK(distance(products.results[0], energy(inputs)) < 1e-14);
}

TEST_CASE("one tensor in, one tensor out") {
  const Tensor x = sample({3}, 50);
  CHECK(distance(jacobian([](const Tensor& v) { return v * v; }, x), diag(2 * x)) < 1e-15);
  CHECK(distance(hessian([](Tensor v) { return sum(v * v * v); }, x), diag(6 * x)) < 1e-15);
  const auto two = [](const Tensor& a, const Tensor& b) { return std::tuple(a * b, a + b); };
  const FunctionProducts d = jvp(two, {x, 2 * x}, {ones_like(x), zeros_like(x)});
  CHECK(distance(d.products[0], 2 * x) == 0);
  CHECK(distance(d.products[1], ones_like(x)) == 0);
}

TEST_CASE("higher derivatives: of a jacobian, and of a product by its vector") {
  const Tensor x = variable(sample({3}, 60)), t = variable(sample({3}, 61));
  const auto cube = [](const Tensor& v) { return v * v * v; };
  const Tensor j = jacobian(cube, x);
  CHECK(distance(grad(sum(j), x), 6 * x) < 1e-14);
  const Tensor d = jvp(cube, {x}, {t}).products[0];
  CHECK(distance(grad(sum(d), t), 3 * x * x) < 1e-14);
  CHECK(distance(grad(sum(d), x), 6 * x * t) < 1e-14);
  // The third derivative of x^4: three nested forward modes.
  const auto slope = [](const TensorFunction& f) {
    return [f](const Tensor& v) { return jvp(f, {v}, {ones_like(v)}).products[0]; };
  };
  const auto third = slope(slope(slope([](const Tensor& v) { return v * v * v * v; })));
  CHECK(distance(third(x), 24 * x) < 1e-13);
}

TEST_CASE("tensors that the function captures are constants of the derivative") {
  const Tensor x = variable(sample({3}, 62));
  const Tensor j = jacobian([&x](const Tensor& v) { return v * x; }, x);
  CHECK(distance(j, diag(x)) == 0);
  // The inner derivative is 1: the outer argument is a constant of it.
  const Tensor nested =
      jvp(
          [](const Tensor& a) {
            return a *
                   jvp([&a](const Tensor& b) { return a + b; }, {a}, {ones_like(a)}).products[0];
          },
          {x}, {ones_like(x)})
          .products[0];
  CHECK(distance(nested, ones_like(x)) == 0);
  // One tensor as two inputs: each derivative is by its own argument.
  const auto parts = vjp([](const Tensor& a, const Tensor& b) { return sum(a * a * b); }, {x, x});
  CHECK(distance(parts.products[0], 2 * x * x) < 1e-15);
  CHECK(distance(parts.products[1], x * x) < 1e-15);
}

TEST_CASE("derivatives inside a compiled function, of one, and under NoGrad") {
  const Tensor x = sample({4}, 63);
  const auto cube = [](const Tensor& v) { return v * v * v; };
  const auto compiled = compile([&](Tensor v) { return jacobian(cube, v); });
  CHECK(distance(compiled(x), diag(3 * x * x)) < 1e-15);
  const auto inner = compile([&](Tensor v) { return cube(v); });
  CHECK(distance(jacobian(inner, x), diag(3 * x * x)) < 1e-15);
  const Tensor w = variable(x);
  Tensor constant;
  {
    const NoGrad no_grad;
    constant = jacobian(cube, w);
  }
  CHECK(distance(constant, diag(3 * x * x)) < 1e-15);
  CHECK(distance(grad(sum(constant), w), zeros_like(w)) == 0);
}

TEST_CASE("jvp computes about two forward passes and keeps no activations") {
  const Tensor x = sample({64, 64}, 64).to(DType::Float32), w = x / 64.0;
  const auto deep = [&w](Tensor v) {
    for (int k = 0; k < 8; ++k) v = tanh(matmul(v, w));
    return v;
  };
  const Plan forward = plan({deep(x)}), both = plan({jvp(deep, {x}, {x}).products[0]});
  CHECK(both.node_count() < 5 * forward.node_count());
  // Two values live at once, for the value and the tangent.
  CHECK(both.arena_bytes() < 3 * forward.arena_bytes());
  const std::string steps = both.steps();
  std::size_t products = 0;
  for (std::size_t at = steps.find("matmul"); at != std::string::npos;
       at = steps.find("matmul", at + 1))
    ++products;
  CHECK(products > 0);
}

TEST_CASE("jacobian: passes in chunks give the same, with less memory") {
  const Tensor x = sample({5, 2}, 66), w = sample({2, 3}, 67);
  const auto f = [&w](const Tensor& v) { return sin(matmul(v, w)); };
  const Tensor whole = jacobian(f, x);
  for (const JacobianMode mode : {JacobianMode::Reverse, JacobianMode::Forward})
    for (const std::int64_t chunk : {1, 4, 5, 15, 100}) {
      INFO("chunk " << chunk);
      CHECK(distance(jacobian(f, x, {.mode = mode, .chunk = chunk}), whole) < 1e-14);
    }
  const Tensor wide = sample({64}, 68), weights = sample({64, 64}, 69);
  const auto deep = [&weights](Tensor v) {
    for (int k = 0; k < 6; ++k) v = tanh(squeeze(matmul(weights, unsqueeze(v, 1)), 1));
    return v;
  };
  CHECK(plan({jacobian(deep, wide, {.chunk = 8})}).arena_bytes() <
        plan({jacobian(deep, wide)}).arena_bytes());
}

TEST_CASE("empty results, inputs and functions") {
  const Tensor none = zeros({0}, DType::Float64), x = sample({2}, 65);
  CHECK(jacobian([](const Tensor& v) { return v * 2; }, none).shape() == Shape{0, 0});
  CHECK(jacobian([](const Tensor& v) { return slice(v, 0, 0, 0); }, x).shape() == Shape{0, 2});
  const auto of_none = [&x](const Tensor& v) { return sum(v) + x; };
  for (const JacobianMode mode : {JacobianMode::Reverse, JacobianMode::Forward})
    CHECK(jacobian(of_none, none, {.mode = mode}).shape() == Shape{2, 0});
}

template <class E>
void refuses(const std::function<void()>& f, const std::string& text) {
  try {
    f();
    FAIL_CHECK("nothing was thrown; expected: " << text);
  } catch (const E& e) {
    CHECK(std::string(e.what()).find(text) != std::string::npos);
    INFO(e.what());
  }
}

TEST_CASE("derivatives: what does not fit is named") {
  const Tensor x = sample({3}, 70), index = Tensor::from({std::int64_t{1}}, {1});
  const auto f = [](const Tensor& v) { return v * v; };
  refuses<ShapeError>([&] { vjp(f, {x}); }, "vjp: the function returns [3], not a scalar");
  refuses<ShapeError>([&] { jvp(f, {x}, {sample({2}, 1)}); },
                      "jvp: tangent 0 is float64[2], the input is float64[3]");
  refuses<ShapeError>([&] { vjp(f, {x}, {x.to(DType::Float32)}); }, "cotangent 0 is float32[3]");
  refuses<ValueError>([&] { jvp(f, {x}, {}); }, "jvp: there are 0 tangents for 1 inputs");
  refuses<ValueError>(
      [&] {
        jvp(f, {x, x}, {x, x});
      },
      "the function takes 1 tensors and was given 2");
  refuses<ValueError>([&] { vjp(f, {Tensor()}); }, "vjp: input 0 has no value");
  refuses<DTypeError>([&] { jacobian(f, index); }, "jacobian: input 0 is int64[1]");
  refuses<DTypeError>([&] { jacobian([](const Tensor& v) { return argmax(v); }, x); },
                      "jacobian: result 0 is int64");
  refuses<ShapeError>([&] { hessian(f, x); }, "hessian: the function returns [3], not a scalar");
  refuses<ShapeError>([&] { hvp(f, {x}, {x}); }, "hvp: the function returns [3]");
  refuses<ValueError>([&] { hvp([](const Tensor& v) { return std::tuple(sum(v), v); }, {x}, {x}); },
                      "returns 2 tensors");
  refuses<ValueError>([&] { jacobian([](const Tensor& v) { return std::tuple(v, v); }, x); },
                      "jacobian: the function returns 2 tensors");
  refuses<ShapeError>([&] { jacobian(f, zeros({1, 1, 1, 1, 1})); }, "more than 8 axes together");
  refuses<ValueError>([&] { jacobian(f, x, {.chunk = -1}); }, "jacobian: a chunk of -1 passes");
}

}  // namespace
