// sin, cos and tan. The reduction and the polynomials are in double, branch-free, for |x| <
// kTrigLimit; the C library handles larger arguments. Those of float have shorter polynomials.
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

/// The same with the polynomials of fdlibm and the rounding error of r, to a unit in the last
/// place.
TENON_SCALAR double sin_wide(double x, uint64_t quadrant) {
  const double shifted = x * 0.63661977236758134 + 6755399441055744.0;
  const double n = shifted - 6755399441055744.0;
  const uint64_t q = bits_of(shifted) + quadrant;
  const double first = x - n * 1.57079632673412561417e+00, second = n * 6.07710050630396597660e-11,
               third = n * 2.02226624879595063154e-21, most = first - second, r = most - third;
  const double rest = ((first - most) - second) + ((most - r) - third);  // of the reduced argument
  const double z = r * r;
  double s = fused(1.58969099521155010221e-10, z, -2.50507602534068634195e-08);
  s = fused(s, z, 2.75573137070700676789e-06);
  s = fused(s, z, -1.98412698298579493134e-04);
  s = fused(s, z, 8.33333333332248946124e-03);
  s = fused(s, z, -1.66666666666666324348e-01);
  const double sine = r + fused(r * z, s, rest);
  double c = fused(-1.13596475577881948265e-11, z, 2.08757232129817482790e-09);
  c = fused(c, z, -2.75573143513906633035e-07);
  c = fused(c, z, 2.48015872894767294178e-05);
  c = fused(c, z, -1.38888888888741095749e-03);
  c = fused(c, z, 4.16666666666666019037e-02);
  const double half = 0.5 * z, lead = 1.0 - half;
  const double cosine = lead + (fused(z * z, c, (1.0 - lead) - half) - r * rest);
  const double y = (q & 1u) != 0u ? cosine : sine;
  return double_of(bits_of(y) ^ ((q & 2u) << 62));
}

TENON_SCALAR double sin_small(double x) {
  const double y = sin_wide(x, 0);
  return x == 0.0 ? x : y;  // the sign of zero
}
TENON_SCALAR double cos_small(double x) { return sin_wide(x, 1); }
TENON_SCALAR double tan_small(double x) {
  const double y = sin_wide(x, 0) / sin_wide(x, 1);
  return x == 0.0 ? x : y;
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
// Blocks of doubles below kTrigLimit take the functions above (tile_loops.inc).
TENON_SCALAR double sin(double x) { return ::sin(x); }
TENON_SCALAR double cos(double x) { return ::cos(x); }
TENON_SCALAR double tan(double x) { return ::tan(x); }

TENON_SCALAR_END
