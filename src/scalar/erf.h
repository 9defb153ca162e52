// The error function. Branch-free in float; double uses the C library.
#pragma once

#include "scalar/config.h"
#include "scalar/exp.h"

TENON_SCALAR_BEGIN

/// Near zero x + x P(x^2); otherwise 1 - exp(-Q(|x|)) with a minimax Q for -log erfc. From 4 on the
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
  float q = fused(2.1094954585e-5f, t, -4.3446155265e-4f);
  q = fused(q, t, 4.1710580784e-3f);
  q = fused(q, t, -2.5119414884e-2f);
  q = fused(q, t, 1.0828007089e-1f);
  q = fused(q, t, 6.3334692246e-1f);
  q = fused(q, t, 1.1295149228f);
  q = fused(q, t, -1.7468291526e-4f);
  const float far = with_sign(1.0f - exp(-q), x);
  return size < 0.93f ? near : far;
}

TENON_SCALAR double erf(double x) { return ::erf(x); }

TENON_SCALAR_END
