// compile() of functions with typed arguments and results.
#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

namespace {
Tensor number(double value) { return scalar(value); }
Tensor twice(const Tensor& x) { return 2 * x; }

template <class F>
concept Compiles = requires(F f) {
  compile(f);
};
struct NoFunction {};
// A requirement can ask. Other functions named compile then take what this one cannot.
static_assert(Compiles<Tensor (*)(const Tensor&)> && !Compiles<NoFunction> && !Compiles<int>);
}  // namespace

TEST_CASE("typed compile: tensors in, a tensor, a tuple, a pair or an array out") {
  const auto product = compile([](Tensor a, const Tensor& b) { return a * b; });
  CHECK(product(number(3), number(4)).item() == 12);
  const auto both = compile([](Tensor s, Tensor a) { return std::tuple(s * a, s + a); });
  for (const std::int64_t n : {1, 4, 7}) {
    const auto [times, plus] = both(full({n}, 3), full({n}, 4));
    CHECK(times.sum().item() == 12.0 * static_cast<double>(n));
    CHECK(plus.sum().item() == 7.0 * static_cast<double>(n));
  }
  const auto pair = compile([](const Tensor& x) { return std::pair(x + 1, std::array{x, x * x}); });
  const auto [next, powers] = pair(number(5));
  CHECK(next.item() == 6);
  CHECK(powers[1].item() == 25);
  CHECK(compile(twice)(number(8)).item() == 16);
  const auto none = compile([] { return ones({3}); });
  CHECK(none().sum().item() == 3);
}

TEST_CASE("typed compile: vectors of any length, optionals, nested") {
  using Layers = std::vector<std::pair<Tensor, std::optional<Tensor>>>;
  int traced = 0;
  const auto f = compile([&traced](const Layers& layers, std::optional<Tensor> shift) {
    ++traced;
    std::vector<std::optional<Tensor>> each;
    Tensor total = number(0);
    for (const auto& [weight, bias] : layers) {
      total = total + weight.sum();
      if (bias) total = total + bias->sum();
      each.push_back(bias ? std::optional(*bias * 2) : std::nullopt);
    }
    if (shift) total = total + *shift;
    return std::tuple(total, each);
  });
  const auto check = [&](const Layers& layers, const std::optional<Tensor>& shift,
                         double expected) {
    const auto [total, each] = f(layers, shift);
    CHECK(total.item() == expected);
    REQUIRE(each.size() == layers.size());
    for (std::size_t k = 0; k < each.size(); ++k) {
      CHECK(each[k].has_value() == layers[k].second.has_value());
      if (each[k]) CHECK(each[k]->item() == 2 * layers[k].second->item());
    }
  };
  for (int round = 0; round < 2; ++round) {
    check({}, std::nullopt, 0);
    check({}, number(4), 4);
    check({{number(1), number(2)}}, std::nullopt, 3);
    check({{number(1), std::nullopt}, {number(5), number(7)}}, number(1), 14);
    check({{number(1), number(7)}, {number(5), std::nullopt}}, number(1), 14);
    CHECK(traced == 5);
  }
}

TEST_CASE("typed compile: the number of results may depend on the shape") {
  const auto f =
      compile([](const Tensor& x) { return std::pair(split(x, 2), std::vector<Tensor>{x.sum()}); });
  for (const std::int64_t n : {6, 3, 8, 6}) {
    const auto [parts, sums] = f(ones({n}));
    CHECK(static_cast<std::int64_t>(parts.size()) == (n + 1) / 2);
    REQUIRE(sums.size() == 1);
    CHECK(sums[0].item() == static_cast<double>(n));
  }
}

TEST_CASE("typed compile: gradients, guards, calls inside compiled functions") {
  double scale = 2;
  const auto loss = compile([&](const Tensor& x) { return (x * x * scale).sum(); },
                            [&] { return std::vector<double>{scale}; });
  CHECK(loss(full({2}, 3)).item() == 36);
  scale = 3;
  CHECK(loss(full({2}, 3)).item() == 54);
  int outer_traces = 0;
  const auto lists = compile([](const std::vector<Tensor>& all, const Tensor& factor) {
    return std::pair(std::vector<Tensor>{all[0] * factor}, factor);
  });
  const auto outer = compile([&](const Tensor& x) {
    ++outer_traces;
    const auto [values, factor] = lists({x, x}, x);
    return std::tuple(grad(values[0].sum(), x), grad(loss(x), x), factor);
  });
  for (int k = 0; k < 3; ++k) {
    const auto [g, h, x] = outer(full({2}, 5));
    CHECK(g.sum().item() == 20);
    CHECK(h.sum().item() == 60);
    CHECK(x.sum().item() == 10);
  }
  CHECK(outer_traces == 1);
}

TEST_CASE("typed compile: a list of tensors to a list of tensors is a CompiledFunction") {
  const CompiledFunction f =
      compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[1]}; });
  CHECK(f({number(1), number(2)})[0].item() == 3);
  const auto typed = compile([](const std::vector<Tensor>& in) { return in[0] + in[1]; });
  CHECK(typed({number(1), number(2)}).item() == 3);
  CHECK_THROWS_AS(typed({number(1), Tensor()}), ValueError);
}

TEST_CASE("typed compile: the context of compile() is kept for lists of every length") {
  set_precision(Precision::Bf16);
  const auto f = compile([](const std::vector<Tensor>& in) { return matmul(in[0], in[0]); });
  set_precision(Precision::Fp32);
  const Tensor x = randn({64, 64}, DType::Float32, Generator(1)).compute();
  const Tensor rounded = cast(cast(x, DType::BFloat16), DType::Float32);
  CHECK(allclose(f({x}), matmul(rounded, rounded), 1e-5, 1e-5));
  CHECK(allclose(f({x, x}), matmul(rounded, rounded), 1e-5, 1e-5));
  CHECK_FALSE(allclose(f({x, x}), matmul(x, x), 1e-5, 1e-5));
}
