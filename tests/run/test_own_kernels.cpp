// Own element-wise kernels and own operations on the CPU: values and derivatives against composed
// operations, dtypes, views, fusion, loops, compiled functions, refusals.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <tenon/tenon.h>

#include "own_kernels.h"
#include "run/runner.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

Tensor drawn(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  return randn(shape, dtype, Generator(seed)).compute();
}

double largest_difference(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  if (found.numel() == 0) return 0;
  return abs(cast(found, DType::Float64) - cast(expected, DType::Float64)).max().item();
}

Tensor composed_swish(const Tensor& x, const Tensor& b) { return x * sigmoid(b * x); }

// The derivatives of a function of two tensors, up to the second order.
Tensors derivatives(const std::function<Tensor(const Tensor&, const Tensor&)>& f, const Tensor& x,
                    const Tensor& b) {
  const Tensor y = f(x, b);
  const Tensor weights = drawn(y.shape(), 77, y.dtype());
  Tensors all{y};
  const Tensors first = grad((y * weights).sum(), Tensors{x, b});
  all.insert(all.end(), first.begin(), first.end());
  const Tensors second = grad(square(first[0]).sum() + (first[1] * b).sum(), Tensors{x, b});
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

std::string what_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

const OperationCode& doubling() {
  static const OperationCode code{
      .infer = [](std::span<const TensorType> in) { return in[0]; },
      .cpu =
          [](std::span<const HostInput> in, std::span<const HostOutput> out) {
            for (std::size_t k = 0; k < in[0].values<float>().size(); ++k)
              out[0].values<float>()[k] = 2 * in[0].values<float>()[k];
          }};
  return code;
}

}  // namespace

TEST_CASE("element-wise kernel: values and two derivatives, for broadcast shapes and views") {
  const std::vector<std::pair<Shape, Shape>> shapes{{{5}, {5}}, {{3, 4}, {4}}, {{7, 1}, {1, 9}},
                                                    {{}, {}},   {{0, 3}, {3}}, {{2, 1100}, {2, 1}}};
  for (const auto& [left, right] : shapes) {
    const std::string shape = left.str();
    CAPTURE(shape);
    const Tensor x = drawn(left, 1), b = drawn(right, 2);
    const Tensors found = derivatives(
                      [](const Tensor&s, const Tensor&t) { return test::swish()(s, t); }, x, b),
                  expected = derivatives(composed_swish, x, b);
    for (std::size_t k = 0; k < found.size(); ++k)
      CHECK(largest_difference(found[k], expected[k]) < 1e-11);
  }
  const Tensor x = drawn({6, 8}, 3);
  const Tensor view = transpose(slice(x, 1, 1, 8, 3)), b = flip(drawn({6}, 4), 0);
  CHECK(largest_difference(test::swish()(view, b), composed_swish(view, b)) < 1e-14);
}

TEST_CASE("element-wise kernel: every floating dtype, rounded like the library's operations") {
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    CAPTURE(static_cast<int>(dtype));
    const Tensor x = drawn({1000}, 5, DType::Float32);
    const Tensor y = test::many_functions()(cast(x, dtype));
    CHECK(y.dtype() == dtype);
    const Tensor exact = test::composed_functions(cast(cast(x, dtype), DType::Float64));
    const double tolerance = dtype == DType::Float64   ? 1e-13
                             : dtype == DType::Float32 ? 1e-5
                             : dtype == DType::Float16 ? 1e-2
                                                       : 8e-2;
    CHECK(largest_difference(y, exact) < tolerance);
  }
}

TEST_CASE("element-wise kernel: inputs are promoted; integers alone are refused") {
  const Tensor x = drawn({4}, 1, DType::Float32);
  CHECK(test::blend()(x, cast(x, DType::BFloat16), arange(0, 4)).dtype() == DType::Float32);
  CHECK_THROWS_WITH_AS(test::blend()(arange(0, 4), arange(0, 4), arange(0, 4)),
                       doctest::Contains("blend: takes floating tensors"), DTypeError);
}

