// Cases of special functions, scattering that reduces, resampling, masked reductions and products
// of matrices.
#include <cmath>

#include <tenon/elementwise.h>
#include <tenon/joining.h>
#include <tenon/linalg.h>
#include <tenon/masked.h>
#include <tenon/pooling.h>
#include <tenon/rearrange.h>
#include <tenon/resampling.h>
#include <tenon/scattering.h>
#include <tenon/special.h>
#include <tenon/statistics.h>

#include "cases/cases.h"

using namespace tenon;

namespace cases {
namespace {

using Build = std::function<Tensor(const Tensors&)>;

Case& add(Cases& cases, const std::string& name, const std::vector<In>& inputs, const Build& build,
          double tolerance = 2e-6) {
  Case c{name, inputs, build};
  c.tolerance = tolerance;
  cases.push_back(c);
  return cases.back();
}

void add_special_functions(Cases& cases) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&);
    double low, high;
  };
  const Row rows[] = {{"erfc", erfc, -3, 3},
                      {"erfcx", erfcx, -1.5, 8},
                      {"erfinv", erfinv, -0.95, 0.95},
                      {"ndtri", ndtri, 0.05, 0.95},
                      {"log_ndtr", log_ndtr, -6, 3},
                      {"sinc", sinc, -3, 3},
                      {"spherical_bessel_j0", spherical_bessel_j0, -4, 4},
                      {"lgamma", lgamma, 0.3, 6},
                      {"lgamma of negative numbers", lgamma, -2.8, -2.2},
                      {"digamma", digamma, 0.3, 6},
                      {"digamma of negative numbers", digamma, -2.8, -2.2},
                      {"i0", i0, -6, 12},
                      {"i0e", i0e, 0.5, 12},
                      {"i1", i1, -6, 12},
                      {"i1e", i1e, 0.5, 12},
                      {"modified_bessel_k0", modified_bessel_k0, 0.5, 6},
                      {"modified_bessel_k1", modified_bessel_k1, 0.5, 6},
                      {"scaled_modified_bessel_k0", scaled_modified_bessel_k0, 0.5, 6},
                      {"scaled_modified_bessel_k1", scaled_modified_bessel_k1, 0.5, 6},
                      {"bessel_j0", bessel_j0, -9, 9},
                      {"bessel_j1", bessel_j1, -9, 9},
                      {"bessel_y0", bessel_y0, 0.5, 9},
                      {"bessel_y1", bessel_y1, 0.5, 9},
                      {"acosh", acosh, 1.5, 6},
                      {"asinh", asinh, -3, 3},
                      {"atanh", atanh, -0.9, 0.9}};
  for (const Row& row : rows)
    add(
        cases, row.name, {{{3, 7}, row.low, row.high}},
        [f = row.f](const Tensors& x) { return f(x[0]); }, 1e-5);
  add(cases, "airy_ai", {{{41}, -9, 9}}, [](const Tensors& x) { return airy_ai(x[0]); }).grad =
      false;
  for (const std::int64_t n : {1, 2, 5})
    add(
        cases, "polygamma " + std::to_string(n), {{{9}, 0.6, 4}},
        [n](const Tensors& x) { return polygamma(n, x[0]); }, 1e-5);
  add(
      cases, "polygamma of negative numbers", {{{9}, -1.8, -1.2}},
      [](const Tensors& x) { return polygamma(2, x[0]); }, 1e-5);
  add(
      cases, "mvlgamma", {{{3, 4}, 2, 5}}, [](const Tensors& x) { return mvlgamma(x[0], 3); },
      1e-5);
  add(
      cases, "zeta", {{{3, 4}, 0.5, 4}},
      [](const Tensors& x) { return zeta(full({4}, 2.5, x[0].dtype()), x[0]); }, 1e-5);
  add(
      cases, "igamma", {{{3, 4}, 0.2, 9}},
      [](const Tensors& x) { return igamma(full({4}, 2.5, x[0].dtype()), x[0]); }, 1e-5);
  add(
      cases, "igammac of a large parameter", {{{9}, 75, 95}},
      [](const Tensors& x) { return igammac(full({}, 80, x[0].dtype()), x[0]); }, 1e-5)
      .in_16_bits = false;
  add(cases, "hypot", {{{3, 4}, 0.5, 2}, {{4}, 0.5, 2}},
      [](const Tensors& x) { return hypot(x[0], x[1]); });
  add(cases, "copysign", {{{3, 4}, 0.5, 2}, {{4}}},
      [](const Tensors& x) { return copysign(x[0], x[1]); });
  add(
      cases, "legendre_polynomial_p", {{{3, 4}, -1, 1}},
      [](const Tensors& x) { return legendre_polynomial_p(x[0], 7); }, 1e-5);
  add(
      cases, "shifted_chebyshev_polynomial_u", {{{3, 4}, 0, 1}},
      [](const Tensors& x) { return shifted_chebyshev_polynomial_u(x[0], 4); }, 1e-5);
  add(
      cases, "hermite_polynomial_he", {{{3, 4}}},
      [](const Tensors& x) { return hermite_polynomial_he(x[0], 3); }, 1e-5);
  add(
      cases, "laguerre_polynomial_l", {{{3, 4}}},
      [](const Tensors& x) { return laguerre_polynomial_l(x[0], 5); }, 1e-5);
}

