// Cases of reductions and softmax: axes in front, in the middle, at the end, all, empty and of
// size 1.
#include "cases/cases.h"

using namespace tenon;

namespace cases {

void add_reductions(Cases& cases) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&, const Axes&, bool);
    double low;
    bool empty;  // takes an empty reduction
  };
  const Row rows[] = {
      {"sum", sum, -2, true},
      {"prod", prod, -1.5, true},
      {"mean", mean, -2, false},
      {"var", [](const Tensor& x, const Axes& a, bool k) { return var(x, a, k); }, -2, false},
      {"amax", amax, -2, false},
      {"amin", amin, -2, false},
      {"logsumexp", logsumexp, -2, false},
      {"norm", norm, -2, true}};
  const std::pair<Shape, Ints> shapes[] = {
      {{3, 5}, {}},        {{3, 5}, {0}},         {{3, 5}, {1}}, {{2, 3, 4}, {1}},
      {{2, 3, 4}, {0, 2}}, {{2, 1, 3}, {1}},      {{37}, {0}},   {{2, 3, 2, 2}, {0, 2, 3}},
      {{4, 19}, {-1}},     {{2, 2, 3, 2}, {1, 2}}};
  for (const Row& r : rows) {
    bool keep = false;
    for (const auto& [shape, axes] : shapes) {
      if (std::string(r.name) == "var" && shape == Shape{2, 1, 3}) continue;  // 0 / 0
      keep = !keep;
      std::string name = std::string(r.name) + shape.str() + " over";
      for (const std::int64_t a : axes) name += " " + std::to_string(a);
      cases.push_back({name,
                       {{shape, r.low, 2}},
                       [f = r.f, a = axes, keep](const Tensors& x) { return f(x[0], a, keep); },
                       true,
                       true,
                       std::string(r.name) != "var"});
    }
    if (r.empty)
      cases.push_back({std::string(r.name) + " of nothing",
                       {{{3, 0}}},
                       [f = r.f](const Tensors& x) { return f(x[0], {1}, false); }});
  }
  cases.push_back({"var biased",
                   {{{4, 3}}},
                   [](const Tensors& x) { return var(x[0], {0}, false, 0); },
                   true,
                   true,
                   false});
  cases.push_back({"sum long",
                   {{{3, 5000}}},
                   [](const Tensors& x) { return sum(x[0] * x[0], {1}); },
                   false,
                   false});
  cases.push_back({"sum columns",
                   {{{700, 5}}},
                   [](const Tensors& x) { return sum(x[0] * 2, {0}); },
                   false,
                   false});
  cases.push_back({"prod with zeros", {whole({4, 3}, -1, 2), {{4, 3}}}, [](const Tensors& x) {
                     return prod(x[1] * x[0], {1});
                   }});
  cases.push_back({"amax ties",
                   {whole({6, 5}, 0, 3), {{6, 1}}},
                   [](const Tensors& x) { return amax(x[0] * exp(x[1]), {1}); },
                   false,
                   false});
  cases.push_back({"argmax",
                   {{{4, 7}}, {{5, 4, 3}}},
                   [](const Tensors& x) {
                     const DType t = x[0].dtype();
                     return cast(argmax(x[0], 1), t) +
                            sum(cast(argmin(x[1], 1), t)) * mean(cast(argmax(x[0], 0, true), t));
                   },
                   false,
                   false});
  cases.push_back({"argmax across",
                   {{{50, 35}}, whole({41, 18}, -9, 9, DType::Int64)},
                   [](const Tensors& x) {
                     const DType t = x[0].dtype();
                     return sum(cast(argmax(x[0], 0), t)) + cast(argmin(x[1], 0), t) +
                            cast(amax(x[1] * 2, {0}), t);
                   },
                   false,
                   false});
  cases.push_back({"all any",
                   {{{4, 7}}},
                   [](const Tensors& x) {
                     const DType t = x[0].dtype();
                     return cast(all(gt(x[0], -1.5), {1}), t) +
                            cast(any(gt(x[0], 1.5), {1}), t) * 2;
                   },
                   false,
                   false,
                   false});
  const std::pair<Shape, int> rows2[] = {{{3, 7}, -1},  {{3, 7}, 0},   {{2, 5, 3}, 1},
                                         {{6}, 0},      {{4, 1}, 1},   {{0, 3}, 1},
                                         {{2, 133}, 1}, {{37, 21}, 0}, {{2, 19, 26}, 1}};
  for (const auto& [shape, axis] : rows2) {
    const auto name = shape.str() + std::to_string(axis);
    cases.push_back({"softmax" + name, {{shape, -4, 4}}, [a = axis](const Tensors& x) {
                       return softmax(x[0], a);
                     }});
    cases.push_back({"log_softmax" + name, {{shape, -4, 4}}, [a = axis](const Tensors& x) {
                       return log_softmax(x[0], a);
                     }});
  }
}

}  // namespace cases