TEST_CASE("element-wise kernel: it is fused with its neighbours, reductions included") {
  const Tensor x = drawn({40, 50}, 1, DType::Float32), b = drawn({50}, 2, DType::Float32);
  const Tensor y = (test::swish()(x * 2, b) + test::blend()(x, b, x)).sum(1);
  CHECK(plan({y}).step_count() == 1);
  CHECK(plan({y}).fusion().find("swish") != std::string::npos);
  const Tensor product =
      test::swish()(matmul(x, drawn({50, 30}, 3, DType::Float32)), full({}, 1.5)) * 2;
  CHECK(plan({product}).step_count() == 1);
  CHECK(largest_difference(
            product, composed_swish(matmul(x, drawn({50, 30}, 3, DType::Float32)), full({}, 1.5)) *
                         2) < 1e-5);
}

TEST_CASE("element-wise kernel: the same bits for every number of threads") {
  const Tensor x = drawn({300, 400}, 1, DType::Float32), b = drawn({400}, 2, DType::Float32);
  std::vector<std::vector<float>> found;
  for (const int threads : {1, 2, 5}) {
    set_threads(threads);
    found.push_back(test::swish()(x, b).sum(0).to_vector<float>());
  }
  set_threads(0);
  CHECK(found[0] == found[1]);
  CHECK(found[0] == found[2]);
}

TEST_CASE("element-wise kernel: kernels that are made anew share a plan, other code does not") {
  const Tensor x = drawn({11}, 1, DType::Float32);
  const auto twice = [](const Tensor& t) {
    return ElementwiseKernel("times", TENON_ELEMENTWISE((v), 2 * v))(t);
  };
  const auto thrice = [](const Tensor& t) {
    return ElementwiseKernel("times", TENON_ELEMENTWISE((v), 3 * v))(t);
  };
  CHECK(twice(x).to_vector<float>()[3] == 2 * x.to_vector<float>()[3]);
  const std::int64_t before = runner_stats().programs_planned;
  for (int k = 0; k < 4; ++k) (void)twice(x).to_vector<float>();
  CHECK(runner_stats().programs_planned == before);
  CHECK(thrice(x).to_vector<float>()[3] == 3 * x.to_vector<float>()[3]);
  CHECK(largest_difference(twice(x) + thrice(x), 5 * x) < 1e-6);
}

TEST_CASE("element-wise kernel: in compiled functions of several sizes, loops and branches") {
  const CompiledFunction f = compile([](const Tensors& in) {
    return Tensors{test::swish()(in[0], in[1]).sum(),
                   grad(test::swish()(in[0], in[1]).sum(), in[0])};
  });
  for (const std::int64_t rows : {3, 5, 9, 12, 40, 3}) {
    const Tensor x = drawn({rows, 6}, 5), b = drawn({6}, 6);
    const Tensors out = f({x, b});
    CHECK(out[0].item() == doctest::Approx(composed_swish(x, b).sum().item()));
    CHECK(largest_difference(out[1], grad(composed_swish(x, b).sum(), x)) < 1e-12);
  }
  const Tensor rows = variable(drawn({5, 3}, 7)), b = variable(drawn({3}, 8));
  const auto loop = [&](const auto& g) {
    const auto [last, all] = scan(
        [&](const Tensor& carry, const Tensor& row) {
          const Tensor next = cond(
              gt(sum(row), 0.0), [&](const Tensors& in) { return Tensors{g(in[0] + in[1], b)}; },
              [&](const Tensors& in) { return Tensors{g(in[0] - in[1], b)}; }, {carry, row})[0];
          return std::pair(next, next);
        },
        zeros({3}, DType::Float64), rows);
    const Tensor value = (last * 3 + all.sum(0)).sum();
    return Tensors{value, grad(value, rows), grad(value, b)};
  };
  const Tensors found = loop([](const Tensor&s, const Tensor&t) { return test::swish()(s, t); }),
                expected = loop(composed_swish);
  for (std::size_t k = 0; k < found.size(); ++k)
    CHECK(largest_difference(found[k], expected[k]) < 1e-12);
}

