// log and log1p. Branch-free in float; double uses the C library.
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

TENON_SCALAR double log(double x) { return ::log(x); }
TENON_SCALAR double log1p(double x) { return ::log1p(x); }

TENON_SCALAR_END
