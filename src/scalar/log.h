// log and log1p, branch-free. On a GPU those of double are CUDA's.
//
// x = 2^e m with m in [sqrt 1/2, sqrt 2), f = m - 1, s = f / (2 + f): log m = 2 s + s R(s^2), R
// minimax (Remez); the sum is arranged so that its large terms are exact.
#pragma once

#include "scalar/config.h"

TENON_SCALAR_BEGIN

/// For positive finite x, including denormal numbers.
TENON_SCALAR float log_positive(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  const uint32_t shifted = bits_of(scaled) - 0x3f3504f3u;  // sqrt 1/2
  const int32_t exponent = static_cast<int32_t>(shifted) >> 23;
  const float m = float_of((shifted & 0x007fffffu) + 0x3f3504f3u);
  const float e = static_cast<float>(exponent - (tiny ? 23 : 0));
  const float f = m - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  float r = fused(0.23583571983f, z, 0.28537238136f);
  r = fused(r, z, 0.40000336223f);
  r = fused(r, z, 0.66666665641f) * z;
  const float half_square = 0.5f * f * f;
  const float low = fused(s, half_square + r, e * 9.0580006145e-6f);
  return fused(e, 6.9313812256e-1f, f - (half_square - low));
}

TENON_SCALAR float log(float x) {
  const float infinity = float_of(0x7f800000u);
  const float y = log_positive(x);
  const float edge = x == 0.0f ? -infinity : float_of(0x7fc00000u);  // zero; negative or NaN
  return x > 0.0f ? (x == infinity ? infinity : y) : edge;
}

/// log of the rounded u = 1 + x, with the rounding error corrected to first order.
TENON_SCALAR float log1p(float x) {
  const float u = 1.0f + x;
  const float error = x >= 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  const bool ordinary = u > 0.0f && u < float_of(0x7f800000u);
  const float corrected = log_positive(u) + error / u;
  const float y = ordinary ? corrected : log(u);
  return x == 0.0f ? x : y;
}

// The same in double.

TENON_SCALAR double log_positive(double x) {
  const bool tiny = x < 2.2250738585072014e-308;
  const double scaled = tiny ? x * 18014398509481984.0 : x;          // 2^54
  const uint64_t shifted = bits_of(scaled) - 0x3fe6a09e667f3bcdull;  // sqrt 1/2
  const uint64_t exponent = (shifted >> 52) ^ 0x800u;                // plus 2048
  const double m = double_of((shifted & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
  // The exponent in the low bits of 2^52.
  const double e = double_of(exponent | 0x4330000000000000ull) -
                   (tiny ? 4503599627372598.0 : 4503599627372544.0);
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double r = fused(1.479819860511658591e-01, z, 1.531383769920937332e-01);
  r = fused(r, z, 1.818357216161805012e-01);
  r = fused(r, z, 2.222219843214978396e-01);
  r = fused(r, z, 2.857142874366239149e-01);
  r = fused(r, z, 3.999999999940941908e-01);
  r = fused(r, z, 6.666666666666735130e-01) * z;
  const double half_square = 0.5 * f * f;
  const double low = fused(s, half_square + r, e * 1.90821492927058770002e-10);
  return fused(e, 6.93147180369123816490e-01, f - (half_square - low));
}

TENON_SCALAR double log(double x) {
#if defined(__CUDA_ARCH__)
  return ::log(x);
#else
  const double infinity = double_of(0x7ff0000000000000ull);
  const double y = log_positive(x);
  const double edge = x == 0.0 ? -infinity : double_of(0x7ff8000000000000ull);
  return x > 0.0 ? (x == infinity ? infinity : y) : edge;
#endif
}

TENON_SCALAR double log1p(double x) {
#if defined(__CUDA_ARCH__)
  return ::log1p(x);
#else
  const double u = 1.0 + x;
  const double error = x >= 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
  const bool ordinary = u > 0.0 && u < double_of(0x7ff0000000000000ull);
  const double corrected = log_positive(u) + error / u;
  const double y = ordinary ? corrected : log(u);
  return x == 0.0 ? x : y;
#endif
}

TENON_SCALAR_END
