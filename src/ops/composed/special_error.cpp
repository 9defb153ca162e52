// Special functions around the error function, and the spherical Bessel function. Each value is
// computed in float64.
#include <cmath>
#include <limits>
#include <numbers>

#include <tenon/error.h>
#include <tenon/special.h>

#include "ops/composed/special_tables.h"
#include "ops/formula.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// e^(sign · x²) for x >= 0. The square of the leading bits of x is exact, so its rounding error
// does not become a relative error of the result.
Tensor exp_of_square(const Tensor& x, double sign) {
  const Tensor size = minimum(x, 30.0), lead = round(size * 16.0) / 16.0;
  return exp(lead * lead * sign) * exp((size - lead) * (size + lead) * sign);
}

// erfcx() of x >= 0.
Tensor scaled_tail(const Tensor& x) {
  const Tensor t = 3.0 / (x + 3.0);
  return t * chebyshev_series(t * 4.0 - 2.0, tables::kErfcx);
}

Tensor scaled_erfc(const Tensor& x) {
  const Tensor size = abs(x), tail = scaled_tail(size);
  return where(lt(x, 0), exp_of_square(size, 1) * 2.0 - tail, tail);
}

Tensor complement(const Tensor& x) {
  const Tensor size = abs(x), tail = exp_of_square(size, -1) * scaled_tail(size);
  return where(lt(size, 0.5), 1.0 - erf(x), where(lt(x, 0), 2.0 - tail, tail));
}

// The quantile of a probability with the distance q from a half and the distance `tail` from the
// nearer end.
Tensor quantile_at(const Tensor& q, const Tensor& tail) {
  const auto ratio = [](const Tensor& r, const auto& above, const auto& below) {
    return polynomial(r, above) / polynomial(r, below);
  };
  const Tensor r = sqrt(-log(tail));
  const Tensor size = where(le(r, 5.0), ratio(r - 1.6, tables::kTail, tables::kTailBelow),
                            ratio(r - 5.0, tables::kFarTail, tables::kFarTailBelow));
  const Tensor outside = where(eq(tail, 0), kInfinity, size);
  return where(le(abs(q), 0.425),
               q * ratio(0.180625 - q * q, tables::kCentral, tables::kCentralBelow),
               where(lt(q, 0), -outside, outside));
}

}  // namespace

#define TENON_FORMULA_OF_ONE(name)                   \
  Tensor name(const Tensor& x) {                     \
    const Called called(#name);                      \
    require_defined(#name, x);                       \
    return formula(Formula::name, {to_floating(x)}); \
  }
TENON_FORMULA_OF_ONE(erfc)
TENON_FORMULA_OF_ONE(erfcx)
TENON_FORMULA_OF_ONE(erfinv)
TENON_FORMULA_OF_ONE(ndtri)
TENON_FORMULA_OF_ONE(log_ndtr)
TENON_FORMULA_OF_ONE(spherical_bessel_j0)
#undef TENON_FORMULA_OF_ONE

Tensor sinc(const Tensor& x) {
  const Called called("sinc");
  require_defined("sinc", x);
  return in_float64(to_floating(x),
                    [](const Tensor& y) { return spherical_bessel_j0(y * std::numbers::pi); });
}

Tensor value_erfc(FormulaInputs x, std::int64_t) { return complement(x[0]); }
Tensor value_erfcx(FormulaInputs x, std::int64_t) { return scaled_erfc(x[0]); }
Tensor value_erfinv(FormulaInputs x, std::int64_t) {
  return quantile_at(x[0] * 0.5, (1.0 - abs(x[0])) * 0.5) * (std::numbers::sqrt2 / 2);
}
Tensor value_ndtri(FormulaInputs x, std::int64_t) {
  const Tensor& p = x[0];
  return quantile_at(p - 0.5, where(le(p, 0.5), p, 1.0 - p));
}
Tensor value_log_ndtr(FormulaInputs x, std::int64_t) {
  const Tensor t = x[0] * (std::numbers::sqrt2 / 2);
  const Tensor far = log(scaled_tail(abs(t)) * 0.5) - t * t;
  return where(lt(x[0], -1), far, log1p(complement(t) * -0.5));
}
Tensor value_spherical_bessel_j0(FormulaInputs x, std::int64_t) {
  const Tensor safe = where(eq(x[0], 0), 1.0, x[0]);
  return where(eq(x[0], 0), 1.0, where(isinf(x[0]), 0.0, sin(safe) / safe));
}

std::vector<Tensor> gradient_erfc(const Tensor& out, const Tensor& g) {
  return {g * (exp(-square(input_of(out, 0))) * (-2 * std::numbers::inv_sqrtpi))};
}
std::vector<Tensor> gradient_erfcx(const Tensor& out, const Tensor& g) {
  return {g * (input_of(out, 0) * out * 2.0 - 2 * std::numbers::inv_sqrtpi)};
}
std::vector<Tensor> gradient_erfinv(const Tensor& out, const Tensor& g) {
  return {g * (exp(square(out)) * (0.5 / std::numbers::inv_sqrtpi))};
}
std::vector<Tensor> gradient_ndtri(const Tensor& out, const Tensor& g) {
  return {g * (exp(square(out) * 0.5) * (std::numbers::sqrt2 / std::numbers::inv_sqrtpi))};
}
std::vector<Tensor> gradient_log_ndtr(const Tensor& out, const Tensor& g) {
  const Tensor scaled = erfcx(input_of(out, 0) * (-std::numbers::sqrt2 / 2));
  return {g * ((std::numbers::sqrt2 * std::numbers::inv_sqrtpi) / scaled)};
}
// (cos x - sin x / x) / x cancels near 0, where the series takes its place.
std::vector<Tensor> gradient_spherical_bessel_j0(const Tensor& out, const Tensor& g) {
  constexpr double kSeries[] = {-1.0 / 3991680, 1.0 / 45360, -1.0 / 840, 1.0 / 30, -1.0 / 3};
  return {g * in_float64(input_of(out, 0), [&](const Tensor& x) {
            const Tensor near = lt(abs(x), 0.25), safe = where(near, 1.0, x);
            return where(near, x * polynomial(square(x), kSeries),
                         (cos(safe) - sin(safe) / safe) / safe);
          })};
}

}  // namespace tenon
