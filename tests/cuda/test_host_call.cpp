// Host code and functions on a GPU (the emulated one in CI): the values and gradients of the CPU.
#include <cmath>
#include <string>
#include <vector>

#include <tenon/tenon.h>

#include "../run/loop_cases.h"
#include "gpu.h"

using namespace tenon;
using test::distance;
using test::draw;
using test::Tensors;

namespace {

Tensor host_map(const char* name, const Tensor& x, float (*f)(float)) {
  return host_call(name, {x}, {x.dtype(), x.shape()},
                   [f](std::span<const HostInput> in, std::span<const HostOutput> out) {
                     const auto from = in[0].values<float>();
                     for (std::size_t k = 0; k < from.size(); ++k)
                       out[0].values<float>()[k] = f(from[k]);
                   });
}

Tensor host_sin(const Tensor& x) {
  static const Function function(
      "host_sin",
      [](FunctionContext&, const Tensors& in) {
        return Tensors{host_map("host_sin", in[0], [](float v) { return std::sin(v); })};
      },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{
            host_map("host_cos", context.arguments()[0], [](float v) { return std::cos(v); }) *
            g[0]};
      });
  return function(x);
}

}  // namespace

TEST_CASE("GPU host code: values and gradients are those of the CPU") {
  if (!test::has_gpu()) return;
  const Device gpu = device("cuda");
  const Tensor x = draw({5, 3}, 1, DType::Float32), there = to(x, gpu).compute();
  const Tensor y = host_sin(transpose(there) * 2) + 1;
  CHECK(y.device() == gpu);
  CHECK(distance(y, sin(transpose(x) * 2) + 1) < 1e-6);
  const Tensor w = variable(there);
  const Tensor g = grad((host_sin(w * w) * w).sum(), w);
  CHECK(g.device() == gpu);
  CHECK(distance(g, sin(x * x) + 2 * x * x * cos(x * x)) < 1e-6);
}

TEST_CASE("GPU host code: compiled steps that assign, replayed with other code") {
  if (!test::has_gpu()) return;
  const auto course = [](Device device, float scale) {
    const Tensor w = variable(to(draw({4}, 2, DType::Float32), device));
    const CompiledFunction step = compile([&](const Tensors& in) {
      const Tensor scaled =
          host_call("scale", {in[0] * w}, {DType::Float32, {6, 4}},
                    [scale](std::span<const HostInput> from, std::span<const HostOutput> out) {
                      for (std::size_t k = 0; k < 24; ++k)
                        out[0].values<float>()[k] = scale * from[0].values<float>()[k];
                    });
      const Tensor loss = square(host_sin(w) - detach(scaled)).sum();
      return Tensors{loss, assign(w, w - 0.01 * grad(loss, w))};
    });
    std::vector<double> losses;
    for (std::uint64_t k = 0; k < 3; ++k)
      losses.push_back(step({to(draw({6, 4}, 3 + k, DType::Float32), device)})[0].item());
    return losses;
  };
  for (const float scale : {0.5F, 2.0F}) {
    const std::vector<double> ours = course(device("cuda"), scale), theirs = course({}, scale);
    for (std::size_t k = 0; k < ours.size(); ++k)
      CHECK(ours[k] == doctest::Approx(theirs[k]).epsilon(1e-5));
  }
}

TEST_CASE("GPU host code: an exception names the operation, and later work is right") {
  if (!test::has_gpu()) return;
  const Tensor x = to(ones({4}), device("cuda")).compute();
  const Tensor fails = host_call(
      "risky", {x * 2}, {DType::Float32, {4}},
      [](std::span<const HostInput>, std::span<const HostOutput>) { throw ValueError("refused"); });
  CHECK_THROWS_WITH_AS((fails + 1).compute(), "risky: refused", ValueError);
  CHECK((host_sin(x) + 1).sum().item() == doctest::Approx(4 * (1 + std::sin(1.0))));
}

TEST_CASE("GPU host code: refused in the body of a loop; other functions run there") {
  if (!test::has_gpu()) return;
  const Device gpu = device("cuda");
  const Tensor x = draw({3, 4}, 5, DType::Float32), there = to(x, gpu).compute();
  const auto loop = [](const std::function<Tensor(const Tensor&)>& f, const Tensor& rows) {
    return scan(
        [&](const Tensor& carry, const Tensor& row) {
          const Tensor next = f(carry + row);
          return std::pair(next, next);
        },
        zeros({4}), rows);
  };
  CHECK_THROWS_AS(loop(host_sin, there), NotSupported);
  const Function cube(
      "cube", [](FunctionContext&, const Tensors& in) { return Tensors{in[0] * in[0] * in[0]}; },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{3 * square(context.arguments()[0]) * g[0]};
      });
  const auto own = [&](const Tensor& t) { return cube(t * 0.5); };
  const auto [last, all] = loop(own, there);
  const auto [expected, rows] = loop(own, x);
  CHECK(distance(last, expected) < 1e-6);
  CHECK(distance(grad(all.sum(), there), grad(rows.sum(), x)) < 1e-6);
}