void add_scattering(Cases& cases) {
  const std::pair<const char*, ScatterReduction> kinds[] = {{"sum", ScatterReduction::Sum},
                                                            {"prod", ScatterReduction::Prod},
                                                            {"mean", ScatterReduction::Mean},
                                                            {"amax", ScatterReduction::Amax},
                                                            {"amin", ScatterReduction::Amin}};
  for (const auto& [name, kind] : kinds)
    for (const bool self : {true, false})
      add(
          cases, std::string("scatter_reduce ") + name + (self ? "" : ", without the base"),
          {{{4, 6}, 0.5, 2}, {{5, 9}, 0.5, 2}, whole({3, 9}, 0, 6)},
          [kind = kind, self](const Tensors& x) {
            return scatter_reduce(x[0], 1, x[2], x[1], kind, self);
          },
          1e-5);
  add(
      cases, "index_reduce", {{{4, 5}, 0.5, 2}, {{7, 5}, 0.5, 2}, whole({7}, 0, 4)},
      [](const Tensors& x) {
        return index_reduce(x[0], 0, x[2], x[1], ScatterReduction::Prod, true);
      },
      1e-5);
  add(
      cases, "segment_reduce", {{{9, 2}}},
      [](const Tensors& x) {
        const Tensor lengths =
            Tensor::from({std::int64_t{4}, std::int64_t{2}, std::int64_t{3}}, {3});
        return segment_reduce(x[0], lengths, ScatterReduction::Amax);
      },
      1e-5);
}

void add_resampling(Cases& cases) {
  const std::pair<const char*, GridPadding> paddings[] = {{"zeros", GridPadding::Zeros},
                                                          {"border", GridPadding::Border},
                                                          {"reflection", GridPadding::Reflection}};
  for (const auto& [name, padding] : paddings)
    for (const bool corners : {false, true}) {
      for (const GridMode mode : {GridMode::Bilinear, GridMode::Nearest, GridMode::Bicubic}) {
        const char* names[] = {"bilinear", "nearest", "bicubic"};
        add(
            cases,
            std::string("grid_sample ") + names[static_cast<int>(mode)] + ", " + name +
                (corners ? ", corners" : ""),
            {{{2, 3, 5, 4}}, {{2, 2, 3, 2}, -1.3, 1.3}},
            [padding = padding, mode, corners](const Tensors& x) {
              return grid_sample(x[0], x[1], {mode, padding, corners});
            },
            1e-5)
            .in_16_bits = false;  // a rounded position is another pixel
      }
    }
  add(
      cases, "grid_sample of a volume", {{{1, 2, 3, 4, 3}}, {{1, 2, 2, 3, 3}, -1.2, 1.2}},
      [](const Tensors& x) { return grid_sample(x[0], x[1], {}); }, 1e-5)
      .in_16_bits = false;
  add(
      cases, "affine_grid", {{{2, 2, 3}}},
      [](const Tensors& x) {
        return affine_grid(x[0], {2, 1, 3, 4});
      },
      1e-5);
  struct Row {
    const char* name;
    InterpolateOptions options;
    Ints sizes;
  };
  const Row rows[] = {
      {"cubic up", {.mode = Interpolation::Cubic}, {7, 9}},
      {"cubic, corners", {.mode = Interpolation::Cubic, .align_corners = true}, {3, 8}},
      {"exact", {.mode = Interpolation::NearestExact}, {7, 3}},
      {"area", {.mode = Interpolation::Area}, {2, 3}},
      {"linear by factors", {.mode = Interpolation::Linear, .scale_factors = {1.7, 0.6}}, {}},
      {"nearest by factors", {.mode = Interpolation::Nearest, .scale_factors = {1.7, 0.6}}, {}},
      {"antialiased", {.mode = Interpolation::Linear, .antialias = true}, {2, 3}},
      {"cubic, antialiased", {.mode = Interpolation::Cubic, .antialias = true}, {2, 8}}};
  for (const Row& row : rows)
    add(
        cases, std::string("interpolate ") + row.name, {{{2, 1, 5, 6}}},
        [row](const Tensors& x) { return interpolate(x[0], row.sizes, row.options); }, 1e-5);
}

