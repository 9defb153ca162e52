// Cases of views and movement.
#include <limits>

#include "cases/cases.h"

using namespace tenon;

namespace cases {
namespace {
constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

using Build = std::function<Tensor(const Tensors&)>;
// A view alone, and between element-wise ops that may fuse with it.
void add_view(Cases& cases, const std::string& name, const Shape& shape,
              const std::function<Tensor(const Tensor&)>& f) {
  cases.push_back({name, {{shape}}, [f](const Tensors& x) { return f(x[0]); }});
  cases.push_back(
      {name + " inside", {{shape}}, [f](const Tensors& x) { return exp(f(x[0] * 2)) + f(x[0]); }});
}
}  // namespace

void add_views(Cases& cases) {
  add_view(cases, "reshape", {4, 6}, [](const Tensor& x) { return reshape(x, {3, -1, 2}); });
  add_view(cases, "reshape empty", {0, 6}, [](const Tensor& x) { return reshape(x, {3, 0}); });
  add_view(cases, "flatten", {2, 3, 4}, [](const Tensor& x) { return flatten(x, 1); });
  add_view(cases, "transpose", {5, 3}, [](const Tensor& x) { return transpose(x); });
  add_view(cases, "permute", {2, 3, 4, 5}, [](const Tensor& x) {
    return permute(x, {2, 0, 3, 1});
  });
  add_view(cases, "permute reshape", {2, 3, 4}, [](const Tensor& x) {
    return reshape(permute(x, {2, 0, 1}), {8, 3});
  });
  add_view(cases, "expand", {3, 1}, [](const Tensor& x) { return expand(x, {2, 3, 4}); });
  add_view(cases, "expand scalar", {}, [](const Tensor& x) { return broadcast_to(x, {3, 5}); });
  add_view(cases, "expand to nothing", {1, 3}, [](const Tensor& x) {
    return broadcast_to(x, {0, 3});
  });
  add_view(cases, "squeeze unsqueeze", {3, 1, 2},
           [](const Tensor& x) { return unsqueeze(squeeze(x, 1), 0); });
  add_view(cases, "slice", {7, 3}, [](const Tensor& x) { return slice(x, 0, 2, 6); });
  add_view(cases, "slice step", {7, 10},
           [](const Tensor& x) { return slice(slice(x, 0, 1, 7, 2), 1, 0, kHighest, 3); });
  add_view(cases, "slice backwards", {10, 2},
           [](const Tensor& x) { return slice(x, 0, 8, 1, -3); });
  add_view(cases, "slice one", {5}, [](const Tensor& x) { return slice(x, 0, 3, 4, -1 + 5); });
  add_view(cases, "slice nothing", {5}, [](const Tensor& x) { return slice(x, 0, 3, 3); });
  add_view(cases, "slice rank 8", {2, 1, 3, 1, 2, 1, 1, 4},
           [](const Tensor& x) { return slice(slice(x, -1, 3, kLowest, -2), 2, 0, 3, 2); });
  add_view(cases, "flip", {3, 4, 2}, [](const Tensor& x) { return flip(x, {0, 2}); });
  add_view(cases, "select", {3, 4, 2}, [](const Tensor& x) { return select(x, 1, -2); });
  add_view(cases, "slice of transpose", {6, 8},
           [](const Tensor& x) { return slice(transpose(x), 0, 7, 0, -2); });
  add_view(cases, "transposed sum", {6, 8}, [](const Tensor& x) { return sum(transpose(x), {1}); });
  cases.push_back({"split", {{{7, 2}}}, [](const Tensors& x) {
                     const std::vector<Tensor> p = split(x[0], 3);
                     return p[0] * p[1] + p[2];
                   }});
  cases.push_back({"split by sizes", {{{3, 7}}}, [](const Tensors& x) {
                     const std::vector<Tensor> p = split(x[0], {2, 0, 4, 1}, 1);
                     return sum(exp(p[0])) + sum(p[2] * p[2]) + sum(p[3]) + sum(p[1]);
                   }});
  cases.push_back({"chunk with a gap", {{{2, 11}}}, [](const Tensors& x) {
                     const std::vector<Tensor> p = chunk(x[0], 4, 1);
                     return p[0] * p[2] + exp(narrow(x[0], -1, -3, 3));
                   }});
  cases.push_back({"unbind", {{{4, 2, 3}}}, [](const Tensors& x) {
                     const std::vector<Tensor> p = unbind(x[0] * 2, 0);
                     return p[3] * p[0] + exp(p[1]);
                   }});
  cases.push_back({"windows that overlap", {{{9, 2}}}, [](const Tensors& x) {
                     Tensor total = zeros({3, 2}, x[0].dtype());
                     for (std::int64_t k = 0; k < 7; ++k)
                       total = total + exp(slice(x[0], 0, k, k + 3)) * static_cast<double>(k + 1);
                     return total;
                   }});
  cases.push_back({"strided slices of one tensor", {{{8, 3}}}, [](const Tensors& x) {
                     return slice(x[0], 0, 0, 8, 2) * slice(x[0], 0, 1, 8, 2) +
                            exp(slice(x[0], 0, 7, 3, -1));
                   }});
}

void add_movement(Cases& cases) {
  cases.push_back({"concat", {{{2, 3}}, {{4, 3}}, {{0, 3}}}, [](const Tensors& x) {
                     return concat({x[0], x[1] * 2, x[2], x[0]}, 0);
                   }});
  cases.push_back({"concat last", {{{2, 3}}, {{2, 1}}}, [](const Tensors& x) {
                     return concat({exp(x[0]), x[1], x[0]}, -1) * 3;
                   }});
  cases.push_back({"concat middle", {{{2, 3, 5}}, {{2, 2, 5}}}, [](const Tensors& x) {
                     return concat({x[0], x[1]}, 1);
                   }});
  cases.push_back({"concat many",
                   {{{1, 2}}},
                   [](const Tensors& x) { return concat(std::vector<Tensor>(300, x[0]), 0); },
                   true,
                   false});
  cases.push_back({"stack", {{{2, 3}}, {{2, 3}}}, [](const Tensors& x) {
                     return stack({x[0], x[1]}, 1) * 2;
                   }});
  cases.push_back({"pad", {{{2, 3}}}, [](const Tensors& x) { return pad(x[0], {1, 2}, 1.5); }});
  cases.push_back({"pad both", {{{2, 3, 2}}}, [](const Tensors& x) {
                     return exp(pad(x[0] * 2, {1, 0, 0, 3, 2, 2}));
                   }});
  cases.push_back({"pad crop", {{{4, 5}}}, [](const Tensors& x) {
                     return pad(x[0], {-1, 2, 1, -2}, 3);
                   }});
  cases.push_back({"pad empty", {{{0, 3}}}, [](const Tensors& x) {
                     return pad(x[0], {0, 0, 1, 1}, 2);
                   }});
  cases.push_back({"gather", {{{4, 3}}, whole({6, 3}, 0, 4)}, [](const Tensors& x) {
                     return gather(x[0], 0, x[1]);
                   }});
  cases.push_back({"gather last",
                   {{{2, 3, 4}}, whole({2, 3, 7}, 0, 4, DType::Int32)},
                   [](const Tensors& x) { return gather(x[0] * 2, 2, x[1]); }});
  cases.push_back({"gather smaller", {{{4, 5}}, whole({2, 3}, 0, 5)}, [](const Tensors& x) {
                     return gather(x[0], 1, x[1]);
                   }});
  cases.push_back({"scatter_add", {{{4, 3}}, whole({6, 3}, 0, 4), {{6, 3}}}, [](const Tensors& x) {
                     return scatter_add(x[0], 0, x[1], x[2]);
                   }});
  cases.push_back({"scatter_add smaller",
                   {{{4, 5}}, whole({2, 3}, 0, 5, DType::Int32), {{3, 4}}},
                   [](const Tensors& x) { return scatter_add(x[0] * 2, 1, x[1], exp(x[2])); }});
  cases.push_back(
      {"scatter_add to one number", {whole({6, 3}, 0, 4), {{6, 3}}}, [](const Tensors& x) {
         return scatter_add(full({4, 3}, 0.25, x[1].dtype()), 0, x[0], x[1]);
       }});
  cases.push_back({"scatter_add to an expanded number",
                   {{{}}, whole({3, 5}, 0, 4), {{3, 5}}},
                   [](const Tensors& x) {
                     return scatter_add(expand(exp(x[0]), {3, 4}), 1, x[1], x[2]);
                   }});
  cases.push_back({"scatter_add of nothing", {whole({0, 3}, 0, 4), {{0, 3}}}, [](const Tensors& x) {
                     return scatter_add(full({4, 3}, 2, x[1].dtype()), 0, x[0], x[1]) * 3;
                   }});
  cases.push_back({"index_select", {{{5, 4}}, whole({7}, 0, 5)}, [](const Tensors& x) {
                     return index_select(x[0], 0, x[1]) * 2;
                   }});
  cases.push_back({"one_hot", {whole({2, 3}, 0, 4), {{4}}}, [](const Tensors& x) {
                     return one_hot(x[0], 4) * x[1];
                   }});
  cases.push_back({"with_updates", {{{2, 3}}}, [](const Tensors& x) {
                     const Tensor v = variable(ones({2, 3}, x[0].dtype()), "state");
                     return square(with_updates(exp(x[0]), {assign(v, x[0] + v)})) * x[0];
                   }});
  cases.push_back({"assign", {{{2, 3}}}, [](const Tensors& x) {
                     const Tensor v = variable(zeros(x[0].shape(), x[0].dtype()), "v");
                     return assign(v, x[0] * 2 + v);
                   }});
}

}  // namespace cases
