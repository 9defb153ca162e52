// Derivatives of functions, vmap() and checkpoint() on a GPU (the emulated one in CI) against the
// CPU. tests/null/test_checkpoint.cpp tests the memory of plans.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/containers.h>
#include <tenon/derivatives.h>
#include <tenon/function.h>
#include <tenon/generator.h>
#include <tenon/grad.h>
#include <tenon/host_call.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/vmap.h>

#include "../base/distance.h"
#include "gpu.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

Tensor draw(const Shape& shape, std::uint64_t seed) {
  return randn(shape, DType::Float32, Generator(seed)).compute();
}

/// f of the tensors on the CPU, and of copies on the GPU, compiled.
void check(const std::function<Tensors(const Tensors&)>& f, const Tensors& here) {
  Tensors there;
  for (const Tensor& x : here) there.push_back(to(x, device("cuda")).compute());
  manual_seed(4);
  const Tensors wanted = compile(f)(here);
  manual_seed(4);
  const Tensors got = compile(f)(there);
  REQUIRE(got.size() == wanted.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    CHECK(test::distance(got[k], cast(wanted[k], DType::Float64)) < 1e-4);
  }
}

Tensor layer(const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)); }

}  // namespace

TEST_CASE("jacobian, hessian and jvp on a GPU") {
  if (!test::has_gpu()) return;
  check(
      [](const Tensors& in) {
        const auto f = [&in](const Tensor& x) { return layer(x, in[1]); };
        const auto loss = [&f](const Tensor& x) { return sum(square(f(x))); };
        return Tensors{jacobian(f, in[0]), jacobian(f, in[0], {.mode = JacobianMode::Forward}),
                       hessian(loss, in[0]), jvp(f, {in[0]}, {in[0]}).products[0]};
      },
      {draw({3, 5}, 1), draw({5, 4}, 2)});
}

TEST_CASE("vmap on a GPU: per-sample gradients of a convolution, dropout, indexing, sorting") {
  if (!test::has_gpu()) return;
  check(
      [](const Tensors& in) {
        const auto loss = [&in](const Tensor& image, const Tensor& weight) {
          const Tensor y = relu(conv2d(unsqueeze(image, 0), weight));
          return sum(square(dropout(max_pool2d(y, {.kernel = 2}), 0.3, true)));
        };
        const auto of_shared =
            vmap([&](const Tensor& image) { return grad(loss(image, in[1]), in[1]); },
                 {.randomness = Randomness::Different});
        const auto of_own =
            vmap([&](const Tensor& image, const Tensor& w) { return grad(loss(image, w), w); },
                 {.randomness = Randomness::Same});
        const auto sorted = vmap([](const Tensor& row) {
          const auto [values, order] = sort(row, 0);
          return std::tuple(values, softmax(row, 0));
        });
        const auto [values, shares] = sorted(in[3]);
        return Tensors{of_shared(in[0]), of_own(in[0], in[2]), values, shares};
      },
      {draw({4, 2, 9, 8}, 3), draw({3, 2, 3, 3}, 4), draw({4, 3, 2, 3, 3}, 5), draw({5, 7}, 6)});
}

TEST_CASE("checkpoint on a GPU: of host code, which runs on the CPU") {
  if (!test::has_gpu()) return;
  static const Function sine(
      "sine",
      [](FunctionContext&, const Tensor& x) {
        return host_call("sine", {x}, {x.dtype(), x.shape()},
                         [](std::span<const HostInput> in, std::span<const HostOutput> out) {
                           for (std::size_t k = 0; k < in[0].values<float>().size(); ++k)
                             out[0].values<float>()[k] = std::sin(in[0].values<float>()[k]);
                         });
      },
      [](const FunctionContext& context, const Tensor& g) {
        return cos(context.arguments()[0]) * g;
      });
  check(
      [](const Tensors& in) {
        const Tensor y =
            checkpoint([&in](const Tensor& x) { return sine(layer(x, in[1])); }, in[0]);
        return Tensors{y, grad(sum(square(y)), in[1])};
      },
      {draw({3, 5}, 9), draw({5, 4}, 10)});
}

TEST_CASE("checkpoint on a GPU: the numbers stay") {
  if (!test::has_gpu()) return;
  const auto step = [](const Tensors& in, bool recomputes) {
    Tensor x = in[0];
    for (int k = 0; k < 4; ++k) {
      const auto block = [&in](const Tensor& v) {
        return v + layer(dropout(layer(v, in[1]), 0.2, true), in[1]);
      };
      x = recomputes ? checkpoint(block, x) : block(x);
    }
    const Tensor loss = mean(square(x));
    return Tensors{loss, grad(loss, in[1])};
  };
  const auto kept = [&](const Tensors& in) { return step(in, false); };
  const auto recomputed = [&](const Tensors& in) { return step(in, true); };
  const Tensors here{draw({64, 32}, 7), draw({32, 32}, 8) * 0.1};
  check(recomputed, here);
  Tensors there;
  for (const Tensor& x : here) there.push_back(to(x, device("cuda")).compute());
  const CompiledFunction before = compile(kept), after = compile(recomputed);
  manual_seed(5);
  const Tensors wanted = before(there);
  manual_seed(5);
  const Tensors got = after(there);
  for (std::size_t k = 0; k < got.size(); ++k)
    CHECK(test::distance(got[k], cast(wanted[k], DType::Float64)) < 1e-5);
}
