// Ops that the processor implements directly: signs, rounding, quotients, comparisons, logic.
// Integers wrap around and never trap: x / 0 and x % 0 are 0. Truth values are int32 0 or 1.
#pragma once

#include "scalar/config.h"

TENON_SCALAR_BEGIN

TENON_SCALAR float neg(float x) { return -x; }
TENON_SCALAR double neg(double x) { return -x; }
TENON_SCALAR int32_t neg(int32_t x) { return static_cast<int32_t>(0u - static_cast<uint32_t>(x)); }
TENON_SCALAR int64_t neg(int64_t x) {
  return static_cast<int64_t>(0ull - static_cast<uint64_t>(x));
}

TENON_SCALAR float abs(float x) { return magnitude(x); }
TENON_SCALAR double abs(double x) { return magnitude(x); }
TENON_SCALAR int32_t abs(int32_t x) { return x < 0 ? neg(x) : x; }
TENON_SCALAR int64_t abs(int64_t x) { return x < 0 ? neg(x) : x; }

TENON_SCALAR float add(float a, float b) { return a + b; }
TENON_SCALAR double add(double a, double b) { return a + b; }
TENON_SCALAR int32_t add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
TENON_SCALAR int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

TENON_SCALAR float sub(float a, float b) { return a - b; }
TENON_SCALAR double sub(double a, double b) { return a - b; }
TENON_SCALAR int32_t sub(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
TENON_SCALAR int64_t sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

TENON_SCALAR float mul(float a, float b) { return a * b; }
TENON_SCALAR double mul(double a, double b) { return a * b; }
TENON_SCALAR int32_t mul(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
TENON_SCALAR int64_t mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

TENON_SCALAR float div(float a, float b) { return a / b; }
TENON_SCALAR double div(double a, double b) { return a / b; }
TENON_SCALAR int64_t div(int64_t a, int64_t b) { return b == 0 ? 0 : (b == -1 ? neg(a) : a / b); }
TENON_SCALAR int32_t div(int32_t a, int32_t b) { return b == 0 ? 0 : (b == -1 ? neg(a) : a / b); }

/// As in Python: the result has the divisor's sign.
TENON_SCALAR float remainder(float a, float b) {
  const float r = ::fmodf(a, b);
  return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
TENON_SCALAR double remainder(double a, double b) {
  const double r = ::fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
TENON_SCALAR int64_t remainder(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
TENON_SCALAR int32_t remainder(int32_t a, int32_t b) {
  if (b == 0 || b == -1) return 0;
  const int32_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

TENON_SCALAR float sqrt(float x) { return ::sqrtf(x); }
TENON_SCALAR double sqrt(double x) { return ::sqrt(x); }
TENON_SCALAR float rsqrt(float x) { return 1.0f / ::sqrtf(x); }
TENON_SCALAR double rsqrt(double x) { return 1.0 / ::sqrt(x); }
TENON_SCALAR float reciprocal(float x) { return 1.0f / x; }
TENON_SCALAR double reciprocal(double x) { return 1.0 / x; }

TENON_SCALAR float floor(float x) { return ::floorf(x); }
TENON_SCALAR double floor(double x) { return ::floor(x); }
TENON_SCALAR float ceil(float x) { return ::ceilf(x); }
TENON_SCALAR double ceil(double x) { return ::ceil(x); }
/// To nearest, ties to even.
TENON_SCALAR float round(float x) { return ::rintf(x); }
TENON_SCALAR double round(double x) { return ::rint(x); }
TENON_SCALAR float trunc(float x) { return ::truncf(x); }
TENON_SCALAR double trunc(double x) { return ::trunc(x); }

template <class T>
TENON_SCALAR T square(T x) {
  return mul(x, x);
}
template <class T>
TENON_SCALAR T same(T x) {
  return x;
}
/// NaN is returned unchanged.
template <class T>
TENON_SCALAR T relu(T x) {
  return x < T(0) ? T(0) : x;
}
template <class T>
TENON_SCALAR T sign(T x) {
  return static_cast<T>(static_cast<int>(x > T(0)) - static_cast<int>(x < T(0)));
}
/// NaN wins in maxima and minima.
template <class T>
TENON_SCALAR T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
TENON_SCALAR T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

template <class T>
TENON_SCALAR int32_t is_nan(T x) {
  return x != x;
}
TENON_SCALAR int32_t is_inf(float x) { return (bits_of(x) & 0x7fffffffu) == 0x7f800000u; }
TENON_SCALAR int32_t is_inf(double x) {
  return (bits_of(x) & 0x7fffffffffffffffull) == 0x7ff0000000000000ull;
}
TENON_SCALAR int32_t is_inf(int32_t) { return 0; }
TENON_SCALAR int32_t is_inf(int64_t) { return 0; }

#define TENON_SCALAR_PREDICATE(name, expression) \
  template <class T>                             \
  TENON_SCALAR int32_t name(T a, T b) {          \
    return expression;                           \
  }
TENON_SCALAR_PREDICATE(eq, a == b)
TENON_SCALAR_PREDICATE(ne, a != b)
TENON_SCALAR_PREDICATE(lt, a < b)
TENON_SCALAR_PREDICATE(le, a <= b)
TENON_SCALAR_PREDICATE(gt, a > b)
TENON_SCALAR_PREDICATE(ge, a >= b)
TENON_SCALAR_PREDICATE(logical_and, (a != T(0)) & (b != T(0)))
TENON_SCALAR_PREDICATE(logical_or, (a != T(0)) | (b != T(0)))
TENON_SCALAR_PREDICATE(logical_xor, (a != T(0)) ^ (b != T(0)))
#undef TENON_SCALAR_PREDICATE

template <class T>
TENON_SCALAR int32_t logical_not(T x) {
  return x == T(0);
}

TENON_SCALAR_END
