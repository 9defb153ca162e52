// The error function. Branch-free in float; double uses the C library.
#pragma once

#include "scalar/config.h"

TENON_SCALAR_BEGIN

/// 2^y for y in [-100, 1]. exp() would also clamp its argument, multiply it by the logarithm, and
/// scale in two steps for denormal results.
TENON_SCALAR float power_of_two_near(float y) {
  const float shifted = y + 12582912.0f;
  const float r = y - (shifted - 12582912.0f);
  float p = fused(1.3264718e-3f, r, 9.671512991e-3f);
  p = fused(p, r, 5.5507339537e-2f);
  p = fused(p, r, 2.4022242427e-1f);
  p = fused(p, r, 6.9314700365e-1f);
  p = fused(p, r, 1.0f);
  return float_of(bits_of(p) + (bits_of(shifted) << 23));
}

/// Near zero x + x P(x^2); otherwise 1 - 2^Q(|x|) with a minimax Q for log2 erfc. From 4 on the
/// result is 1.
TENON_SCALAR float erf(float x) {
  const float z = x * x;
  float p = fused(8.2803924495e-5f, z, -8.1218850301e-4f);
  p = fused(p, z, 5.1992473567e-3f);
  p = fused(p, z, -2.6858706724e-2f);
  p = fused(p, z, 1.1283683709e-1f);
  p = fused(p, z, -3.761263303e-1f);
  p = fused(p, z, 1.2837916657e-1f);
  const float near = fused(x, p, x);
  const float size = magnitude(x);
  const float t = size > 4.0f ? 4.0f : size;
  float q = fused(-3.0433586289e-5f, t, 6.2679551775e-4f);
  q = fused(q, t, -6.0175647959e-3f);
  q = fused(q, t, 3.6239653826e-2f);
  q = fused(q, t, -1.5621511638e-1f);
  q = fused(q, t, -9.1372644901e-1f);
  q = fused(q, t, -1.6295455695f);
  q = fused(q, t, 2.5201415e-4f);
  const float far = with_sign(1.0f - power_of_two_near(q), x);
  return size >= 0.93f ? far : near;  // near is NaN if x is
}

TENON_SCALAR double erf(double x) { return ::erf(x); }

TENON_SCALAR_END
