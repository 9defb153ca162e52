// The emulator's version of the one header that holds PTX and warp-wide intrinsics: the same
// functions, with the meanings documented there, for the host's compiler.
#pragma once

#include "scalar/convert.h"

#define TENON_DEVICE __device__ __forceinline__
#define TENON_DYNAMIC_SHARED(name) \
  unsigned char* const name = ::tenon_emulator::runtime->dynamic_shared()

namespace tenon::cuda {

using tenon_emulator::Mma;
using tenon_emulator::runtime;
using tenon_emulator::Shuffle;

TENON_DEVICE float bf16_to_float(unsigned short bits) { return scalar::from_bfloat16(bits); }
TENON_DEVICE unsigned short float_to_bf16(float x) {
  return static_cast<unsigned short>(scalar::bfloat16_of(x));
}
TENON_DEVICE float f16_to_float(unsigned short bits) { return scalar::from_float16(bits); }
TENON_DEVICE unsigned short float_to_f16(float x) {
  return static_cast<unsigned short>(scalar::float16_of(x));
}
TENON_DEVICE unsigned pack_bf16(float lo, float hi) {
  return scalar::bfloat16_of(lo) | (scalar::bfloat16_of(hi) << 16);
}
TENON_DEVICE unsigned pack_f16(float lo, float hi) {
  return scalar::float16_of(lo) | (scalar::float16_of(hi) << 16);
}
TENON_DEVICE unsigned to_tf32(float x) {
  const unsigned u = __float_as_uint(x), magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fffffffu;
  return magnitude == 0x7f800000u ? u : (u + 0x1000u) & ~0x1fffu;
}
TENON_DEVICE float exp2_fast(float x) {
  const float y = __builtin_exp2f(x);
  return y < 1.17549435e-38f ? 0.0f : y;
}
TENON_DEVICE float exp2_approximate(float x) { return __builtin_exp2f(x); }
TENON_DEVICE float reciprocal_approximate(float x) { return 1.0f / x; }
TENON_DEVICE float reciprocal_fast(float x) {
  const float y = 1.0f / x;
  return __builtin_fabsf(y) < 1.17549435e-38f ? __builtin_copysignf(0.0f, y) : y;
}
TENON_DEVICE float max_or_nan(float a, float b) { return a > b || a != a ? a : b; }
/// Kernels run one after another.
TENON_DEVICE void await_kernels() {}
TENON_DEVICE unsigned multiply_high(unsigned a, unsigned b) { return __umulhi(a, b); }

template <class T>
TENON_DEVICE T shuffle_xor(T x, int mask) {
  runtime->shuffle(Shuffle::Xor, &x, sizeof(T), mask);
  return x;
}
template <class T>
TENON_DEVICE T shuffle_down(T x, int delta) {
  runtime->shuffle(Shuffle::Down, &x, sizeof(T), delta);
  return x;
}
template <class T>
TENON_DEVICE T shuffle(T x, int lane) {
  runtime->shuffle(Shuffle::From, &x, sizeof(T), lane);
  return x;
}

TENON_DEVICE void mma_bf16_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  runtime->mma(Mma::Bf16, d, a, b);
}
TENON_DEVICE void mma_f16_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  runtime->mma(Mma::F16, d, a, b);
}
TENON_DEVICE void mma_tf32_m16n8k8(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  runtime->mma(Mma::Tf32, d, a, b);
}

TENON_DEVICE void ldmatrix_x4(unsigned (&r)[4], const void* shared) {
  runtime->load_matrix(4, false, r, shared);
}
TENON_DEVICE void ldmatrix_x4_trans(unsigned (&r)[4], const void* shared) {
  runtime->load_matrix(4, true, r, shared);
}
TENON_DEVICE void ldmatrix_x2(unsigned (&r)[2], const void* shared) {
  runtime->load_matrix(2, false, r, shared);
}
TENON_DEVICE void ldmatrix_x2_trans(unsigned (&r)[2], const void* shared) {
  runtime->load_matrix(2, true, r, shared);
}

TENON_DEVICE void copy_async_16(void* shared, const void* global, bool inside) {
  runtime->copy_async(shared, global, 16, inside);
}
TENON_DEVICE void copy_async_16_near(void* shared, const void* global) {
  runtime->copy_async(shared, global, 16, true);
}
TENON_DEVICE void copy_async_4(void* shared, const void* global, bool inside) {
  runtime->copy_async(shared, global, 4, inside);
}
TENON_DEVICE void copy_async_commit() { runtime->copy_async_commit(); }
template <int N>
TENON_DEVICE void copy_async_wait() {
  runtime->copy_async_wait(N);
}

TENON_DEVICE unsigned take_ticket(unsigned* counter) { return (*counter)++; }
TENON_DEVICE void raise_counter(unsigned* counter) { ++*counter; }
/// Blocks run one after another, lower numbers first: no other block could raise it later.
TENON_DEVICE void await_counter(const unsigned* counter, unsigned value) {
  if (*counter != value) runtime->trap("awaits a counter that nobody raises");
}

}  // namespace tenon::cuda
