// exp, exp2 and functions built on them: expm1, tanh, sigmoid, sinh, cosh. Branch-free, except sinh
// and cosh of double, which use the C library.
//
// Reduction x = n ln 2 + r with |r| <= ln 2 / 2, then a minimax polynomial in r (fitted by the
// Remez algorithm to the weighted relative error). Errors in units of the last place are measured
// in tests/scalar.
//
// On a GPU, exp and tanh of float are CUDA's, which use the special function unit for the power of
// two: 10 and 17 instructions instead of 23 and 37, with errors of 1 and 2 units
// (tests/cuda/test_functions.cpp).
#pragma once

#include "scalar/config.h"

TENON_SCALAR_BEGIN

struct ExpReduced {
  float r;     // in [-ln 2 / 2, ln 2 / 2]
  uint32_t n;  // two's complement
};

/// Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits. ln 2 is split so that n *
/// (its upper part) is exact.
TENON_SCALAR ExpReduced exp_reduce(float x) {
  const float shifted = fused(x, 1.44269504f, 12582912.0f);
  const float n = shifted - 12582912.0f;
  const float r = fused(n, 2.12194440e-4f, fused(n, -0.693359375f, x));
  return {r, bits_of(shifted) - 0x4b400000u};
}

/// 2^n for a normal result.
TENON_SCALAR float power_of_two(uint32_t n) { return float_of((n + 127u) << 23); }

TENON_SCALAR float exp(float x) {
#if defined(__CUDA_ARCH__)
  return ::expf(x);
#else
  // Beyond these limits the result is infinite or zero. Comparisons with NaN are false, so NaN
  // stays.
  const float c = x < -104.0f ? -104.0f : (x > 89.0f ? 89.0f : x);
  const ExpReduced e = exp_reduce(c);
  float p = fused(1.3814462982e-3f, e.r, 8.368780331e-3f);
  p = fused(p, e.r, 4.1668394267e-2f);
  p = fused(p, e.r, 1.6666520109e-1f);
  p = fused(p, e.r, 4.9999993412e-1f);
  p = fused(e.r * e.r, p, e.r) + 1.0f;
  // Two factors, so that denormal results and results just below overflow are correct.
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(e.n) >> 1);
  return p * power_of_two(half) * power_of_two(e.n - half);
#endif
}

/// Exact for integers: the reduced argument is x minus the nearest integer, without rounding.
TENON_SCALAR float exp2(float x) {
  const float c = x < -151.0f ? -151.0f : (x > 129.0f ? 129.0f : x);
  const float shifted = c + 12582912.0f;
  const uint32_t n = bits_of(shifted) - 0x4b400000u;
  const float r = (c - (shifted - 12582912.0f)) * 0.693147181f;
  float p = fused(1.3814462982e-3f, r, 8.368780331e-3f);
  p = fused(p, r, 4.1668394267e-2f);
  p = fused(p, r, 1.6666520109e-1f);
  p = fused(p, r, 4.9999993412e-1f);
  p = fused(r * r, p, r) + 1.0f;
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(n) >> 1);
  return p * power_of_two(half) * power_of_two(n - half);
}

/// expm1, but for the sign of zero.
TENON_SCALAR float expm1_unsigned_zero(float x) {
  const float c = x < -20.0f ? -20.0f : (x > 89.0f ? 89.0f : x);
  const ExpReduced e = exp_reduce(c);
  float p = fused(1.3946562023e-3f, e.r, 8.3666439099e-3f);
  p = fused(p, e.r, 4.1666280532e-2f);
  p = fused(p, e.r, 1.6666542546e-1f);
  p = fused(p, e.r, 5.0000000623e-1f);
  const float q = fused(e.r * e.r, p, e.r);
  // 2^n (q + 1) - 1 in two halves, so that 2^n does not overflow; n = 0 is separate, so that a
  // denormal is not halved.
  const float h = power_of_two(e.n - 1u);
  const float scaled = fused(h, q, h - 0.5f) * 2.0f;
  return e.n == 0u ? q : scaled;
}

TENON_SCALAR float expm1(float x) { return x == 0.0f ? x : expm1_unsigned_zero(x); }

/// From t = expm1(-2 |x|), which has no cancellation: tanh |x| = -t / (t + 2).
TENON_SCALAR float tanh(float x) {
#if defined(__CUDA_ARCH__)
  return ::tanhf(x);
#else
  const float t = expm1_unsigned_zero(-2.0f * magnitude(x));
  return with_sign(tame_quotient(-t, t + 2.0f), x);
#endif
}

