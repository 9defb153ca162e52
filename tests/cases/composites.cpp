// Cases of ops built from other ops that have no file of their own: activations, rearranging,
// scattering, 1-D and 3-D convolutions, interpolation, classification losses.
#include <cmath>

#include <tenon/fft.h>
#include <tenon/functional.h>
#include <tenon/pooling.h>

#include "cases/cases.h"

using namespace tenon;

namespace cases {
namespace {

using Build = std::function<Tensor(const Tensors&)>;

void add(Cases& cases, const std::string& name, const std::vector<In>& inputs, const Build& build,
         double tolerance = 2e-6) {
  Case c{name, inputs, build};
  c.tolerance = tolerance;
  cases.push_back(c);
}

void add_activations_too(Cases& cases) {
  const std::vector<In> one{{{3, 8}}}, two{{{3, 8}}, {{8}}};
  add(cases, "celu", one, [](const Tensors& x) { return celu(x[0], 1.5); });
  add(cases, "selu", one, [](const Tensors& x) { return selu(x[0]); });
  add(cases, "hardswish", {{{3, 8}, -5, 5}}, [](const Tensors& x) { return hardswish(x[0]); });
  add(cases, "logsigmoid", one, [](const Tensors& x) { return logsigmoid(x[0] * 3); });
  add(cases, "glu", one, [](const Tensors& x) { return glu(x[0]); });
  add(cases, "glu of columns", {{{4, 3}}}, [](const Tensors& x) { return glu(x[0], 0); });
  add(cases, "prelu", {{{2, 3, 4}}, {{3}}}, [](const Tensors& x) { return prelu(x[0], x[1]); });
  add(cases, "prelu of one slope", {{{7}}, {{1}}},
      [](const Tensors& x) { return prelu(x[0], x[1]); });
  add(cases, "logaddexp", two, [](const Tensors& x) { return logaddexp(x[0], x[1]); });
  add(cases, "lerp", two, [](const Tensors& x) { return lerp(x[0], x[1], 0.75); });
  add(cases, "lerp of weights", {{{3, 8}}, {{8}}, {{3, 1}}},
      [](const Tensors& x) { return lerp(x[0], x[1], x[2]); });
}

void add_statistics(Cases& cases) {
  add(
      cases, "stddev", {{{3, 9}}}, [](const Tensors& x) { return stddev(x[0], {1}); }, 1e-5);
  for (const double p : {3.0, 0.5, 1.0, HUGE_VAL, -HUGE_VAL, -2.0})
    add(
        cases, "vector_norm " + std::to_string(p), {{{3, 9}, 0.2, 2}},
        [p](const Tensors& x) { return vector_norm(x[0] * -1, p, {1}); }, 1e-5);
  add(
      cases, "vector_norm with zeros", {{{9}}},
      [](const Tensors& x) { return vector_norm(where(gt(x[0], 0), x[0], 0), 3) * x[0]; }, 1e-5);
  for (const auto& [shape, axis] :
       {std::pair<Shape, int>{{2, 70}, 1}, {{33, 3}, 0}, {{2, 5, 3}, -2}, {{0, 4}, 0}, {{}, 0}}) {
    add(
        cases, "cumsum" + shape.str(), {{shape}},
        [axis = axis](const Tensors& x) { return square(cumsum(x[0], axis)); }, 1e-5);
    add(
        cases, "cumprod" + shape.str(), {{shape, 0.8, 1.2}},
        [axis = axis](const Tensors& x) { return cumprod(x[0], axis); }, 1e-5);
  }
  for (const auto& [shape, axis] : {std::pair<Shape, int>{{2, 6}, 1},
                                    {{3, 70}, 1},
                                    {{7, 3}, 0},
                                    {{2, 5, 17}, -2},
                                    {{0, 4}, 1}}) {
    add(
        cases, "rfft" + shape.str(), {{shape}},
        [axis = axis](const Tensors& x) { return square(fft::rfft(x[0], {}, axis).imaginary); },
        1e-5);
    add(
        cases, "irfft" + shape.str(), {{shape}, {shape}},
        [axis = axis](const Tensors& x) { return fft::irfft(Complex(x[0], x[1]), 11, axis); },
        1e-5);
    add(
        cases, "ifft" + shape.str(), {{shape}, {shape}},
        [axis = axis](const Tensors& x) {
          const Complex y = fft::ifft(Complex(x[0], x[1]), 8, axis);
          return y.real * y.imaginary;
        },
        1e-5);
  }
  add(cases, "cumprod with zeros", {{{2, 6}, 0.5, 2}},
      [](const Tensors& x) { return cumprod(x[0] * arange(-2, 4), 1); });
  add(cases, "cumsum of whole numbers", {{{40}}, whole({40}, -9, 9, DType::Int32)},
      [](const Tensors& x) { return x[0] * cumsum(x[1], 0); });
  add(
      cases, "cosine_similarity", {{{4, 7}}, {{4, 7}}},
      [](const Tensors& x) { return cosine_similarity(x[0], x[1]); }, 1e-5);
  add(
      cases, "rms_norm", {{{4, 3, 5}}, {{3, 5}}},
      [](const Tensors& x) {
        return rms_norm(x[0], {3, 5}, x[1], 1e-3);
      },
      1e-5);
  add(
      cases, "rms_norm of its own eps", {{{4, 33}}},
      [](const Tensors& x) { return rms_norm(x[0], {33}); }, 1e-5);
}

void add_arrangements(Cases& cases) {
  add(cases, "roll", {{{3, 5}}}, [](const Tensors& x) {
    return roll(x[0], {1, -7}, {0, 1}) * x[0];
  });
  add(cases, "roll in a row", {{{3, 5}}}, [](const Tensors& x) { return roll(x[0], {4}) * x[0]; });
  add(cases, "repeat", {{{2, 3}}}, [](const Tensors& x) { return exp(repeat(x[0], {2, 1, 3})); });
  add(cases, "repeat_interleave", {{{2, 3}}},
      [](const Tensors& x) { return exp(repeat_interleave(x[0], 4, 0)); });
  add(cases, "meshgrid", {{{3}}, {{4}}}, [](const Tensors& x) {
    const auto grids = meshgrid({x[0], x[1]}, true);
    return grids[0] * exp(grids[1]);
  });
  add(cases, "tril and triu", {{{2, 4, 6}}},
      [](const Tensors& x) { return tril(x[0], 1) * 2 + square(triu(x[0], -1)); });
  add(cases, "masked_fill", {{{4, 6}}, {{6}}},
      [](const Tensors& x) { return masked_fill(x[0] * 2, gt(x[1], 0), -1.5); });
  add(cases, "scatter", {{{4, 9}}, {{4, 5}}, whole({4, 5}, 0, 9)},
      [](const Tensors& x) { return scatter(x[0], 1, x[2], x[1]) * x[0]; });
  add(cases, "scatter on the first axis", {{{7, 3}}, {{8, 3}}, whole({6, 2}, 0, 7)},
      [](const Tensors& x) { return exp(scatter(x[0], 0, x[2], x[1])); });
  add(cases, "scatter to one number, over the same places", {{{4, 5}}, whole({4, 5}, 0, 3)},
      [](const Tensors& x) {
        return scatter(full({4, 3}, 0.25, x[0].dtype()), 1, x[1], x[0]);
      });
  add(cases, "scatter of nothing", {{{4, 3}}, {{0, 3}}, whole({0, 3}, 0, 4)},
      [](const Tensors& x) { return scatter(x[0], 0, x[2], x[1]) * 3; });
  add(cases, "scatter one value", {{{4, 9}}, whole({4, 5}, 0, 9)},
      [](const Tensors& x) { return exp(scatter(x[0], 1, x[1], 0.5)); });
  add(cases, "index_add", {{{4, 6}}, {{4, 3}}, whole({3}, 0, 6)},
      [](const Tensors& x) { return square(index_add(x[0], 1, x[2], x[1], 2)); });
  add(cases, "embedding", {{{5, 4}}, whole({2, 3}, 0, 5)},
      [](const Tensors& x) { return square(embedding(x[1], x[0])); });
}

void add_convolutions(Cases& cases) {
  add(
      cases, "conv1d", {{{2, 4, 9}}, {{6, 2, 3}}, {{6}}},
      [](const Tensors& x) {
        return conv1d(x[0], x[1], x[2], {2, 1, 2, 2});
      },
      1e-5);
  add(
      cases, "conv3d", {{{2, 2, 4, 3, 4}}, {{4, 1, 2, 2, 2}}, {{4}}},
      [](const Tensors& x) {
        return conv3d(x[0], x[1], x[2], {{2, 1, 2}, {1, 0, 1}, {2, 1, 1}, 2});
      },
      1e-5);
  add(
      cases, "conv_transpose1d", {{{2, 4, 5}}, {{4, 3, 3}}, {{6}}},
      [](const Tensors& x) {
        return conv_transpose1d(x[0], x[1], x[2], {3, 1, 2, 2, 2});
      },
      1e-5);
  add(
      cases, "conv_transpose2d", {{{2, 4, 3, 2}}, {{4, 1, 3, 2}}, {{2}}},
      [](const Tensors& x) {
        return conv_transpose2d(x[0], x[1], x[2], {{2, 3}, {1, 0}, {1, 2}, {1, 2}, 2});
      },
      1e-5);
  add(
      cases, "conv_transpose2d of more padding than strides", {{{1, 2, 3, 4}}, {{2, 3, 3, 2}}},
      [](const Tensors& x) {
        return conv_transpose2d(x[0], x[1], {}, {{1, 1}, {1, 1}, {2, 1}, {3, 2}, 1});
      },
      1e-5);
  add(
      cases, "conv_transpose3d", {{{1, 2, 3, 2, 2}}, {{2, 1, 2, 2, 2}}, {{2}}},
      [](const Tensors& x) {
        return conv_transpose3d(x[0], x[1], x[2], {{2, 1, 2}, {1, 0, 0}, {1, 0, 1}, {1, 1, 1}, 2});
      },
      1e-5);
  struct Row {
    const char* name;
    Shape shape;
    Pool3dOptions options;
    bool average = true;
  };
  const Row rows[] = {
      {"plain", {2, 2, 4, 3, 5}, {}},
      {"one image", {1, 2, 1, 5, 4}, {.kernel = {1, 2, 2}, .stride = {1, 2, 1}}},
      {"overlap", {1, 2, 5, 4, 3}, {{3, 2, 3}, {2, 1, 1}, {1, 1, 1}}},
      {"hanging", {1, 1, 6, 5, 4}, {{3, 2, 2}, {2, 3, 3}, {1, 0, 1}, {1, 1, 1}, true}},
      {"inside", {1, 1, 6, 5, 4}, {{3, 2, 2}, {2, 3, 3}, {1, 0, 1}, {1, 1, 1}, true, false}},
      {"dilated", {1, 2, 6, 4, 5}, {{2, 2, 3}, {1, 2, 1}, {1, 0, 1}, {3, 2, 1}}, false},
      {"sums", {1, 1, 6, 5, 4}, {{3, 2, 2}, {2, 3, 3}, {1, 0, 1}, {1, 1, 1}, true, false, 7}},
      {"empty", {0, 2, 4, 3, 5}, {}}};
  for (const Row& row : rows) {
    const std::string name = row.name;
    const std::vector<In> volume{{row.shape}};
    const Pool3dOptions& o = row.options;
    const auto flat = [&] {  // the last axis only
      return Pool1dOptions{o.kernel.w,  o.stride.w,          o.padding.w, o.dilation.w,
                           o.ceil_mode, o.count_include_pad, o.divisor};
    };
    const std::vector<In> signal{{{row.shape[0], row.shape[1] * row.shape[2], row.shape[4]}}};
    add(cases, "max_pool3d " + name, volume,
        [o](const Tensors& x) { return square(max_pool3d(x[0] * 2, o)); });
    add(cases, "max_pool1d " + name, signal,
        [f = flat()](const Tensors& x) { return square(max_pool1d(x[0] * 2, f)); });
    if (!row.average) continue;
    add(cases, "avg_pool3d " + name, volume,
        [o](const Tensors& x) { return square(avg_pool3d(x[0], o)); });
    add(cases, "avg_pool1d " + name, signal,
        [f = flat()](const Tensors& x) { return square(avg_pool1d(x[0], f)); });
    add(cases, "avg_pool2d of one row, " + name, signal, [o](const Tensors& x) {
      const Pool2dOptions flat2d{{1, o.kernel.w},  {1, o.stride.w == 0 ? o.kernel.w : o.stride.w},
                                 {0, o.padding.w}, {1, 1},
                                 o.ceil_mode,      o.count_include_pad};
      return square(avg_pool2d(unsqueeze(x[0], 0), flat2d, o.divisor));
    });
  }
  add(cases, "adaptive pools over one axis", {{{2, 3, 7}}}, [](const Tensors& x) {
    return square(adaptive_avg_pool1d(x[0], 3)) + adaptive_max_pool1d(x[0], 3);
  });
  add(cases, "adaptive pools over three axes", {{{2, 4, 1, 5}}}, [](const Tensors& x) {
    return square(adaptive_avg_pool3d(x[0], {3, 2, 2})) + adaptive_max_pool3d(x[0], {3, 2, 2});
  });
  for (const Ints& sizes : {Ints{6, 10}, Ints{4, 7}, Ints{2, 3}, Ints{1, 1}}) {
    const std::string name = std::to_string(sizes[0]) + " x " + std::to_string(sizes[1]);
    const std::vector<In> image{{{2, 2, 3, 5}}};
    add(cases, "interpolate to the nearest, " + name, image,
        [sizes](const Tensors& x) { return exp(interpolate(x[0], sizes)); });
    for (const bool corners : {false, true})
      add(
          cases, "interpolate between two, " + name + (corners ? ", corners" : ""), image,
          [=](const Tensors& x) {
            return exp(interpolate(x[0], sizes, Interpolation::Linear, corners));
          },
          1e-5);
  }
}

void add_class_losses(Cases& cases) {
  for (const Reduction reduction : {Reduction::Mean, Reduction::Sum, Reduction::None}) {
    const std::string name = reduction == Reduction::Mean  ? ", mean"
                             : reduction == Reduction::Sum ? ", sum"
                                                           : "";
    add(
        cases, "cross_entropy with weights" + name, {{{5, 4, 2}}, whole({5, 2}, 0, 4), {{4}, 1, 2}},
        [=](const Tensors& x) {
          return cross_entropy(x[0], x[1], {reduction, 0.1, x[2], 1});
        },
        1e-5);
    add(
        cases, "nll_loss with weights" + name, {{{5, 4}}, whole({5}, 0, 4), {{4}, 1, 2}},
        [=](const Tensors& x) {
          return nll_loss(log_softmax(x[0], 1), x[1], {reduction, 0, x[2], 3});
        },
        1e-5);
  }
  add(
      cases, "cross_entropy of probabilities with weights", {{{5, 4}}, {{5, 4}}, {{4}, 1, 2}},
      [](const Tensors& x) {
        return cross_entropy(x[0], softmax(x[1], 1), {Reduction::Mean, 0.1, x[2]});
      },
      1e-5);
  add(
      cases, "kl_div", {{{3, 7}}, {{3, 7}, 0.1, 1}},
      [](const Tensors& x) { return kl_div(x[0], x[1], Reduction::Sum); }, 1e-5);
  add(
      cases, "kl_div of logarithms", {{{3, 7}}, {{3, 7}}},
      [](const Tensors& x) { return kl_div(x[0], x[1], Reduction::Sum, true); }, 1e-5);
  add(
      cases, "binary_cross_entropy", {{{3, 7}, 0.1, 0.9}, {{3, 7}, 0, 1}, {{7}}},
      [](const Tensors& x) {
        return binary_cross_entropy(x[0], x[1], {Reduction::Sum, x[2]});
      },
      1e-5);
  add(
      cases, "binary_cross_entropy_with_logits, weights", {{{3, 7}}, {{3, 7}, 0, 1}, {{7}}, {{7}}},
      [](const Tensors& x) {
        return binary_cross_entropy_with_logits(x[0], x[1], {Reduction::Sum, x[2], x[3]});
      },
      1e-5);
}

}  // namespace

void add_composites(Cases& cases) {
  add_activations_too(cases);
  add_statistics(cases);
  add_arrangements(cases);
  add_convolutions(cases);
  add_class_losses(cases);
}

}  // namespace cases