TEST_CASE("element-wise kernel: wrong definitions and calls are refused with the kernel's name") {
  const ElementFormula one = TENON_ELEMENTWISE((x), x + 1);
  CHECK_THROWS_AS(ElementwiseKernel("", one), ValueError);
  CHECK_THROWS_AS(ElementwiseKernel("two\nlines", one), ValueError);
  const auto refused = [](const ElementFormula& formula, const std::string& text) {
    const std::string what = what_of([&] { ElementwiseKernel("odd", formula); });
    INFO(what);
    CHECK(what.find("odd: ") == 0);
    CHECK(what.find(text) != std::string::npos);
  };
  refused(ElementFormula("x", {"x y"}), "'x y'");
  refused(ElementFormula("x", {"T"}), "other than T");
  refused(ElementFormula("x", {}), "0 inputs");
  refused(ElementFormula("x", {"a", "b", "c", "d"}), "4 inputs");
  refused(ElementFormula([](auto x) { return x; }, "x", {"x", "y"}), "the function takes 1");
  refused(ElementFormula("#include <x>\nx;", {"x"}), "'#'");
  refused(ElementFormula("", {"x"}), "empty");
  CHECK_THROWS_WITH_AS(
      ElementwiseKernel("odd", TENON_ELEMENTWISE((x, y), x * y), {ElementwiseKernel("dx", one)}),
      "odd: 1 partial derivatives for 2 inputs", ValueError);
  const ElementwiseKernel plus("plus_one", one);
  CHECK_THROWS_WITH_AS(plus(ones({2}), ones({2})), doctest::Contains("plus_one: it takes 1 inputs"),
                       ValueError);
  CHECK_THROWS_WITH_AS(plus(Tensor()), doctest::Contains("plus_one"), ValueError);
  CHECK_THROWS_WITH_AS(test::swish()(ones({2}), ones({3})), doctest::Contains("swish"), ShapeError);
  const Tensor x = variable(ones({2}));
  CHECK_THROWS_WITH_AS(grad(plus(x).sum(), x), doctest::Contains("plus_one: it has no gradient"),
                       NotSupported);
  const ElementwiseKernel gpu_only("gpu_only", ElementFormula("x * x", {"x"}));
  CHECK_THROWS_WITH_AS(gpu_only(x), doctest::Contains("gpu_only: its formula is for GPUs only"),
                       NotSupported);
}

TEST_CASE("own operation: results, derivatives and a result that nothing reads") {
  for (const Shape& shape : {Shape{5, 7}, Shape{1, 1}, Shape{0, 4}, Shape{3, 100}}) {
    CAPTURE(shape.str());
    const Tensor x = drawn(shape, 1);
    const auto all = [&](const Tensors& out) {
      const Tensor value = (out[0] * drawn(shape, 2)).sum() + square(out[1]).sum();
      const Tensor first = grad(value, x);
      return Tensors{out[0], out[1], first, grad((first * drawn(shape, 3)).sum(), x)};
    };
    const Tensors found = all(test::row_norms().apply({x})),
                  expected = all(test::composed_row_norms(x));
    for (std::size_t k = 0; k < found.size(); ++k)
      CHECK(largest_difference(found[k], expected[k]) < 1e-11);
  }
  const Tensor x = drawn({6, 4}, 4, DType::Float32);
  CHECK(largest_difference(test::row_norms().apply({transpose(x)})[1],
                           test::composed_row_norms(transpose(x))[1]) < 1e-6);
  for (const DType dtype : {DType::Float16, DType::BFloat16})
    CHECK(largest_difference(test::row_norms().apply({cast(x, dtype)})[0],
                             test::composed_row_norms(x)[0]) < 2e-2);
}

