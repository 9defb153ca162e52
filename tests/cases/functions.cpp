// Cases of host code and of functions with a gradient of their own.
#include <cmath>

#include <tenon/function.h>
#include <tenon/host_call.h>

#include "cases/cases.h"
#include "run/own_kernels.h"

using namespace tenon;

namespace cases {
namespace {

template <class T>
void map_as(const HostInput& in, const HostOutput& out, double (*f)(double)) {
  const auto from = in.values<T>();
  const auto to = out.values<T>();
  for (std::size_t k = 0; k < from.size(); ++k)
    to[k] = static_cast<T>(static_cast<float>(f(static_cast<double>(static_cast<float>(from[k])))));
}
template <>
void map_as<double>(const HostInput& in, const HostOutput& out, double (*f)(double)) {
  for (std::size_t k = 0; k < in.values<double>().size(); ++k)
    out.values<double>()[k] = f(in.values<double>()[k]);
}

Tensor host_map(const Tensor& x, double (*f)(double)) {
  return host_call("map", {x}, {x.dtype(), x.shape()},
                   [f](std::span<const HostInput> in, std::span<const HostOutput> out) {
                     switch (in[0].dtype()) {
                       case DType::Float16:
                         return map_as<float16>(in[0], out[0], f);
                       case DType::BFloat16:
                         return map_as<bfloat16>(in[0], out[0], f);
                       case DType::Float32:
                         return map_as<float>(in[0], out[0], f);
                       default:
                         return map_as<double>(in[0], out[0], f);
                     }
                   });
}

// sin and cos in host code, each the other's slope.
Tensor host_sin(const Tensor& x);
Tensor host_cos(const Tensor& x) {
  static const Function function(
      "cosine", [](FunctionContext&, const Tensor& in) { return host_map(in, std::cos); },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{-host_sin(context.arguments()[0]) * g[0]};
      });
  return function(x);
}
Tensor host_sin(const Tensor& x) {
  static const Function function(
      "sine", [](FunctionContext&, const Tensor& in) { return host_map(in, std::sin); },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{host_cos(context.arguments()[0]) * g[0]};
      });
  return function(x);
}

// a exp(b) and a + b; the gradient reads a saved tensor, an argument and a result.
Tensor own_pair(const Tensor& a, const Tensor& b) {
  static const Function function(
      "pair",
      [](FunctionContext& context, const Tensors& in) {
        const Tensor e = exp(in[1]);
        context.save({e});
        return Tensors{in[0] * e, in[0] + in[1]};
      },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{g[0] * context.saved()[0] + g[1], g[0] * context.results()[0] + g[1]};
      });
  const Tensors out = function.apply({a, b});
  return out[0] * out[1];
}

void add(Cases& cases, const std::string& name, const std::vector<In>& inputs,
         const std::function<Tensor(const Tensors&)>& f) {
  cases.push_back({name, inputs, f});
}

}  // namespace

void add_functions(Cases& cases) {
  add(cases, "host code", {{{5, 7}}}, [](const Tensors& x) { return host_sin(x[0]); });
  add(cases, "host code of a view", {{{4, 6}}},
      [](const Tensors& x) { return host_sin(transpose(x[0])) * 2; });
  add(cases, "host code of nothing", {{{0, 3}}}, [](const Tensors& x) { return host_sin(x[0]); });
  add(cases, "host code between operations", {{{3, 1}}, {{4}}},
      [](const Tensors& x) { return square(host_sin(x[0] * x[1])) + x[0]; });
  add(cases, "own element-wise kernel", {{{3, 5}}, {{5}}},
      [](const Tensors& x) { return tenon::test::swish()(x[0], x[1]) * x[1]; });
  add(cases, "own element-wise kernel of views", {{{4, 6}}, {{6, 1}}},
      [](const Tensors& x) { return tenon::test::swish()(transpose(x[0]) * 0.5, x[1]); });
  add(cases, "own element-wise kernel of nothing", {{{0, 3}}, {{3}}},
      [](const Tensors& x) { return tenon::test::swish()(x[0], x[1]); });
  add(cases, "own element-wise kernel of rows", {{{4, 33}}},
      [](const Tensors& x) { return tenon::test::swish()(x[0], mean(x[0], 1, true)).sum(1); });
  add(cases, "own operation on rows", {{{3, 7}}}, [](const Tensors& x) {
    const Tensors out = tenon::test::row_norms().apply({x[0] + 3});
    return out[0] * out[1] + out[0];
  });
  add(cases, "own gradient", {{{3, 5}}, {{3, 5}}},
      [](const Tensors& x) { return own_pair(x[0], x[1]); });
  add(cases, "own gradient of a sum", {{{4, 3}}, {{3}}},
      [](const Tensors& x) { return own_pair(sum(x[0], 0), exp(x[1] * 0.5)) * x[1]; });
}

}  // namespace cases
