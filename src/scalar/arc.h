// Inverse trigonometric functions: atan, asin, acos, atan2. Branch-free in float; double uses the C
// library.
//
// atan has an odd polynomial of degree 21 on [0, 1], asin one of degree 13 on [0, 1/2]
// (interpolated at Chebyshev points: 1e-9 of the argument); other arguments are reduced to these.
#pragma once

#include "scalar/config.h"

TENON_SCALAR_BEGIN

/// For 0 <= t <= 1.
TENON_SCALAR float atan_unit(float t) {
  const float z = t * t;
  float p = fused(1.4886919e-3f, z, -9.1446294e-3f);
  p = fused(p, z, 2.6305001e-2f);
  p = fused(p, z, -4.8960514e-2f);
  p = fused(p, z, 7.0319146e-2f);
  p = fused(p, z, -8.9318268e-2f);
  p = fused(p, z, 1.1088262e-1f);
  p = fused(p, z, -1.4284004e-1f);
  p = fused(p, z, 1.9999950e-1f);
  p = fused(p, z, -3.3333334e-1f);
  return fused(p * z, t, t);
}

TENON_SCALAR float atan(float x) {
  const float size = magnitude(x);
  const float r = atan_unit(size > 1.0f ? 1.0f / size : size);
  // NaN: no comparison is true, and the polynomial returns NaN.
  return with_sign(size > 1.0f ? (1.57079633f - r) - 4.37113883e-8f : r, x);
}

/// Counter-clockwise angle of the point (x, y) from the x axis, in (-pi, pi].
TENON_SCALAR float atan2(float y, float x) {
  const float width = magnitude(x), height = magnitude(y);
  const bool steep = height > width;
  const float low = steep ? width : height, high = steep ? height : width;
  // 0 / 0 and infinity / infinity: the angles of the axes and diagonals.
  const float ratio = low == high ? (high == 0.0f ? 0.0f : 1.0f) : low / high;
  float r = atan_unit(ratio);
  r = steep ? (1.57079633f - r) - 4.37113883e-8f : r;
  r = (bits_of(x) & 0x80000000u) != 0u ? (3.14159265f - r) - 8.74227766e-8f : r;
  const float angle = with_sign(r, y);
  return x != x || y != y ? x + y : angle;
}

/// For 0 <= t <= 1/2, z = t * t.
TENON_SCALAR float asin_half(float t, float z) {
  float p = fused(3.3690847e-2f, z, 1.7149238e-2f);
  p = fused(p, z, 3.1100662e-2f);
  p = fused(p, z, 4.4599403e-2f);
  p = fused(p, z, 7.5000942e-2f);
  p = fused(p, z, 1.6666666e-1f);
  return fused(p * z, t, t);
}

TENON_SCALAR float asin(float x) {
  const float size = magnitude(x);
  const bool large = size > 0.5f;
  const float z = large ? 0.5f * (1.0f - size) : size * size;
  const float r = asin_half(large ? ::sqrtf(z) : size, z);
  return with_sign(large ? 1.57079633f - 2.0f * r : r, x);
}

TENON_SCALAR float acos(float x) {
  const float size = magnitude(x);
  const bool large = size > 0.5f;
  const float z = large ? 0.5f * (1.0f - size) : size * size;
  const float r = asin_half(large ? ::sqrtf(z) : size, z);
  if (large) return x < 0.0f ? 3.14159265f - 2.0f * r : 2.0f * r;
  return 1.57079633f - with_sign(r, x);
}

TENON_SCALAR double atan(double x) { return ::atan(x); }
TENON_SCALAR double atan2(double y, double x) { return ::atan2(y, x); }
TENON_SCALAR double asin(double x) { return ::asin(x); }
TENON_SCALAR double acos(double x) { return ::acos(x); }

TENON_SCALAR_END
