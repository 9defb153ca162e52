// Included before every kernel that is compiled for the emulator: the built-ins of nvcc and NVRTC
// (qualifiers, index variables, vector types, maths, bit casts) for the host's compiler.
//
// There are no standard headers here, as in NVRTC. fake_nvrtc.cpp rewrites __global__,
// __launch_bounds__ and __shared__ with alignas.
#pragma once

#include "abi.h"

using size_t = decltype(sizeof(0));
using tenon_emulator::Index3;

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __host__
#define __device__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
// Rewritten to static variables of a section (one block runs at a time), which is filled with NaN
// before each block.
#define __shared__ tenon_shared_variable

namespace tenon_emulator {

// hidden: every kernel library has its own
#define TENON_HIDDEN __attribute__((visibility("hidden")))
TENON_HIDDEN inline const Runtime* runtime = nullptr;
TENON_HIDDEN inline const Entry* entries = nullptr;

template <class T>
struct Plain {
  using type = T;
  static constexpr bool is_pointer = false;
};
template <class T>
struct Plain<T*> {
  using type = T*;
  static constexpr bool is_pointer = true;
};

template <unsigned... I>
struct Indices {};
template <unsigned N, unsigned... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <unsigned... I>
struct MakeIndices<0, I...> {
  using type = Indices<I...>;
};

template <auto Function>
struct Call;
template <class... P, void (*Function)(P...)>
struct Call<Function> {
  static constexpr unsigned sizes[] = {sizeof(P)..., 0};
  static constexpr bool is_pointer[] = {Plain<P>::is_pointer..., false};
  template <unsigned... I>
  static void unpack([[maybe_unused]] void** params, Indices<I...>) {
    Function(*static_cast<P*>(params[I])...);
  }
  static void call(void** params) { unpack(params, typename MakeIndices<sizeof...(P)>::type{}); }
};

/// Defined behind every kernel: enters it into the library's list when the library is loaded.
template <auto Function>
struct Entered : Entry {
  template <class... P>
  static constexpr int count(void (*)(P...)) {
    return sizeof...(P);
  }
  Entered(const char* kernel, unsigned threads)
      : Entry{kernel,
              Call<Function>::call,
              count(Function),
              Call<Function>::sizes,
              Call<Function>::is_pointer,
              threads,
              entries} {
    entries = this;
  }
};

template <class To, class From>
__forceinline__ To bits_as(From from) {
  return __builtin_bit_cast(To, from);
}

}  // namespace tenon_emulator

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
TENON_HIDDEN inline uint3 threadIdx, blockIdx;
TENON_HIDDEN inline dim3 gridDim, blockDim;
constexpr int warpSize = 32;

__forceinline__ void __syncthreads() { tenon_emulator::runtime->sync_block(); }
__forceinline__ void __syncwarp(unsigned = 0xffffffffu) { tenon_emulator::runtime->sync_warp(); }
__forceinline__ void __threadfence() {}
__forceinline__ void __threadfence_block() {}
__forceinline__ void __trap() { tenon_emulator::runtime->trap("__trap()"); }

// Vector types, aligned as on a GPU.
#define TENON_VECTOR(type, name, align2, align4)                            \
  struct __align__(align2) name##2 {                                        \
    type x, y;                                                              \
  };                                                                        \
  struct __align__(align4) name##4 {                                        \
    type x, y, z, w;                                                        \
  };                                                                        \
  __forceinline__ name##2 make_##name##2(type x, type y) { return {x, y}; } \
  __forceinline__ name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
TENON_VECTOR(float, float, 8, 16)
TENON_VECTOR(double, double, 16, 16)
TENON_VECTOR(int, int, 8, 16)
TENON_VECTOR(unsigned, uint, 8, 16)
TENON_VECTOR(short, short, 4, 8)
TENON_VECTOR(unsigned short, ushort, 4, 8)
TENON_VECTOR(signed char, char, 2, 4)
TENON_VECTOR(unsigned char, uchar, 2, 4)
TENON_VECTOR(long long, longlong, 16, 16)
TENON_VECTOR(unsigned long long, ulonglong, 16, 16)
#undef TENON_VECTOR