/// From e = exp(-|x|), which cannot overflow.
TENON_SCALAR float sigmoid(float x) {
  const float e = exp(-magnitude(x));
  const float top = x < 0.0f ? e : 1.0f;
  return tame_quotient(top, 1.0f + e);
}

/// Above this limit the square root of exp is squared, which overflows only if the result does.
inline constexpr float kHyperbolicLimit = 44.0f;

TENON_SCALAR float sinh(float x) {
  const float size = magnitude(x);
  const float tame = size < kHyperbolicLimit ? size : kHyperbolicLimit;
  const float t = expm1(tame), half = exp(size * 0.5f);
  const float y = 0.5f * (t + t / (t + 1.0f));
  const float large = 0.5f * half * half;
  return with_sign(size < kHyperbolicLimit ? y : large, x);
}
TENON_SCALAR float cosh(float x) {
  const float size = magnitude(x);
  const float t = exp(size < kHyperbolicLimit ? size : kHyperbolicLimit), half = exp(size * 0.5f);
  const float large = 0.5f * half * half;
  return size < kHyperbolicLimit ? 0.5f * (t + 1.0f / t) : large;
}

// The same in double.

struct ExpReducedWide {
  double r;    // in [-ln 2 / 2, ln 2 / 2]
  uint64_t n;  // two's complement
};

TENON_SCALAR ExpReducedWide exp_reduce(double x) {
  const double shifted = fused(x, 1.4426950408889634, 6755399441055744.0);
  const double n = shifted - 6755399441055744.0;
  const double r = fused(n, -1.90821492927058770002e-10, fused(n, -6.93147180369123816490e-01, x));
  return {r, bits_of(shifted) - 0x4338000000000000ull};
}

TENON_SCALAR double power_of_two(uint64_t n) { return double_of((n + 1023u) << 52); }

/// exp r - 1 for a reduced argument.
TENON_SCALAR double expm1_reduced(double r) {
  double p = fused(2.09146794524951930e-09, r, 2.51052064802593646e-08);
  p = fused(p, r, 2.75572736611662817e-07);
  p = fused(p, r, 2.75572554254910716e-06);
  p = fused(p, r, 2.48015873255335091e-05);
  p = fused(p, r, 1.98412698748006935e-04);
  p = fused(p, r, 1.38888888888837525e-03);
  p = fused(p, r, 8.33333333332614105e-03);
  p = fused(p, r, 4.16666666666666713e-02);
  p = fused(p, r, 1.66666666666666713e-01);
  p = fused(p, r, 0.5);
  return fused(r * r, p, r);
}

TENON_SCALAR double exp(double x) {
  const double c = x < -746.0 ? -746.0 : (x > 710.0 ? 710.0 : x);
  const ExpReducedWide e = exp_reduce(c);
  const double p = expm1_reduced(e.r) + 1.0;
  const uint64_t half = ((e.n + 2048u) >> 1) - 1024u;  // a shift without a sign: vectors have it
  return p * power_of_two(half) * power_of_two(e.n - half);
}

TENON_SCALAR double exp2(double x) {
  const double c = x < -1076.0 ? -1076.0 : (x > 1025.0 ? 1025.0 : x);
  const double shifted = c + 6755399441055744.0;
  const uint64_t n = bits_of(shifted) - 0x4338000000000000ull;
  const double r = (c - (shifted - 6755399441055744.0)) * 0.6931471805599453;
  const uint64_t half = ((n + 2048u) >> 1) - 1024u;
  return (expm1_reduced(r) + 1.0) * power_of_two(half) * power_of_two(n - half);
}

TENON_SCALAR double expm1_unsigned_zero(double x) {
  const double c = x < -40.0 ? -40.0 : (x > 710.0 ? 710.0 : x);
  const ExpReducedWide e = exp_reduce(c);
  const double q = expm1_reduced(e.r);
  const double h = power_of_two(e.n - 1u);
  const double scaled = fused(h, q, h - 0.5) * 2.0;
  return e.n == 0u ? q : scaled;
}

TENON_SCALAR double expm1(double x) { return x == 0.0 ? x : expm1_unsigned_zero(x); }

TENON_SCALAR double tanh(double x) {
  const double t = expm1_unsigned_zero(-2.0 * magnitude(x));
  return with_sign(-t / (t + 2.0), x);
}

TENON_SCALAR double sigmoid(double x) {
  const double e = exp(-magnitude(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

TENON_SCALAR double sinh(double x) { return ::sinh(x); }
TENON_SCALAR double cosh(double x) { return ::cosh(x); }

TENON_SCALAR_END
