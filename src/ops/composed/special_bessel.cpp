// Bessel functions of order 0 and 1, modified ones, and the Airy function. Each value is computed
// in float64 by the approximations of the Cephes library.
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

template <class Above, class Below>
Tensor ratio(const Tensor& x, const Above& above, const Below& below) {
  return polynomial(x, above) / polynomial(x, below);
}

// Order 0 or 1 from x = 5 on: an amplitude and a phase. The function of the second kind has the
// sine where that of the first kind has the cosine.
Tensor oscillation(const Tensor& x, int order, bool second_kind) {
  const Tensor w = 5.0 / x, z = w * w, angle = x - (order == 0 ? 0.25 : 0.75) * kPi;
  const Tensor p =
      order == 0 ? ratio(z, tables::kJ0P, tables::kJ0Q) : ratio(z, tables::kJ1P, tables::kJ1Q);
  const Tensor q = w * (order == 0 ? ratio(z, tables::kJ0Sin, tables::kJ0SinBelow)
                                   : ratio(z, tables::kJ1Sin, tables::kJ1SinBelow));
  const Tensor wave =
      second_kind ? p * sin(angle) + q * cos(angle) : p * cos(angle) - q * sin(angle);
  return where(isinf(x), 0.0, wave * std::sqrt(2 / kPi) / sqrt(x));
}

// First kind, of x >= 0. The factors are the distances from the squares of the first two zeros.
Tensor first_kind_near(const Tensor& x, int order) {
  const Tensor z = x * x;
  if (order == 0)
    return (z - 5.78318596294678452118) * (z - 30.4712623436620863991) *
           ratio(z, tables::kJ0Near, tables::kJ0NearBelow);
  return x * (z - 14.6819706421238932572) * (z - 49.2184563216946036703) *
         ratio(z, tables::kJ1Near, tables::kJ1NearBelow);
}
Tensor first_kind(const Tensor& x, int order) {
  return where(le(x, 5), first_kind_near(x, order), oscillation(x, order, false));
}

Tensor second_kind(const Tensor& x, int order) {
  const Tensor z = x * x, product = log(x) * first_kind_near(x, order);
  const Tensor near =
      order == 0
          ? ratio(z, tables::kY0Near, tables::kY0NearBelow) + product * (2 / kPi)
          : x * ratio(z, tables::kY1Near, tables::kY1NearBelow) + (product - 1.0 / x) * (2 / kPi);
  const Tensor value = where(le(x, 5), near, oscillation(x, order, true));
  return where(eq(x, 0), -kInfinity, where(lt(x, 0), kNan, value));
}

// The modified function of the first kind times e^-x, of x >= 0.
Tensor scaled_growth(const Tensor& x, int order) {
  const Tensor near = x * 0.5 - 2.0, far = 32.0 / x - 2.0;
  if (order == 0)
    return where(le(x, 8), chebyshev_series(near, tables::kI0Near),
                 chebyshev_series(far, tables::kI0Far) / sqrt(x));
  return where(le(x, 8), x * chebyshev_series(near, tables::kI1Near),
               chebyshev_series(far, tables::kI1Far) / sqrt(x));
}

Tensor growth(const Tensor& x, int order) {
  const Tensor root = exp(x * 0.5);  // e^x overflows earlier than the product
  return where(isinf(x), kInfinity, scaled_growth(x, order) * root * root);
}

// The modified function of the second kind, times e^x if it is scaled.
Tensor decay(const Tensor& x, int order, bool scaled) {
  const Tensor rising = growth(x, order), z = x * x - 2.0;
  const Tensor near = order == 0 ? chebyshev_series(z, tables::kK0Near) - log(x * 0.5) * rising
                                 : log(x * 0.5) * rising + chebyshev_series(z, tables::kK1Near) / x;
  const Tensor w = 8.0 / x - 2.0;
  const Tensor far =
      (order == 0 ? chebyshev_series(w, tables::kK0Far) : chebyshev_series(w, tables::kK1Far)) /
      sqrt(x);
  const Tensor value =
      scaled ? where(le(x, 2), near * exp(x), far) : where(le(x, 2), near, far * exp(-x));
  return where(eq(x, 0), kInfinity, where(lt(x, 0), kNan, value));
}

// f(x) / x, and its limit a half at 0, for an odd f.
Tensor over_argument(const Tensor& f, const Tensor& x) {
  const Tensor zero = eq(x, 0);
  return where(zero, 0.5, f / where(zero, 1.0, x));
}

Tensor with_sign_of(const Tensor& x, const Tensor& value) { return where(lt(x, 0), -value, value); }

Tensor airy_near(const Tensor& x) {
  const Tensor z = x * x * x;
  Tensor even = ones({}, DType::Float64), odd = even;
  for (int k = 18; k > 0; --k) {
    even = even * z * (1 / ((3.0 * k - 1) * (3.0 * k))) + 1.0;
    odd = odd * z * (1 / ((3.0 * k) * (3.0 * k + 1))) + 1.0;
  }
  return even * 0.355028053887817239260 - odd * x * 0.258819403792806798405;
}

