// Powers. Floats are computed in double as exp(y log |x|), branch-free; doubles use the C library;
// integers wrap around.
#pragma once

#include "scalar/config.h"

TENON_SCALAR_BEGIN

/// log x of a positive normal double, to about 1e-15.
TENON_SCALAR double log_for_pow(double x) {
  // Biased so that the shift needs no sign; placing the exponent in the low bits of 2^52 converts
  // it to double.
  const uint64_t shifted = bits_of(x) + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
  const double e =
      double_of((shifted >> 52) | 0x4330000000000000ull) - (4503599627370496.0 + 1023.0);
  const double m = double_of((shifted & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double r = fused(0.168213461325506987, z, 0.181235211695047561);
  r = fused(r, z, 0.222233752507442387);
  r = fused(r, z, 0.285714170826742307);
  r = fused(r, z, 0.400000000525419436);
  r = fused(r, z, 0.66666666666586721) * z;
  return fused(e, 0.693147180559945309, fused(s, r, s + s));
}

/// exp x for |x| < 700, to about 1e-13.
TENON_SCALAR double exp_for_pow(double x) {
  const double shifted = fused(x, 1.44269504088896341, 6755399441055744.0);
  const double n = shifted - 6755399441055744.0;
  const double r = fused(n, -0.693147180559945309, x);
  double p = fused(2.76327930664230759e-6, r, 2.48846277224303087e-5);
  p = fused(p, r, 1.98411925997142113e-4);
  p = fused(p, r, 1.38888038972981391e-3);
  p = fused(p, r, 8.33333336341501122e-3);
  p = fused(p, r, 4.16666669976765048e-2);
  p = fused(p, r, 0.166666666666337512);
  p = fused(p, r, 0.499999999996378043);
  p = fused(r * r, p, r) + 1.0;
  return double_of(bits_of(p) + (bits_of(shifted) << 52));
}

TENON_SCALAR float pow(float x, float y) {
  const float infinity = float_of(0x7f800000u), nan = float_of(0x7fc00000u);
  const float size = magnitude(x);
  const double l = log_for_pow(static_cast<double>(size)) * static_cast<double>(y);
  const double clamped = l < -200.0 ? -200.0 : (l > 200.0 ? 200.0 : l);
  float result = static_cast<float>(exp_for_pow(clamped));
  // Zero and infinite bases, infinite exponents: 0 or infinity. Written with selects of numbers,
  // which vectorise; && does not.
  const float up = y > 0.0f ? infinity : 0.0f;
  const float down = y > 0.0f ? 0.0f : infinity;
  result = size == 0.0f ? down : result;
  result = size == infinity ? up : result;
  const float grown = size > 1.0f ? up : down;
  const float far = size == 1.0f ? 1.0f : grown;
  result = magnitude(y) == infinity ? far : result;
  // Negative bases: the sign of an odd power, NaN for a non-integer power.
  const float half = y * 0.5f;
  const float parity = ::truncf(half) == half ? 1.0f : -1.0f;
  const float sign = ::truncf(y) == y ? parity : (size == infinity || size == 0.0f ? 1.0f : nan);
  const float mirrored = result * (magnitude(y) == infinity ? 1.0f : sign);
  result = bits_of(x) >> 31 != 0u ? mirrored : result;
  result = x != x ? nan : result;
  result = y != y ? nan : result;
  result = x == 1.0f ? 1.0f : result;
  return y == 0.0f ? 1.0f : result;
}

TENON_SCALAR double pow(double x, double y) { return ::pow(x, y); }

TENON_SCALAR int64_t pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : (base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0);
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<int64_t>(result);
}

TENON_SCALAR int32_t pow(int32_t base, int32_t exponent) {
  return static_cast<int32_t>(
      static_cast<uint32_t>(pow(static_cast<int64_t>(base), static_cast<int64_t>(exponent))));
}

TENON_SCALAR_END