// The C maths functions; in CUDA the plain names take float too.
#define TENON_MATHS1(name)         \
  extern "C" double name(double);  \
  extern "C" float name##f(float); \
  __forceinline__ float name(float x) { return name##f(x); }
#define TENON_MATHS2(name)                \
  extern "C" double name(double, double); \
  extern "C" float name##f(float, float); \
  __forceinline__ float name(float x, float y) { return name##f(x, y); }
TENON_MATHS1(exp)
TENON_MATHS1(exp2)
TENON_MATHS1(expm1)
TENON_MATHS1(log)
TENON_MATHS1(log2)
TENON_MATHS1(log10)
TENON_MATHS1(log1p)
TENON_MATHS1(sin)
TENON_MATHS1(cos)
TENON_MATHS1(tan)
TENON_MATHS1(asin)
TENON_MATHS1(acos)
TENON_MATHS1(atan)
TENON_MATHS1(sinh)
TENON_MATHS1(cosh)
TENON_MATHS1(tanh)
TENON_MATHS1(asinh)
TENON_MATHS1(acosh)
TENON_MATHS1(atanh)
TENON_MATHS1(erf)
TENON_MATHS1(erfc)
TENON_MATHS1(lgamma)
TENON_MATHS1(tgamma)
TENON_MATHS1(sqrt)
TENON_MATHS1(cbrt)
TENON_MATHS1(fabs)
TENON_MATHS1(floor)
TENON_MATHS1(ceil)
TENON_MATHS1(trunc)
TENON_MATHS1(round)
TENON_MATHS1(rint)
TENON_MATHS1(nearbyint)
TENON_MATHS2(pow)
TENON_MATHS2(fmod)
TENON_MATHS2(atan2)
TENON_MATHS2(fmin)
TENON_MATHS2(fmax)
TENON_MATHS2(copysign)
TENON_MATHS2(hypot)
TENON_MATHS2(remainder)
#undef TENON_MATHS1
#undef TENON_MATHS2
extern "C" double fma(double, double, double);
extern "C" float fmaf(float, float, float);
extern "C" double ldexp(double, int);
extern "C" float ldexpf(float, int);
extern "C" int printf(const char*, ...);
extern "C" void* memcpy(void*, const void*, size_t);
extern "C" void* memset(void*, int, size_t);
__forceinline__ float fma(float a, float b, float c) { return fmaf(a, b, c); }
__forceinline__ float rsqrtf(float x) {
  return static_cast<float>(1.0 / sqrt(static_cast<double>(x)));
}
__forceinline__ double rsqrt(double x) { return 1.0 / sqrt(x); }
__forceinline__ float rsqrt(float x) { return rsqrtf(x); }
__forceinline__ bool isnan(float x) { return __builtin_isnan(x); }
__forceinline__ bool isnan(double x) { return __builtin_isnan(x); }
__forceinline__ bool isinf(float x) { return __builtin_isinf(x); }
__forceinline__ bool isinf(double x) { return __builtin_isinf(x); }
__forceinline__ bool isfinite(float x) { return __builtin_isfinite(x); }
__forceinline__ bool isfinite(double x) { return __builtin_isfinite(x); }
__forceinline__ float abs(float x) { return __builtin_fabsf(x); }
__forceinline__ double abs(double x) { return __builtin_fabs(x); }
__forceinline__ int abs(int x) { return x < 0 ? -x : x; }
__forceinline__ long long abs(long long x) { return x < 0 ? -x : x; }

#define TENON_MINMAX(type)                                           \
  __forceinline__ type min(type a, type b) { return b < a ? b : a; } \
  __forceinline__ type max(type a, type b) { return a < b ? b : a; }
TENON_MINMAX(int)
TENON_MINMAX(unsigned)
TENON_MINMAX(long)
TENON_MINMAX(unsigned long)
TENON_MINMAX(long long)
TENON_MINMAX(unsigned long long)
#undef TENON_MINMAX
__forceinline__ float min(float a, float b) { return fminf(a, b); }
__forceinline__ float max(float a, float b) { return fmaxf(a, b); }
__forceinline__ double min(double a, double b) { return fmin(a, b); }
__forceinline__ double max(double a, double b) { return fmax(a, b); }

// Device functions with special names.
__forceinline__ int __float_as_int(float x) { return tenon_emulator::bits_as<int>(x); }
__forceinline__ unsigned __float_as_uint(float x) { return tenon_emulator::bits_as<unsigned>(x); }
__forceinline__ float __int_as_float(int x) { return tenon_emulator::bits_as<float>(x); }
__forceinline__ float __uint_as_float(unsigned x) { return tenon_emulator::bits_as<float>(x); }
__forceinline__ long long __double_as_longlong(double x) {
  return tenon_emulator::bits_as<long long>(x);
}
__forceinline__ double __longlong_as_double(long long x) {
  return tenon_emulator::bits_as<double>(x);
}
__forceinline__ float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
__forceinline__ double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
// Through volatile, so that the compiler cannot contract them into a fused operation.
__forceinline__ float __fmul_rn(float a, float b) {
  volatile float product = a * b;
  return product;
}
__forceinline__ float __fadd_rn(float a, float b) {
  volatile float x = a, y = b;
  return x + y;
}
__forceinline__ float __fsub_rn(float a, float b) { return __fadd_rn(a, -b); }
__forceinline__ double __dmul_rn(double a, double b) {
  volatile double product = a * b;
  return product;
}
__forceinline__ double __dadd_rn(double a, double b) {
  volatile double x = a, y = b;
  return x + y;
}
__forceinline__ float __fdiv_rn(float a, float b) { return a / b; }
__forceinline__ float __frcp_rn(float a) { return 1.0f / a; }
__forceinline__ float __fsqrt_rn(float a) { return sqrtf(a); }
__forceinline__ float __fdividef(float a, float b) { return a / b; }
__forceinline__ float __expf(float x) { return expf(x); }
__forceinline__ float __logf(float x) { return logf(x); }
__forceinline__ unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
__forceinline__ unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
__forceinline__ int __popc(unsigned x) { return __builtin_popcount(x); }
__forceinline__ int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
__forceinline__ int __ffs(int x) { return __builtin_ffs(x); }
__forceinline__ int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
__forceinline__ int __float2int_rz(float x) { return static_cast<int>(x); }
template <class T>
__forceinline__ T __ldg(const T* p) {
  return *p;
}
template <class T>
__forceinline__ T __ldcs(const T* p) {
  return *p;
}
template <class T>
__forceinline__ void __stcs(T* p, T value) {
  *p = value;
}

// One thread runs at a time, so plain code is atomic.
#define TENON_ATOMIC(name, result)        \
  template <class T>                      \
  __forceinline__ T name(T* p, T value) { \
    const T old = *p;                     \
    *p = result;                          \
    return old;                           \
  }
TENON_ATOMIC(atomicAdd, old + value)
TENON_ATOMIC(atomicMax, old < value ? value : old)
TENON_ATOMIC(atomicMin, value < old ? value : old)
TENON_ATOMIC(atomicExch, value)
TENON_ATOMIC(atomicOr, old | value)
TENON_ATOMIC(atomicAnd, old& value)
#undef TENON_ATOMIC
template <class T>
__forceinline__ T atomicCAS(T* p, T expected, T value) {
  const T old = *p;
  if (old == expected) *p = value;
  return old;
}

// What the driver looks up. The section exists even in a library without shared variables.
__shared__ unsigned char tenon_no_shared[1];
extern "C" unsigned char __start_tenon_shared[] TENON_HIDDEN;
extern "C" unsigned char __stop_tenon_shared[] TENON_HIDDEN;
extern "C" __attribute__((visibility("default"))) tenon_emulator::Module tenon_emulated_module() {
  return {reinterpret_cast<Index3*>(&threadIdx),
          reinterpret_cast<Index3*>(&blockIdx),
          reinterpret_cast<Index3*>(&gridDim),
          reinterpret_cast<Index3*>(&blockDim),
          &tenon_emulator::runtime,
          __start_tenon_shared,
          __stop_tenon_shared,
          &tenon_emulator::entries};
}
