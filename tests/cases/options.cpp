// Cases of max pooling with indices and its inverse, power averages, embeddings with options, bags
// of embeddings, and instance norm.
#include <cmath>

#include <tenon/functional.h>
#include <tenon/pooling.h>

#include "cases/cases.h"

using namespace tenon;

namespace cases {
namespace {

Case case_of(const std::string& name, const std::vector<In>& inputs,
             const std::function<Tensor(const Tensors&)>& build) {
  Case c;
  c.name = name;
  c.inputs = inputs;
  c.build = build;
  return c;
}

// Maxima, and their indices as numbers.
Tensor both(const ValuesAndIndices& y) {
  return square(y.values) + cast(y.indices, y.values.dtype()) * 0.125;
}

void add_places(Cases& cases) {
  struct Row {
    const char* name;
    Pool3dOptions options;
  };
  const Row rows[] = {{"plain", {}},
                      {"overlap", {{3, 2, 3}, {2, 1, 1}, {1, 1, 1}}},
                      {"hanging", {{3, 2, 2}, {2, 3, 3}, {1, 0, 1}, {1, 1, 1}, true}},
                      {"dilated", {{2, 2, 3}, {1, 2, 1}, {1, 0, 1}, {3, 2, 1}}},
                      {"of images", {.kernel = {1, 2, 2}, .stride = {1, 2, 1}}}};
  for (const Row& row : rows) {
    const Pool3dOptions o = row.options;
    const std::string name = std::string(", ") + row.name;
    const Pool2dOptions flat{{o.kernel.h, o.kernel.w},
                             {o.stride.h, o.stride.w},
                             {o.padding.h, o.padding.w},
                             {o.dilation.h, o.dilation.w},
                             o.ceil_mode};
    const Pool1dOptions line{o.kernel.w, o.stride.w, o.padding.w, o.dilation.w, o.ceil_mode};
    cases.push_back(
        case_of("max_pool1d with indices" + name, {{{2, 3, 7}}},
                [line](const Tensors& x) { return both(max_pool1d_with_indices(x[0], line)); }));
    cases.push_back(case_of(
        "max_pool2d with indices" + name, {{{2, 3, 5, 7}}},
        [flat](const Tensors& x) { return both(max_pool2d_with_indices(x[0] * 2, flat)); }));
    cases.push_back(
        case_of("max_pool3d with indices" + name, {{{1, 2, 6, 5, 4}}},
                [o](const Tensors& x) { return both(max_pool3d_with_indices(x[0], o)); }));
  }
  cases.push_back(case_of("adaptive maxima with indices", {{{2, 3, 7, 5}}}, [](const Tensors& x) {
    return both(adaptive_max_pool2d_with_indices(x[0], {3, 2}));
  }));
  cases.push_back(
      case_of("adaptive maxima of signals and volumes with indices", {{{2, 4, 3, 5}}},
              [](const Tensors& x) {
                return both(adaptive_max_pool3d_with_indices(x[0], {3, 2, 2})) +
                       sum(both(adaptive_max_pool1d_with_indices(reshape(x[0], {2, 4, 15}), 4)));
              }));
}

void add_way_back(Cases& cases) {
  cases.push_back(case_of("max_unpool2d", {{{2, 3, 4, 6}}}, [](const Tensors& x) {
    const ValuesAndIndices y = max_pool2d_with_indices(x[0]);
    return max_unpool2d(square(y.values), y.indices);
  }));
  Case overlapping = case_of(
      "max_unpool2d of windows that overlap, to a size", {{{3, 5, 7}}}, [](const Tensors& x) {
        const Pool2dOptions o{.kernel = {3, 2}, .stride = {1, 2}};
        const ValuesAndIndices y = max_pool2d_with_indices(unsqueeze(x[0], 0), o);
        return max_unpool2d(squeeze(y.values, 0) * x[0][0][0][0], squeeze(y.indices, 0), o,
                            Pair{5, 7});
      });
  // Values that others replace have a gradient, as in PyTorch: not that of finite differences.
  overlapping.grad = overlapping.grad2 = false;
  cases.push_back(overlapping);
  cases.push_back(
      case_of("max_unpool over one axis and three", {{{1, 2, 4, 4, 5}}}, [](const Tensors& x) {
        const Pool3dOptions o{.kernel = {2, 2, 2}};
        const ValuesAndIndices y = max_pool3d_with_indices(x[0], o);
        const Pool1dOptions line{.kernel = 2, .stride = 2, .padding = 1};
        const ValuesAndIndices z = max_pool1d_with_indices(reshape(x[0], {2, 16, 5}), line);
        return sum(square(max_unpool3d(y.values, y.indices, o, Triple{4, 4, 5}))) +
               square(max_unpool1d(z.values, z.indices, line, 5));
      }));
  const std::vector<In> positive{{{2, 2, 5, 4}, 0.2, 2}};
  for (const double p : {1.0, 2.0, 3.5, 4.0, -1.5, HUGE_VAL, -HUGE_VAL}) {
    Case c = case_of("power averages, " + std::to_string(p), positive, [p](const Tensors& x) {
      return lp_pool2d(x[0], p, {.kernel = {3, 2}, .stride = {2, 1}, .ceil_mode = true}) +
             sum(lp_pool1d(x[0][0], p, {.kernel = 2})) +
             sum(lp_pool3d(x[0], p, {.kernel = {2, 3, 2}, .stride = {1, 1, 2}}));
    });
    c.tolerance = 1e-5;
    cases.push_back(c);
  }
}

void add_tables(Cases& cases) {
  const std::vector<In> in{whole({3, 4}, 0, 6), {{6, 5}}, {{3, 4}}};
  const auto add = [&](const std::string& name, const std::vector<In>& inputs, bool grad,
                       const std::function<Tensor(const Tensors&)>& build) {
    Case c = case_of(name, inputs, build);
    c.grad = c.grad2 = grad;
    c.tolerance = 1e-5;
    cases.push_back(c);
  };
  // With these options the gradient is intentionally not the derivative of the values.
  add("embedding with norms and shares", in, false, [](const Tensors& x) {
    const Tensor y = embedding(
        x[0], x[1],
        {.padding_index = -1, .max_norm = 1.5, .norm_type = 3, .scale_grad_by_freq = true});
    return y;
  });
  for (const BagMode mode : {BagMode::Sum, BagMode::Mean, BagMode::Max}) {
    const std::string name = mode == BagMode::Sum    ? "sums"
                             : mode == BagMode::Mean ? "means"
                                                     : "maxima";
    add("embedding bags, " + name, in, true, [mode](const Tensors& x) {
      const Tensor weights = mode == BagMode::Sum ? x[2] : Tensor();
      return square(embedding_bag(x[0], x[1], {}, {.mode = mode}, weights));
    });
    add("embedding bags of a vector, " + name, {whole({9}, 0, 6, DType::Int32), {{6, 5}}}, true,
        [mode](const Tensors& x) {
          const Tensor offsets = Tensor::from<std::int64_t>({0, 4, 4, 7, 9}, {5});
          return square(
              embedding_bag(x[0], x[1], offsets, {.mode = mode, .include_last_offset = true}));
        });
    add("embedding bags with padding, " + name, in, false, [mode](const Tensors& x) {
      const EmbeddingBagOptions o{.padding_index = 2, .mode = mode};
      const Tensor flat = reshape(x[0], {12}), offsets = Tensor::from<std::int64_t>({0, 4, 8}, {3});
      return embedding_bag(x[0], x[1], {}, o) * 2 + embedding_bag(flat, x[1], offsets, o);
    });
  }
}

}  // namespace

void add_options(Cases& cases) {
  add_places(cases);
  add_way_back(cases);
  add_tables(cases);
  Case c = case_of("instance norm", {{{3, 2, 4, 3}}, {{2}, 0.5, 1.5}, {{2}}},
                   [](const Tensors& x) { return instance_norm(x[0], x[1], x[2]); });
  c.tolerance = 1e-5;
  cases.push_back(c);
}

}  // namespace cases
