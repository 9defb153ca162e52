// jvp() of every case against its gradients, and checkpoint() of every case against the case
// itself.
#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/derivatives.h>
#include <tenon/error.h>
#include <tenon/function.h>
#include <tenon/grad.h>
#include <tenon/ops.h>

#include "cases/modes.h"

using namespace tenon;

namespace cases {
namespace {

/// The case as a function of its floating inputs.
TensorFunction of_floating(const Case& c, const Tensors& inputs) {
  return [&c, inputs](const Tensors& at) {
    Tensors all = inputs;
    std::size_t k = 0;
    for (Tensor& t : all)
      if (is_floating(t.dtype())) t = at[k++];
    return Tensors{c.build(all)};
  };
}

/// u · J t, in forward and in reverse mode.
void check_products(const Case& c) {
  const Tensors inputs = make_inputs(c, DType::Float64), at = floating_only(inputs),
                directions = floating_only(make_inputs(c, DType::Float64, 300));
  const TensorFunction f = of_floating(c, inputs);
  const Tensor derivative = jvp(f, at, directions).products[0];
  const Tensors gradients =
      vjp([&](const Tensors& x) { return weighted(f(x)[0], 5); }, at).products;
  Tensor reverse = zeros({}, DType::Float64);
  for (std::size_t k = 0; k < at.size(); ++k) reverse = reverse + sum(gradients[k] * directions[k]);
  const Tensors both{weighted(derivative, 5), reverse};
  compute(both);
  compare(c, {numbers(both[0])}, {numbers(both[1])}, 1e-9);
}

Values values_of(const Case& c, const TensorFunction& f, const Tensors& at) {
  Tensors wanted = f(at);
  if (c.grad && is_floating(wanted[0].dtype()))
    for (const Tensor& g : grad(weighted(wanted[0], 5), at)) wanted.push_back(g);
  compute(wanted);
  Values out;
  for (const Tensor& t : wanted) out.push_back(numbers(t));
  return out;
}

}  // namespace

TEST_CASE("cases: forward mode against reverse mode") {
  each_case([](const Case& c) {
    set_engine("reference");
    if (c.grad && c.grad2) check_products(c);
  });
}

TEST_CASE("cases: checkpoint changes no bits") {
  each_case([](const Case& c) {
    const Tensors inputs = make_inputs(c, DType::Float32), at = floating_only(inputs);
    const TensorFunction f = of_floating(c, inputs);
    const TensorFunction recomputed = [&f](const Tensors& x) { return checkpoint(f, x); };
    if (c.name == "assign")  // its value is an assignment
      CHECK_THROWS_AS(values_of(c, recomputed, at), NotSupported);
    else
      compare(c, values_of(c, recomputed, at), values_of(c, f, at), 1e-300);
  });
}

}  // namespace cases
