// The regularized incomplete gamma functions, computed in float64. Up to a = 64 by the series of
// the lower function and the continued fraction of the upper one (DLMF 8.11.4 and 8.9.2); beyond,
// by quadrature of the integral between x and a point where the integrand has become negligible
// (Press et al., "Numerical Recipes", 6.2.1). Absolute errors are below 1e-13.
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/special.h>

#include "ops/formula.h"
#include "ops/infer.h"

namespace tenon {
namespace {

constexpr double kLargeParameter = 64;

// Points in (0, 1) and weights of the quadrature of Gauss and Legendre.
std::vector<std::pair<double, double>> gauss_legendre(int count) {
  std::vector<std::pair<double, double>> out;
  for (int i = 0; i < count; ++i) {
    double x = std::cos(std::numbers::pi * (i + 0.75) / (count + 0.5)), slope = 1;
    for (int step = 0; step < 8; ++step) {  // Newton's method for the zeros of the polynomial
      double last = x, before = 1;
      for (int k = 2; k <= count; ++k)
        before = std::exchange(last, ((2 * k - 1) * x * last - (k - 1) * before) / k);
      slope = count * (x * last - before) / (x * x - 1);
      x -= last / slope;
    }
    out.emplace_back((x + 1) / 2, 1 / ((1 - x * x) * slope * slope));
  }
  return out;
}

// x^a e^-x / Γ(a + 1) · a, by Stirling's series.
Tensor scale_of_large(const Tensor& a, const Tensor& x) {
  constexpr double kStirling[] = {-1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12};
  const Tensor inverse = 1.0 / a, off = (x - a) * inverse;
  const Tensor correction = inverse * polynomial(inverse * inverse, kStirling);
  return exp(a * (log1p(off) - off) - correction) * sqrt(a * (0.5 / std::numbers::pi));
}

// The upper function above a - 1 and the negative lower one below.
Tensor tail_of_large(const Tensor& a, const Tensor& x) {
  const Tensor peak = a - 1.0, width = sqrt(peak);
  const Tensor end = where(gt(x, peak), maximum(peak + width * 14.0, x + width * 7.0),
                           maximum(minimum(peak - width * 9.0, x - width * 6.0), 0.0));
  const Tensor length = end - x;
  Tensor sum;
  for (const auto& [point, weight] : gauss_legendre(48)) {
    const Tensor way = length * point;
    const Tensor part = exp(peak * log1p(way / x) - way) * weight;
    sum = sum.defined() ? sum + part : part;
  }
  return sum * length / x * scale_of_large(a, x);
}

// Without the common factor x^a e^-x / Γ(a).
Tensor lower_series(const Tensor& a, const Tensor& x) {
  Tensor term = 1.0 / a, sum = term;
  for (int k = 1; k <= 96; ++k) {
    term = term * x / (a + static_cast<double>(k));
    sum = sum + term;
  }
  return sum;
}
Tensor upper_fraction(const Tensor& a, const Tensor& x) {
  constexpr int kDepth = 48;
  const Tensor base = x - a;
  Tensor fraction = base + (2.0 * kDepth + 1);
  for (int k = kDepth; k > 0; --k)
    fraction = base + (2.0 * k - 1) - (k - a) * static_cast<double>(k) / fraction;
  return 1.0 / fraction;
}

Tensor regularized(const Tensor& a, const Tensor& x, const Tensor& log_gamma, bool lower) {
  const Tensor inside = gt(a, 0) & gt(x, 0) & isfinite(a) & isfinite(x);
  const Tensor parameter = where(inside, a, 1.0), at = where(inside, x, 1.0);
  const Tensor large = gt(parameter, kLargeParameter);
  const Tensor small_a = where(large, 1.0, parameter), large_a = where(large, parameter, 100.0);
  const Tensor is_lower = where(large, le(at, large_a - 1.0), lt(at, maximum(small_a + 1.0, 2.0)));
  const Tensor scale = exp(small_a * log(at) - at - where(large, 0.0, log_gamma));
  const Tensor tail = abs(tail_of_large(large_a, at));
  const Tensor value = where(
      large, tail, scale * where(is_lower, lower_series(small_a, at), upper_fraction(small_a, at)));
  const Tensor wanted =
      lower ? where(is_lower, value, 1.0 - value) : where(is_lower, 1.0 - value, value);
  // At the ends the function is 0 or 1.
  const double most = lower ? 1 : 0;
  const Tensor unknown = scalar(kNan, DType::Float64);
  const Tensor end =
      where((eq(a, 0) & gt(x, 0)) | (isinf(x) & isfinite(a)), most,
            where((eq(x, 0) & gt(a, 0)) | (isinf(a) & isfinite(x)), 1 - most, unknown));
  const Tensor known = ge(a, 0) & ge(x, 0);
  return where(inside, wanted, where(known, end, unknown));
}

Tensor value_of(FormulaInputs in, bool lower) {
  // Γ(a) of the formula's own operand; large parameters do not need it.
  const Tensor a = where(gt(in[0], 0) & le(in[0], kLargeParameter), in[0], 1.0);
  const Tensor log_gamma = value_lgamma({&a, 1}, 0);
  return regularized(in[0], in[1], log_gamma, lower);
}

Tensor build_igamma(const char* op, Formula which, const Tensor& a, const Tensor& x) {
  const Called called(op);
  const auto [p, q] = aligned(op, a, x);
  return formula(
      which, {without_gradient(to_floating(p), Undifferentiable::GammaParameter), to_floating(q)});
}

// x^(a - 1) e^-x / Γ(a)
Tensor density(const Tensor& out) {
  const Tensor a = cast(input_of(out, 0), DType::Float64),
               x = cast(input_of(out, 1), DType::Float64);
  return cast(exp((a - 1.0) * log(x) - x - lgamma(a)), out.dtype());
}

}  // namespace

Tensor igamma(const Tensor& a, const Tensor& x) {
  return build_igamma("igamma", Formula::igamma, a, x);
}
Tensor igammac(const Tensor& a, const Tensor& x) {
  return build_igamma("igammac", Formula::igammac, a, x);
}

Tensor value_igamma(FormulaInputs in, std::int64_t) { return value_of(in, true); }
Tensor value_igammac(FormulaInputs in, std::int64_t) { return value_of(in, false); }
std::vector<Tensor> gradient_igamma(const Tensor& out, const Tensor& g) {
  return {g, g * density(out)};
}
std::vector<Tensor> gradient_igammac(const Tensor& out, const Tensor& g) {
  return {g, g * -density(out)};
}

}  // namespace tenon