void add_masked(Cases& cases) {
  struct Row {
    const char* name;
    std::function<Tensor(const Tensor& x, const Tensor& mask)> reduce;
  };
  const Row rows[] = {
      {"sum", [](const Tensor& x, const Tensor& m) { return masked::sum(x, m, {1}); }},
      {"mean", [](const Tensor& x, const Tensor& m) { return masked::mean(x, m, {1}, true); }},
      {"amax", [](const Tensor& x, const Tensor& m) { return masked::amax(x, m, {0}); }},
      {"logsumexp", [](const Tensor& x, const Tensor& m) { return masked::logsumexp(x, m, {1}); }},
      {"norm", [](const Tensor& x, const Tensor& m) { return masked::norm(x, m, 3, {1}); }},
      {"stddev", [](const Tensor& x, const Tensor& m) { return masked::stddev(x, m); }},
      {"softmax", [](const Tensor& x, const Tensor& m) { return masked::softmax(x, m, 1); }},
      {"normalize", [](const Tensor& x, const Tensor& m) { return masked::normalize(x, m, 2, 1); }},
      {"cumprod", [](const Tensor& x, const Tensor& m) { return masked::cumprod(x, m, 1); }}};
  for (const Row& row : rows)
    add(
        cases, std::string("masked ") + row.name, {{{4, 7}, 0.5, 2}, whole({4, 7}, 0, 3)},
        [reduce = row.reduce](const Tensors& x) {
          // Each row and column keeps an element.
          const Tensor kept =
              gt(x[1], 0) | eq(unsqueeze(arange(0, 4), 1), arange(0, 7)) | gt(arange(0, 7), 3);
          return reduce(x[0], kept);
        },
        1e-5);
}

void add_matrices(Cases& cases) {
  add(cases, "vecdot", {{{3, 4}}, {{4}}}, [](const Tensors& x) { return vecdot(x[0], x[1]); });
  add(
      cases, "multi_dot", {{{2, 5}}, {{5, 3}}, {{3, 4}}},
      [](const Tensors& x) {
        return multi_dot({x[0], x[1], x[2]});
      },
      1e-5);
  add(
      cases, "matrix_power", {{{2, 3, 3}}},
      [](const Tensors& x) { return linalg::matrix_power(x[0], 3); }, 1e-5);
  for (const double p : {1.0, -1.0, HUGE_VAL})
    add(
        cases, "matrix_norm " + std::to_string(p), {{{2, 3, 4}}},
        [p](const Tensors& x) { return linalg::matrix_norm(x[0], p); }, 1e-5);
  add(
      cases, "renorm", {{{3, 4, 2}}}, [](const Tensors& x) { return renorm(x[0], 2, 1, 1.5); },
      1e-5);
  add(
      cases, "vander", {{{2, 3}}}, [](const Tensors& x) { return vander(x[0], 4); }, 1e-5);
  add(
      cases, "bilinear", {{{2, 3, 4}}, {{2, 3, 5}}, {{6, 4, 5}}, {{6}}},
      [](const Tensors& x) { return bilinear(x[0], x[1], x[2], x[3]); }, 1e-5);
  add(
      cases, "pdist", {{{5, 3}}}, [](const Tensors& x) { return pdist(x[0]); }, 1e-5);
  add(
      cases, "gradient", {{{3, 6}}},
      [](const Tensors& x) {
        const Tensor at = cast(square(arange(1, 7)), x[0].dtype());
        return gradient(x[0], at, 1, 2) + gradient(x[0], 0.5, 1);
      },
      1e-5);
  add(cases, "unfold along an axis", {{{3, 7}}},
      [](const Tensors& x) { return exp(unfold(x[0], 1, 3, 2)); });
  add(cases, "put", {{{3, 4}}, {{5}}, whole({5}, 0, 12)},
      [](const Tensors& x) { return exp(put(x[0], x[2], x[1], true)); });
  add(cases, "diagonal_scatter", {{{4, 5}}, {{4}}},
      [](const Tensors& x) { return exp(diagonal_scatter(x[0], x[1], 1)); });
  add(cases, "fractional_max_pool2d", {{{2, 2, 7, 6}}, {{2, 2, 2}, 0, 0.99}}, [](const Tensors& x) {
    return fractional_max_pool2d(x[0], {2, 3}, {3, 2}, x[1]).values;
  }).in_16_bits = false;  // a rounded sample is another place
}

}  // namespace

void add_special(Cases& cases) {
  add_special_functions(cases);
  add_scattering(cases);
  add_resampling(cases);
  add_masked(cases);
  add_matrices(cases);
}

}  // namespace cases