Tensor airy(const Tensor& x) {
  const Tensor size = abs(x), root = sqrt(size), zeta = size * root * (2.0 / 3), w = 1.0 / zeta;
  const Tensor scale = std::numbers::inv_sqrtpi / sqrt(root);
  const Tensor falling =
      scale * 0.5 * exp(-zeta) * ratio(w, tables::kAiryFar, tables::kAiryFarBelow);
  const Tensor z = w * w, angle = zeta + kPi / 4;
  const Tensor waving =
      scale * (sin(angle) * (1.0 + z * ratio(z, tables::kAirySin, tables::kAirySinBelow)) -
               cos(angle) * w * ratio(z, tables::kAiryCos, tables::kAiryCosBelow));
  const Tensor value = where(gt(x, 2.09), falling, where(lt(x, -2.09), waving, airy_near(x)));
  return where(isinf(x), 0.0, value);
}

}  // namespace

#define TENON_FORMULA_OF_ONE(name)                   \
  Tensor name(const Tensor& x) {                     \
    const Called called(#name);                      \
    require_defined(#name, x);                       \
    return formula(Formula::name, {to_floating(x)}); \
  }
TENON_FORMULA_OF_ONE(i0)
TENON_FORMULA_OF_ONE(i0e)
TENON_FORMULA_OF_ONE(i1)
TENON_FORMULA_OF_ONE(i1e)
TENON_FORMULA_OF_ONE(modified_bessel_k0)
TENON_FORMULA_OF_ONE(modified_bessel_k1)
TENON_FORMULA_OF_ONE(scaled_modified_bessel_k0)
TENON_FORMULA_OF_ONE(scaled_modified_bessel_k1)
TENON_FORMULA_OF_ONE(bessel_j0)
TENON_FORMULA_OF_ONE(bessel_j1)
TENON_FORMULA_OF_ONE(bessel_y0)
TENON_FORMULA_OF_ONE(bessel_y1)
#undef TENON_FORMULA_OF_ONE

Tensor airy_ai(const Tensor& x) {
  const Called called("airy_ai");
  require_defined("airy_ai", x);
  return formula(Formula::airy_ai,
                 {without_gradient(to_floating(x), Undifferentiable::AiryArgument)});
}

#define TENON_VALUE(name, ...) \
  Tensor value_##name(FormulaInputs x, std::int64_t) { return __VA_ARGS__; }
TENON_VALUE(bessel_j0, first_kind(abs(x[0]), 0))
TENON_VALUE(bessel_j1, with_sign_of(x[0], first_kind(abs(x[0]), 1)))
TENON_VALUE(bessel_y0, second_kind(x[0], 0))
TENON_VALUE(bessel_y1, second_kind(x[0], 1))
TENON_VALUE(i0e, scaled_growth(abs(x[0]), 0))
TENON_VALUE(i1e, with_sign_of(x[0], scaled_growth(abs(x[0]), 1)))
TENON_VALUE(i0, growth(abs(x[0]), 0))
TENON_VALUE(i1, with_sign_of(x[0], growth(abs(x[0]), 1)))
TENON_VALUE(modified_bessel_k0, decay(x[0], 0, false))
TENON_VALUE(modified_bessel_k1, decay(x[0], 1, false))
TENON_VALUE(scaled_modified_bessel_k0, decay(x[0], 0, true))
TENON_VALUE(scaled_modified_bessel_k1, decay(x[0], 1, true))
TENON_VALUE(airy_ai, airy(x[0]))
#undef TENON_VALUE

// The slope at x, in float64: for large numbers the terms cancel.
#define TENON_SLOPE(name, ...)                                                              \
  std::vector<Tensor> gradient_##name(const Tensor& out, const Tensor& g) {                 \
    return {g * in_float64(input_of(out, 0), [](const Tensor& x) { return __VA_ARGS__; })}; \
  }
TENON_SLOPE(bessel_j0, -bessel_j1(x))
TENON_SLOPE(bessel_j1, bessel_j0(x) - over_argument(bessel_j1(x), x))
TENON_SLOPE(bessel_y0, -bessel_y1(x))
TENON_SLOPE(bessel_y1, bessel_y0(x) - bessel_y1(x) / x)
TENON_SLOPE(i0, i1(x))
TENON_SLOPE(i0e, i1e(x) - sign(x) * i0e(x))
TENON_SLOPE(i1, i0(x) - over_argument(i1(x), x))
TENON_SLOPE(i1e, i0e(x) - sign(x) * i1e(x) - over_argument(i1e(x), x))
TENON_SLOPE(modified_bessel_k0, -modified_bessel_k1(x))
TENON_SLOPE(modified_bessel_k1, -modified_bessel_k0(x) - modified_bessel_k1(x) / x)
TENON_SLOPE(scaled_modified_bessel_k0, scaled_modified_bessel_k0(x) - scaled_modified_bessel_k1(x))
TENON_SLOPE(scaled_modified_bessel_k1, scaled_modified_bessel_k1(x) - scaled_modified_bessel_k0(x) -
                                           scaled_modified_bessel_k1(x) / x)
#undef TENON_SLOPE
// Refused by without_gradient().
std::vector<Tensor> gradient_airy_ai(const Tensor& /*out*/, const Tensor& g) { return {g}; }

}  // namespace tenon
