// Conversions between compute types, and the bit patterns of 16-bit floating types. Branch-free.
#pragma once

#include "scalar/config.h"

TENON_SCALAR_BEGIN

/// Truncates. NaN becomes 0; values beyond int64 become its nearest end.
template <class T>
TENON_SCALAR int64_t to_int64(T x) {
  const T limit = static_cast<T>(9223372036854775808.0);
  const bool inside = x >= -limit && x < limit;
  const int64_t whole = static_cast<int64_t>(inside ? x : T(0));
  const int64_t end =
      x >= limit ? 9223372036854775807ll : (x < -limit ? -9223372036854775807ll - 1ll : 0ll);
  return inside ? whole : end;
}

/// Rounds to nearest even in the upper half of the bits. NaN stays NaN, and a value from
/// from_bfloat16() returns its original bits, also for signalling NaNs: moving a value does not
/// change it.
TENON_SCALAR uint32_t bfloat16_of(float x) {
  const uint32_t u = bits_of(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const uint32_t nan = (u >> 16) | ((u & 0xffffu) != 0u ? 0x40u : 0u);
  return (u & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
}
TENON_SCALAR float from_bfloat16(uint32_t bits) { return float_of(bits << 16); }

/// Rounds to nearest even; overflows to infinity; NaN as in bfloat16_of(). Adding 1/2 rounds a
/// result that becomes denormal at its last digit.
TENON_SCALAR uint32_t float16_of(float x) {
  const uint32_t u = bits_of(x) & 0x7fffffffu;
  const uint32_t sign = (bits_of(x) >> 16) & 0x8000u;
  const uint32_t normal = (u + 0xc8000fffu + ((u >> 13) & 1u)) >> 13;
  const uint32_t denormal = bits_of(float_of(u) + 0.5f) - 0x3f000000u;
  const uint32_t finite = u < 0x38800000u ? denormal : normal;
  const uint32_t nan = ((u & 0x1fffu) != 0u ? 0x7e00u : 0x7c00u) | ((u >> 13) & 0x3ffu);
  const uint32_t special = u > 0x7f800000u ? nan : 0x7c00u;
  return sign | (u >= 0x477ff000u ? special : finite);
}
TENON_SCALAR float from_float16(uint32_t bits) {
  const uint32_t u = (bits & 0x7fffu) << 13;
  const uint32_t finite = bits_of(float_of(u) * 5.192296858534828e33f);  // 2^112
  const uint32_t special = u | 0x7f800000u;
  return float_of((u >= 0x0f800000u ? special : finite) | ((bits & 0x8000u) << 16));
}

TENON_SCALAR_END
