// Cases of sorting and ops built on it: values and indices of one op with several results.
#include "cases/cases.h"

using namespace tenon;

namespace cases {
namespace {

/// Both results in one tensor, values weighted by their indices.
Tensor both(const ValuesAndIndices& r) {
  return r.values * (cast(r.indices, r.values.dtype()) + 1.0);
}

void add(Cases& cases, const std::string& name, const Shape& shape,
         const std::function<Tensor(const Tensor&)>& f) {
  cases.push_back({name, {{shape}}, [f](const Tensors& x) { return f(x[0]); }});
}

}  // namespace

void add_order(Cases& cases) {
  add(cases, "sort", {5, 7}, [](const Tensor& x) { return both(sort(x)); });
  add(cases, "sort falling, first axis", {6, 3, 2},
      [](const Tensor& x) { return both(sort(x * 2, 0, true)); });
  add(cases, "sort of one", {4, 1}, [](const Tensor& x) { return both(sort(x)); });
  add(cases, "sort of nothing", {0, 3}, [](const Tensor& x) { return both(sort(x)); });
  add(cases, "sort of a number", {}, [](const Tensor& x) { return both(sort(x)); });
  add(cases, "sort of a view", {7, 5},
      [](const Tensor& x) { return both(sort(slice(transpose(x), 1, 6, 0, -2))); });
  add(cases, "sorted squares", {3, 33}, [](const Tensor& x) { return square(sort(x).values) * x; });
  add(cases, "argsort", {4, 9},
      [](const Tensor& x) { return gather(exp(x), 1, argsort(x, 1, true)) * x; });
  add(cases, "topk", {3, 17}, [](const Tensor& x) { return both(topk(x, 4)); });
  add(cases, "topk smallest, middle axis", {2, 9, 3},
      [](const Tensor& x) { return both(topk(exp(x), 3, 1, false)); });
  add(cases, "topk few of many", {3, 200}, [](const Tensor& x) { return both(topk(x, 7)); });
  add(cases, "topk of none", {3, 4}, [](const Tensor& x) { return both(topk(x, 0)); });
  add(cases, "max with indices", {4, 6}, [](const Tensor& x) { return both(max(x, 1)); });
  add(cases, "min with indices", {4, 6, 2}, [](const Tensor& x) { return both(min(x, 0, true)); });
  cases.push_back(
      {"sort of whole numbers", {{{40}}, whole({40}, -5, 5, DType::Int32)}, [](const Tensors& x) {
         const ValuesAndIndices r = sort(x[1], 0, true);
         return gather(x[0], 0, r.indices) * cast(r.values, x[0].dtype());
       }});
}

}  // namespace cases