TEST_CASE("own operation: in loops, compiled functions and training steps") {
  const Tensor rows = variable(drawn({4, 2, 3}, 5));
  const auto loop = [&](const auto& f) {
    const auto [last, all] = scan(
        [&](const Tensor& carry, const Tensor& row) {
          const Tensor next = f(carry + row);
          return std::pair(next, next);
        },
        ones({2, 3}, DType::Float64), rows);
    const Tensor value = (last * 2 + all.sum(0)).sum();
    return Tensors{value, grad(value, rows)};
  };
  const Tensors found = loop([](const Tensor&x) { return test::row_norms().apply({x})[0]; }),
                expected = loop([](const Tensor&x) { return test::composed_row_norms(x)[0]; });
  CHECK(largest_difference(found[0], expected[0]) < 1e-12);
  CHECK(largest_difference(found[1], expected[1]) < 1e-12);
  const CompiledFunction f =
      compile([](const Tensors& in) { return Tensors{test::row_norms().apply({in[0] * 2})[1]}; });
  for (const std::int64_t count : {3, 5, 9, 12, 40, 3}) {
    const Tensor x = drawn({count, 6}, 6);
    CHECK(largest_difference(f({x})[0], test::composed_row_norms(x * 2)[1]) < 1e-12);
  }
}

TEST_CASE("own operation: without inputs, and refusals") {
  const Operation counter("counter",
                          {.infer =
                               [](std::span<const TensorType>) {
                                 return TensorType{DType::Int32, {4}};
                               },
                           .cpu =
                               [](std::span<const HostInput>, std::span<const HostOutput> out) {
                                 for (int k = 0; k < 4; ++k)
                                   out[0].values<int>()[static_cast<std::size_t>(k)] = k;
                               }});
  CHECK(counter().to_vector<int>() == std::vector<int>{0, 1, 2, 3});
  const Operation twice("twice", doubling());
  CHECK(twice(ones({3})).to_vector<float>() == std::vector<float>{2, 2, 2});
  const Tensor x = variable(ones({3}));
  CHECK_THROWS_WITH_AS(grad(twice(x).sum(), x), doctest::Contains("twice"), NotSupported);
  CHECK_THROWS_WITH_AS(test::row_norms().apply({ones({3})}), "row_norms: takes one matrix",
                       ShapeError);
  CHECK_THROWS_WITH_AS(test::row_norms()(ones({3, 2})), "row_norms: it has 2 results: call apply()",
                       ValueError);
  CHECK_THROWS_AS(twice(Tensor()), ValueError);

  const auto refused = [](OperationCode code, const std::string& text) {
    const std::string what = what_of([&] { Operation("odd", std::move(code)); });
    INFO(what);
    CHECK(what.find("odd: ") == 0);
    CHECK(what.find(text) != std::string::npos);
  };
  OperationCode code = doubling();
  code.infer = {};
  refused(code, "types of its results");
  code = doubling();
  code.cpu = nullptr;
  refused(code, "neither code");
  code = doubling();
  code.cuda = {.source = "void f() {}", .entry = "f"};
  refused(code, "no launch rule");
  code.cuda.entry = "g";
  refused(code, "does not contain the entry g");
  code.cuda.entry = "no name";
  refused(code, "'no name'");
  code = doubling();
  code.cpu = nullptr;
  code.cuda = {
      .source = "f", .entry = "f", .launch = [](const KernelTypes&) { return CudaLaunch{}; }};
  const Operation gpu_only("gpu_only", code);
  CHECK_THROWS_WITH_AS(gpu_only(ones({3})),
                       doctest::Contains("gpu_only: it has no code for the CPU"), NotSupported);
  code = doubling();
  code.infer = [](std::span<const TensorType>) { return std::vector<TensorType>{}; };
  CHECK_THROWS_WITH_AS(Operation("none", code).apply({ones({2})}),
                       doctest::Contains("none: code without results"), ValueError);
}
