// Definitions that let one source compile with g++, nvcc and NVRTC: qualifiers, the C maths
// functions, bit casts and fused multiply-add.
//
// A file compiled with additional instruction sets defines TENON_SCALAR_ISA with a name of its own
// before it includes anything of scalar/. Its copies of these inline functions are then different
// functions from the baseline's.
#pragma once

#if defined(__CUDACC_RTC__)
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <math.h>
#include <stdint.h>
#endif

#ifndef TENON_SCALAR_ISA
#define TENON_SCALAR_ISA generic
#endif

#if defined(__CUDACC__)
#define TENON_SCALAR __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define TENON_SCALAR inline __attribute__((always_inline))
#else
#define TENON_SCALAR inline
#endif

#define TENON_SCALAR_BEGIN  \
  namespace tenon::scalar { \
  inline namespace TENON_SCALAR_ISA {
#define TENON_SCALAR_END \
  }                      \
  }

TENON_SCALAR_BEGIN

TENON_SCALAR uint32_t bits_of(float x) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(__float_as_int(x));
#else
  return __builtin_bit_cast(uint32_t, x);
#endif
}

TENON_SCALAR float float_of(uint32_t x) {
#if defined(__CUDA_ARCH__)
  return __int_as_float(static_cast<int>(x));
#else
  return __builtin_bit_cast(float, x);
#endif
}

TENON_SCALAR uint64_t bits_of(double x) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint64_t>(__double_as_longlong(x));
#else
  return __builtin_bit_cast(uint64_t, x);
#endif
}

TENON_SCALAR double double_of(uint64_t x) {
#if defined(__CUDA_ARCH__)
  return __longlong_as_double(static_cast<long long>(x));
#else
  return __builtin_bit_cast(double, x);
#endif
}

/// a * b + c: rounded once if the instruction set has a fused multiply-add, rounded twice where it
/// would be a library call.
TENON_SCALAR float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__CUDA_ARCH__) || defined(__aarch64__)
  return ::fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

TENON_SCALAR double fused(double a, double b, double c) {
#if defined(__FMA__) || defined(__CUDA_ARCH__) || defined(__aarch64__)
  return ::fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// n / d for d between 2^-20 and 2^20. On a GPU without the branch of the general quotient for
/// extreme operands, and so without its wait. Rounded like the general quotient, except for
/// denormal results.
TENON_SCALAR float tame_quotient(float n, float d) {
#if defined(__CUDA_ARCH__)
  float r = __fdividef(1.0f, d);
  r = ::fmaf(r, ::fmaf(-d, r, 1.0f), r);
  const float q = n * r;
  return ::fmaf(r, ::fmaf(-d, q, n), q);
#else
  return n / d;
#endif
}

TENON_SCALAR float with_sign(float magnitude, float sign) {
  return float_of((bits_of(magnitude) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}
TENON_SCALAR double with_sign(double magnitude, double sign) {
  return double_of((bits_of(magnitude) & 0x7fffffffffffffffull) |
                   (bits_of(sign) & 0x8000000000000000ull));
}

TENON_SCALAR float magnitude(float x) { return float_of(bits_of(x) & 0x7fffffffu); }
TENON_SCALAR double magnitude(double x) { return double_of(bits_of(x) & 0x7fffffffffffffffull); }

TENON_SCALAR_END
