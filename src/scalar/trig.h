// sin, cos and tan. In float, the reduction and the polynomials are in double, branch-free, for |x|
// < kTrigLimit; the C library handles larger arguments and double.
#pragma once

#include "scalar/config.h"

TENON_SCALAR_BEGIN

/// Above this limit the three-part pi / 2 below is not exact enough.
inline constexpr float kTrigLimit = 1.0e6f;

/// sin (quadrant 0) or cos (quadrant 1) of x, |x| < 2^20. Each of the first two parts of pi / 2 has
/// 33 bits, so that its product with a whole number below 2^20 is exact.
TENON_SCALAR double sin_quadrant(double x, uint64_t quadrant) {
  const double shifted = x * 0.63661977236758134 + 6755399441055744.0;
  const double n = shifted - 6755399441055744.0;
  const uint64_t q = bits_of(shifted) + quadrant;
  const double r = ((x - n * 1.57079632673412561417e+00) - n * 6.07710050630396597660e-11) -
                   n * 2.02226624879595063154e-21;
  const double z = r * r;
  double s = fused(2.7182373040906257e-6, z, -1.98393271398307972e-4);
  s = fused(s, z, 8.33332936229134592e-3);
  s = fused(s, z, -0.166666666414266032);
  const double sine = fused(r * z, s, r);
  double c = fused(-2.72095477227070331e-7, z, 2.47995117630056866e-5);
  c = fused(c, z, -1.388888372261735e-3);
  c = fused(c, z, 4.16666666224769135e-2);
  const double cosine = fused(z * z, c, fused(z, -0.5, 1.0));
  const double y = (q & 1u) != 0u ? cosine : sine;
  return double_of(bits_of(y) ^ ((q & 2u) << 62));
}

TENON_SCALAR float sin_small(float x) {
  const float y = static_cast<float>(sin_quadrant(static_cast<double>(x), 0));
  return x == 0.0f ? x : y;  // the sign of zero
}
TENON_SCALAR float cos_small(float x) {
  return static_cast<float>(sin_quadrant(static_cast<double>(x), 1));
}

TENON_SCALAR float tan_small(float x) {
  const double wide = static_cast<double>(x);
  const float y = static_cast<float>(sin_quadrant(wide, 0) / sin_quadrant(wide, 1));
  return x == 0.0f ? x : y;
}

TENON_SCALAR float sin(float x) { return magnitude(x) < kTrigLimit ? sin_small(x) : ::sinf(x); }
TENON_SCALAR float cos(float x) { return magnitude(x) < kTrigLimit ? cos_small(x) : ::cosf(x); }
TENON_SCALAR float tan(float x) { return magnitude(x) < kTrigLimit ? tan_small(x) : ::tanf(x); }
TENON_SCALAR double sin(double x) { return ::sin(x); }
TENON_SCALAR double cos(double x) { return ::cos(x); }
TENON_SCALAR double tan(double x) { return ::tan(x); }

TENON_SCALAR_END
