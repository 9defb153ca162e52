// Special functions, scattering that reduces, resampling, masked reductions, windows and matrices,
// for functions.cpp.
#include <optional>

#include <tenon/elementwise.h>
#include <tenon/joining.h>
#include <tenon/losses.h>
#include <tenon/masked.h>
#include <tenon/rearrange.h>
#include <tenon/resampling.h>
#include <tenon/scattering.h>
#include <tenon/signal_windows.h>
#include <tenon/special.h>
#include <tenon/statistics.h>

#include "conformance/arguments.h"
#include "conformance/composed_functions.h"

using namespace tenon;

namespace conformance {
namespace {

Tensor maybe_tensor(const In& in, std::size_t k) {
  return in.size() > k ? tensor(in, k) : Tensor();
}
std::optional<double> maybe_real(const json& a, const char* key) {
  return a.contains(key) ? std::optional(real(a, key)) : std::nullopt;
}
std::optional<int> maybe_axis(const json& a) {
  const Ints axes = ints(a, "axes");
  return axes.empty() ? std::nullopt : std::optional(static_cast<int>(axes[0]));
}
std::vector<double> reals(const json& a, const char* key) {
  std::vector<double> out;
  for (const json& value : a.at(key)) out.push_back(number(value).real());
  return out;
}

#define TENON_ONE(name) \
  f[#name] = [](const In& in, const json&) -> Out { return {name(tensor(in, 0))}; };
#define TENON_TWO(name) \
  f[#name] = [](const In& in, const json&) -> Out { return {name(tensor(in, 0), tensor(in, 1))}; };

void add_special_functions(Functions& f) {
  // clang-format off
  TENON_ONE(erfc) TENON_ONE(erfcx) TENON_ONE(erfinv) TENON_ONE(ndtri) TENON_ONE(log_ndtr)
  TENON_ONE(lgamma) TENON_ONE(digamma) TENON_ONE(sinc) TENON_ONE(spherical_bessel_j0)
  TENON_ONE(i0) TENON_ONE(i0e) TENON_ONE(i1) TENON_ONE(i1e) TENON_ONE(airy_ai)
  TENON_ONE(bessel_j0) TENON_ONE(bessel_j1) TENON_ONE(bessel_y0) TENON_ONE(bessel_y1)
  TENON_ONE(modified_bessel_k0) TENON_ONE(modified_bessel_k1)
  TENON_ONE(scaled_modified_bessel_k0) TENON_ONE(scaled_modified_bessel_k1)
  TENON_ONE(acosh) TENON_ONE(asinh) TENON_ONE(atanh) TENON_ONE(signbit)
  TENON_TWO(zeta) TENON_TWO(igamma) TENON_TWO(igammac) TENON_TWO(hypot) TENON_TWO(nextafter)
  TENON_TWO(gcd) TENON_TWO(lcm)
  TENON_TWO(bitwise_left_shift) TENON_TWO(bitwise_right_shift) TENON_TWO(copysign)
  TENON_TWO(chebyshev_polynomial_t) TENON_TWO(chebyshev_polynomial_u)
  TENON_TWO(chebyshev_polynomial_v) TENON_TWO(chebyshev_polynomial_w)
  TENON_TWO(shifted_chebyshev_polynomial_t) TENON_TWO(shifted_chebyshev_polynomial_u)
  TENON_TWO(shifted_chebyshev_polynomial_v) TENON_TWO(shifted_chebyshev_polynomial_w)
  TENON_TWO(hermite_polynomial_h) TENON_TWO(hermite_polynomial_he)
  TENON_TWO(laguerre_polynomial_l) TENON_TWO(legendre_polynomial_p)
      // clang-format on
      f["polygamma"] = [](const In& in, const json& a) -> Out {
    return {polygamma(a.at("n").get<std::int64_t>(), tensor(in, 0))};
  };
  f["mvlgamma"] = [](const In& in, const json& a) -> Out {
    return {mvlgamma(tensor(in, 0), a.at("p").get<std::int64_t>())};
  };
  f["frexp"] = [](const In& in, const json&) -> Out {
    const ValuesAndExponents parts = frexp(tensor(in, 0));
    return {parts.mantissa, parts.exponent};
  };
}

void add_scattering(Functions& f) {
  const auto reduction_of = [](const json& a) {
    return static_cast<ScatterReduction>(a.at("reduction").get<int>());
  };
  f["scatter_reduce"] = [=](const In& in, const json& a) -> Out {
    return {scatter_reduce(tensor(in, 0), a.at("axis"), tensor(in, 1), tensor(in, 2),
                           reduction_of(a), flag(a, "self"))};
  };
  f["index_reduce"] = [=](const In& in, const json& a) -> Out {
    return {index_reduce(tensor(in, 0), a.at("axis"), tensor(in, 1), tensor(in, 2), reduction_of(a),
                         flag(a, "self"))};
  };
  f["segment_reduce"] = [=](const In& in, const json& a) -> Out {
    return {segment_reduce(tensor(in, 0), tensor(in, 1), reduction_of(a), a.at("axis"),
                           maybe_real(a, "initial"))};
  };
}

void add_resampling(Functions& f) {
  f["interpolate"] = [](const In& in, const json& a) -> Out {
    InterpolateOptions options;
    options.mode = static_cast<Interpolation>(a.at("mode").get<int>());
    options.align_corners = flag(a, "corners");
    options.antialias = flag(a, "antialias");
    options.scale_factors = reals(a, "factors");
    return {interpolate(tensor(in, 0), ints(a, "sizes"), options)};
  };
  f["grid_sample"] = [](const In& in, const json& a) -> Out {
    return {grid_sample(tensor(in, 0), tensor(in, 1),
                        {.mode = static_cast<GridMode>(a.at("mode").get<int>()),
                         .padding = static_cast<GridPadding>(a.at("padding").get<int>()),
                         .align_corners = flag(a, "corners")})};
  };
}

void add_masked(Functions& f) {
  const auto reduction = [&f](const char* name, auto&& reduce) {
    f[name] = [reduce](const In& in, const json& a) -> Out {
      return {reduce(tensor(in, 0), maybe_tensor(in, 1), ints(a, "axes"), flag(a, "keepdim"))};
    };
  };
  reduction("masked_sum", masked::sum);
  reduction("masked_prod", masked::prod);
  reduction("masked_mean", masked::mean);
  reduction("masked_amax", masked::amax);
  reduction("masked_amin", masked::amin);
  reduction("masked_logsumexp", masked::logsumexp);
  f["masked_norm"] = [](const In& in, const json& a) -> Out {
    return {masked::norm(tensor(in, 0), maybe_tensor(in, 1), real(a, "ord"), ints(a, "axes"),
                         flag(a, "keepdim"))};
  };
  f["masked_var"] = [](const In& in, const json& a) -> Out {
    return {masked::var(tensor(in, 0), maybe_tensor(in, 1), ints(a, "axes"), flag(a, "keepdim"),
                        real(a, "correction", 1))};
  };
  f["masked_std"] = [](const In& in, const json& a) -> Out {
    return {masked::stddev(tensor(in, 0), maybe_tensor(in, 1), ints(a, "axes"), flag(a, "keepdim"),
                           real(a, "correction", 1))};
  };
  f["masked_median"] = [](const In& in, const json& a) -> Out {
    return {masked::median(tensor(in, 0), maybe_tensor(in, 1), maybe_axis(a).value_or(-1),
                           flag(a, "keepdim"))};
  };
  const auto along = [&f](const char* name, auto&& apply) {
    f[name] = [apply](const In& in, const json& a) -> Out {
      return {apply(tensor(in, 0), maybe_tensor(in, 1), maybe_axis(a).value_or(-1))};
    };
  };
  along("masked_cumsum", masked::cumsum);
  along("masked_cumprod", masked::cumprod);
  along("masked_softmax", masked::softmax);
  along("masked_log_softmax", masked::log_softmax);
  along("masked_softmin", masked::softmin);
  f["masked_normalize"] = [](const In& in, const json& a) -> Out {
    return {masked::normalize(tensor(in, 0), maybe_tensor(in, 1), real(a, "ord"),
                              maybe_axis(a).value_or(-1), real(a, "eps", 1e-12))};
  };
  f["masked_logaddexp"] = [](const In& in, const json&) -> Out {
    return {
        masked::logaddexp(tensor(in, 0), tensor(in, 1), maybe_tensor(in, 2), maybe_tensor(in, 3))};
  };
}

Tensor window(const json& a) {
  const auto name = a.at("name").get<std::string>();
  const auto count = a.at("count").get<std::int64_t>();
  const bool symmetric = flag(a, "symmetric");
  const DType type = dtype(a);
  if (name == "exponential") return windows::exponential(count, real(a, "tau"), symmetric, type);
  if (name == "gaussian") return windows::gaussian(count, real(a, "std"), symmetric, type);
  if (name == "kaiser") return windows::kaiser(count, real(a, "beta"), symmetric, type);
  if (name == "general_hamming")
    return windows::general_hamming(count, real(a, "alpha"), symmetric, type);
  if (name == "general_cosine")
    return windows::general_cosine(count, reals(a, "factors"), symmetric, type);
  const auto plain = name == "bartlett"   ? windows::bartlett
                     : name == "blackman" ? windows::blackman
                     : name == "cosine"   ? windows::cosine
                     : name == "hann"     ? windows::hann
                                          : windows::nuttall;
  return plain(count, symmetric, type);
}

void add_matrices(Functions& f) {
  f["window"] = [](const In&, const json& a) -> Out { return {window(a)}; };
  f["vecdot"] = [](const In& in, const json& a) -> Out {
    return {vecdot(tensor(in, 0), tensor(in, 1), a.at("axis"))};
  };
  f["multi_dot"] = [](const In& in, const json&) -> Out { return {multi_dot(tensors(in))}; };
  f["renorm"] = [](const In& in, const json& a) -> Out {
    return {renorm(tensor(in, 0), real(a, "p"), a.at("axis"), real(a, "most"))};
  };
  f["vander"] = [](const In& in, const json& a) -> Out {
    return {vander(tensor(in, 0), a.contains("count")
                                      ? std::optional(a.at("count").get<std::int64_t>())
                                      : std::nullopt)};
  };
  f["bilinear"] = [](const In& in, const json&) -> Out {
    return {bilinear(tensor(in, 0), tensor(in, 1), tensor(in, 2), maybe_tensor(in, 3))};
  };
}

Out histogram_of(const In& in, const json& a) {
  HistogramOptions options;
  options.density = flag(a, "density");
  if (flag(a, "weighted")) options.weight = tensor(in, in.size() - 1);
  const std::vector<double> ends = reals(a, "ends");
  for (std::size_t k = 0; k + 1 < ends.size(); k += 2)
    options.ranges.emplace_back(ends[k], ends[k + 1]);
  const Ints bins = ints(a, "bins");
  const Histogram found = bins.empty() ? histogram(tensor(in, 0), tensor(in, 1), options)
                                       : histogram(tensor(in, 0), bins[0], options);
  return {found.counts, found.edges[0]};
}

void add_counts(Functions& f) {
  f["mode"] = [](const In& in, const json& a) {
    return both(mode(tensor(in, 0), a.at("axis"), flag(a, "keepdim")));
  };
  f["nanquantile"] = [](const In& in, const json& a) -> Out {
    const auto how = static_cast<QuantileMode>(a.at("mode").get<int>());
    if (in.size() > 1)
      return {nanquantile(tensor(in, 0), tensor(in, 1), maybe_axis(a), flag(a, "keepdim"), how)};
    return {nanquantile(tensor(in, 0), real(a, "q"), maybe_axis(a), flag(a, "keepdim"), how)};
  };
  f["unique_consecutive"] = [](const In& in, const json&) -> Out {
    const UniqueElements found = unique_consecutive(tensor(in, 0));
    return {found.values, found.inverse, found.counts};
  };
  f["histogram"] = histogram_of;
  f["gradient"] = [](const In& in, const json& a) -> Out {
    Out out;
    const Ints axes = ints(a, "axes");
    const std::vector<double> spacings = reals(a, "spacings");
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const int axis = static_cast<int>(axes[k]), order = a.at("order");
      out.push_back(spacings.empty() ? gradient(tensor(in, 0), tensor(in, k + 1), axis, order)
                                     : gradient(tensor(in, 0), spacings[k], axis, order));
    }
    return out;
  };
  f["pdist"] = [](const In& in, const json& a) -> Out {
    return {pdist(tensor(in, 0), real(a, "p"))};
  };
}

void add_parts(Functions& f) {
  const auto each = [&f](const char* name, Tensor (*change)(const Tensor&)) {
    f[name] = [change](const In& in, const json&) -> Out {
      Out out;
      for (const Tensor& x : tensors(in)) out.push_back(change(x));
      return out;
    };
  };
  each("atleast_1d", atleast_1d);
  each("atleast_2d", atleast_2d);
  each("atleast_3d", atleast_3d);
  f["broadcast_tensors"] = [](const In& in, const json&) { return broadcast_tensors(tensors(in)); };
  f["combinations"] = [](const In& in, const json& a) -> Out {
    return {combinations(tensor(in, 0), a.at("count"), flag(a, "again"))};
  };
  f["nonzero_static"] = [](const In& in, const json& a) -> Out {
    return {nonzero_static(tensor(in, 0), a.at("count"), a.at("fill"))};
  };
  f["unravel_index"] = [](const In& in, const json& a) {
    const Ints sizes = ints(a, "sizes");
    return unravel_index(tensor(in, 0), Shape(sizes.data(), static_cast<int>(sizes.size())));
  };
  f["put"] = [](const In& in, const json& a) -> Out {
    return {put(tensor(in, 0), tensor(in, 1), tensor(in, 2), flag(a, "accumulate"))};
  };
  f["diagonal_scatter"] = [](const In& in, const json& a) -> Out {
    return {diagonal_scatter(tensor(in, 0), tensor(in, 1), a.at("offset"), a.at("a"), a.at("b"))};
  };
  f["unfold_axis"] = [](const In& in, const json& a) -> Out {
    return {unfold(tensor(in, 0), a.at("axis").get<int>(), a.at("size").get<std::int64_t>(),
                   a.at("step").get<std::int64_t>())};
  };
}

void add_losses_and_pooling(Functions& f) {
  f["triplet_margin_with_distance_loss"] = [](const In& in, const json& a) -> Out {
    TripletDistanceOptions options;
    options.margin = real(a, "margin");
    options.swap = flag(a, "swap");
    options.reduction = reduction(a);
    return {
        triplet_margin_with_distance_loss(tensor(in, 0), tensor(in, 1), tensor(in, 2), options)};
  };
  f["linear_cross_entropy"] = [](const In& in, const json& a) -> Out {
    return {linear_cross_entropy(
        tensor(in, 0), tensor(in, 1), tensor(in, 2),
        {.reduction = reduction(a), .label_smoothing = real(a, "smoothing")}, maybe_tensor(in, 3))};
  };
  f["rrelu"] = [](const In& in, const json& a) -> Out {
    return {rrelu(tensor(in, 0), real(a, "lower"), real(a, "upper"))};
  };
}

}  // namespace

void add_special(Functions& f) {
  add_special_functions(f);
  add_scattering(f);
  add_resampling(f);
  add_masked(f);
  add_matrices(f);
  add_counts(f);
  add_parts(f);
  add_losses_and_pooling(f);
}

}  // namespace conformance
