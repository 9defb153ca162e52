// When the runner plans and when it does not.
#include <doctest/doctest.h>

#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <vector>

using namespace tenon;

namespace {

/// Programs planned while f runs.
template <class F>
std::int64_t planned_by(F&& f) {
  const std::int64_t before = runner_stats().programs_planned;
  f();
  return runner_stats().programs_planned - before;
}

Tensor leaf(const Shape& shape, float value) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), value), shape);
}

}  // namespace

TEST_CASE("cache: the same graph with other data reuses its program") {
  const auto compute = [](float value) { return sum(exp(leaf({13, 7}, value)) * 2.0).item(); };
  const double first = compute(0);
  CHECK(planned_by([&] { CHECK(compute(1) > first); }) == 0);
}

TEST_CASE("cache: another shape, dtype, attribute or structure is another program") {
  const auto compute = [](const Shape& shape, double factor) {
    return (leaf(shape, 1) * factor).eval();
  };
  compute({5, 9}, 17);
  CHECK(planned_by([&] { compute({5, 9}, 17); }) == 0);
  CHECK(planned_by([&] { compute({9, 5}, 17); }) == 1);
  CHECK(planned_by([&] { compute({5, 9}, 18); }) == 1);
  const Tensor a = leaf({5, 9}, 1), b = leaf({5, 9}, 2);
  CHECK(planned_by([&] { (a - b).eval(); }) == 1);
  CHECK(planned_by([&] { (b - a).eval(); }) == 0);  // the same form with other data
  CHECK(planned_by([&] { (a - a).eval(); }) == 1);
  CHECK(planned_by([&] { exp(transpose(a)).eval(); }) == 1);
}

TEST_CASE("cache: a changed setting needs a new plan; changing back reuses the old one") {
  const Tensor a = leaf({6, 6}, 1);
  matmul(a, a).eval();
  set_precision(Precision::Bf16);
  CHECK(planned_by([&] { matmul(a, a).eval(); }) == 1);
  set_precision(Precision::Fp32);
  matmul(a, a).eval();
  CHECK(planned_by([&] { matmul(a, a).eval(); }) == 0);
}

TEST_CASE("cache: a changed learning rate does not change the program") {
  const Tensor w = variable(full({4, 3}, 0.5), "w"), x = leaf({2, 4}, 1);
  optim::Adam adam(std::vector<Tensor>{w}, {.lr = 0.1});
  const auto step = [&] { return adam.step(sum(square(matmul(x, w)))); };
  const double first = step();
  CHECK(planned_by([&] {
          for (int k = 1; k < 4; ++k) adam.set_lr(0.1 / k), step();
        }) == 0);
  CHECK(step() < first);
  adam.set_lr(0);
  const std::vector<float> before = w.to_vector<float>();
  step();
  CHECK(w.to_vector<float>() == before);
}

TEST_CASE("cache: a compiled function is traced once for each combination of shapes") {
  int calls = 0;
  CompiledFunction f = compile([&](const std::vector<Tensor>& in) {
    ++calls;
    return std::vector<Tensor>{sum(in[0] * 2.0)};
  });
  for (int round = 0; round < 3; ++round)
    for (const std::int64_t size : {4, 7})
      CHECK(f({leaf({size}, static_cast<float>(round))})[0].item() ==
            2.0 * round * static_cast<double>(size));
  CHECK(calls == 2);
  CHECK(f.traced() == 2);
  CHECK(planned_by([&] { f({leaf({7}, 1)}); }) == 0);
}

TEST_CASE("cache: random draws differ from call to call without a new plan") {
  CompiledFunction f = compile(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{rand({100}) + in[0]}; });
  const Tensor zero = leaf({}, 0);
  manual_seed(3);
  const std::vector<float> a = f({zero})[0].to_vector<float>(), b = f({zero})[0].to_vector<float>();
  CHECK(a != b);
  manual_seed(3);
  CHECK(f({zero})[0].to_vector<float>() == a);
  CHECK(f.traced() == 1);
}
