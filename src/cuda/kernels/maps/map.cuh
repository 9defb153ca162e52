// Building blocks of generated map kernels: elements in memory and in registers, vector accesses,
// and division by numbers that are constant during a launch.
//
// In registers an element has its compute type: float for float16, bfloat16 and float32; double;
// int for bool (0 or 1), uint8, int8 and int32; long long. Nothing here depends on the map program.
#pragma once

#include "cuda/kernels/intrinsics.cuh"
#include "scalar/arithmetic.h"
#include "scalar/convert.h"

namespace tenon::cuda {

/// An element in memory whose type C++ lacks.
struct F16 {
  unsigned short bits;
};
struct BF16 {
  unsigned short bits;
};

/// One word of a kernel's arguments: 8 bytes of any type.
template <class T>
struct alignas(8) Word {
  T value;
};

__device__ __forceinline__ int upcast(bool x) { return x ? 1 : 0; }
__device__ __forceinline__ int upcast(unsigned char x) { return x; }
__device__ __forceinline__ int upcast(signed char x) { return x; }
__device__ __forceinline__ int upcast(int x) { return x; }
__device__ __forceinline__ long long upcast(long long x) { return x; }
__device__ __forceinline__ float upcast(F16 x) { return f16_to_float(x.bits); }
__device__ __forceinline__ float upcast(BF16 x) { return bf16_to_float(x.bits); }
__device__ __forceinline__ float upcast(float x) { return x; }
__device__ __forceinline__ double upcast(double x) { return x; }

/// Converts a register's number to an element of type M, rounded or wrapped.
template <class M>
struct Rounded {
  template <class T>
  static __device__ __forceinline__ M from(T x) {
    return static_cast<M>(x);
  }
};
template <>
struct Rounded<bool> {
  static __device__ __forceinline__ bool from(int x) { return x != 0; }
};
template <>
struct Rounded<F16> {
  static __device__ __forceinline__ F16 from(float x) { return {float_to_f16(x)}; }
};
template <>
struct Rounded<BF16> {
  static __device__ __forceinline__ BF16 from(float x) { return {float_to_bf16(x)}; }
};

/// The register's number after a round trip through memory of type M.
template <class M>
struct Rounding {
  template <class T>
  static __device__ __forceinline__ T of(T x) {
    return upcast(Rounded<M>::from(x));
  }
};
/// Converts a pair; the upper half already has the bits of a float. This takes one instruction; the
/// conversion of a single number runs at a quarter of its rate.
template <>
struct Rounding<BF16> {
  static __device__ __forceinline__ float of(float x) { return scalar::float_of(pack_bf16(0, x)); }
};
template <class M, class T>
__device__ __forceinline__ T rounded(T x) {
  return Rounding<M>::of(x);
}

// Functions of numbers that were rounded to 16 bits, on the special function unit. Their errors are
// far below the effect of that rounding on the result.

/// Relative error at most 3e-7 + 8e-8 |x|.
///
/// The selection is for NaN. ptxas takes the result of ex2 as a number above 0, and drops the
/// comparisons of log1p() that tell NaN.
__device__ __forceinline__ float exp_near(float x) {
  const float y = exp2_approximate(x * 1.44269504f);
  return x == x ? y : x;
}
/// Relative error at most 5e-6.
__device__ __forceinline__ float tanh_near(float x) {
  const float large =
      scalar::fused(-2.0f, reciprocal_fast(1.0f + exp2_fast(x * 2.88539008f)), 1.0f);
  const float small = scalar::fused(x * x * x, -0.333333333f, x);
  return scalar::magnitude(x) < 0.0625f ? small : large;
}
/// Relative error at most 1e-6 + 8e-8 |x|; 0 below x = -88.7.
__device__ __forceinline__ float sigmoid_near(float x) {
  const float y = reciprocal_approximate(1.0f + exp2_approximate(x * -1.44269504f));
  return x == x ? y : x;  // as in exp_near()
}

/// A coordinate for comparisons with other coordinates; -1 if x is out of the range of coordinates.
__device__ __forceinline__ int as_coordinate(long long x) {
  return x >= 0 && x <= 0x7fffffff ? static_cast<int>(x) : -1;
}

/// The number of elements from column j on that lie before column `end` of the row.
template <class Index>
__device__ __forceinline__ int columns_left(int end, Index j) {
  return end > j ? static_cast<int>(end - j) : 0;
}

/// W elements that are loaded and stored at once.
template <class M, int W>
struct alignas(sizeof(M) * W) Packed {
  M element[W];
};

template <class M>
__device__ __forceinline__ auto load(const M* at) {
  return upcast(*at);
}
template <class M, class T>
__device__ __forceinline__ void save(M* at, T x) {
  *at = Rounded<M>::from(x);
}

/// Elements per access: at most 16 bytes, at most N, at most W.
template <class M, int N, int W>
__device__ constexpr int access_width() {
  constexpr int widest = 16 / static_cast<int>(sizeof(M));
  constexpr int most = N < W ? N : W;
  return most < widest ? most : widest;
}

/// N neighbours whose first one is aligned to min(N, W) elements.
template <int W, class T, class M, int N>
__device__ __forceinline__ void load_row(T (&x)[N], const M* at) {
  constexpr int width = access_width<M, N, W>();
#pragma unroll
  for (int i = 0; i < N; i += width) {
    const auto packed = *reinterpret_cast<const Packed<M, width>*>(at + i);
#pragma unroll
    for (int j = 0; j < width; ++j) x[i + j] = upcast(packed.element[j]);
  }
}
template <int W, class T, class M, int N>
__device__ __forceinline__ void save_row(M* at, const T (&x)[N]) {
  constexpr int width = access_width<M, N, W>();
#pragma unroll
  for (int i = 0; i < N; i += width) {
    Packed<M, width> packed;
#pragma unroll
    for (int j = 0; j < width; ++j) packed.element[j] = Rounded<M>::from(x[i + j]);
    *reinterpret_cast<Packed<M, width>*>(at + i) = packed;
  }
}

/// Words of a GPU's widest access of `Bytes` bytes.
template <int Bytes>
struct WordOf;
template <>
struct WordOf<1> {
  using type = unsigned char;
};
template <>
struct WordOf<2> {
  using type = unsigned short;
};
template <>
struct WordOf<4> {
  using type = unsigned;
};
template <>
struct WordOf<8> {
  using type = uint2;
};
template <>
struct WordOf<16> {
  using type = uint4;
};

/// The same for memory that nothing writes while the kernel runs. The compiler may move such loads
/// across stores, so the loads of several iterations are in flight together.
template <class P>
__device__ __forceinline__ P fetch(const P* at) {
  using Raw = typename WordOf<sizeof(P)>::type;
  union {
    Raw raw;
    P element;
  } x;
  x.raw = __ldg(reinterpret_cast<const Raw*>(at));
  return x.element;
}
template <class M>
__device__ __forceinline__ auto load_constant(const M* at) {
  return upcast(fetch(at));
}
template <int W, class T, class M, int N>
__device__ __forceinline__ void load_constant_row(T (&x)[N], const M* at) {
  constexpr int width = access_width<M, N, W>();
#pragma unroll
  for (int i = 0; i < N; i += width) {
    const auto packed = fetch(reinterpret_cast<const Packed<M, width>*>(at + i));
#pragma unroll
    for (int j = 0; j < width; ++j) x[i + j] = upcast(packed.element[j]);
  }
}

/// W aligned neighbours as stored, and their numbers.
template <int W, class M>
__device__ __forceinline__ Packed<M, W> load_packed(const M* at) {
  return *reinterpret_cast<const Packed<M, W>*>(at);
}
template <int W, class M>
__device__ __forceinline__ Packed<M, W> load_constant_packed(const M* at) {
  return fetch(reinterpret_cast<const Packed<M, W>*>(at));
}
template <class T, class M, int W>
__device__ __forceinline__ void convert_row(T (&x)[W], const Packed<M, W>& packed) {
#pragma unroll
  for (int i = 0; i < W; ++i) x[i] = upcast(packed.element[i]);
}

/// The same as words, for loops that pass them from one iteration to the next: each element of a
/// struct would take a register there.
template <class M, int W>
struct PackedWords {
  typename WordOf<sizeof(M) * W>::type words;
};
template <int W, class M>
__device__ __forceinline__ PackedWords<M, W> load_words(const M* at) {
  return {*reinterpret_cast<const typename WordOf<sizeof(M) * W>::type*>(at)};
}
template <int W, class M>
__device__ __forceinline__ PackedWords<M, W> load_constant_words(const M* at) {
  return {__ldg(reinterpret_cast<const typename WordOf<sizeof(M) * W>::type*>(at))};
}
template <class T, class M, int W>
__device__ __forceinline__ void convert_row(T (&x)[W], const PackedWords<M, W>& packed) {
  union {
    PackedWords<M, W> words;
    Packed<M, W> elements;
  } row;
  row.words = packed;
  convert_row(x, row.elements);
}

/// N neighbouring mask elements as one word, from which the compiler extracts each element where it
/// is used. Bytes of a struct would take one register each.
template <int N>
struct PackedMask {
  unsigned long long bits;
};
template <>
struct PackedMask<4> {
  unsigned bits;
};
template <>
struct PackedMask<2> {
  unsigned short bits;
};
template <>
struct PackedMask<1> {
  unsigned char bits;
};
template <int N>
__device__ __forceinline__ PackedMask<N> load_mask(const bool* at) {
  static_assert(sizeof(PackedMask<N>) == N, "a byte each");
  return *reinterpret_cast<const PackedMask<N>*>(at);
}
template <int N>
__device__ __forceinline__ PackedMask<N> load_constant_mask(const bool* at) {
  return fetch(reinterpret_cast<const PackedMask<N>*>(at));
}
template <int N>
__device__ __forceinline__ int element_of(const PackedMask<N>& mask, int i) {
  return static_cast<int>(mask.bits >> (8 * i) & 1u);
}

/// n / divisor for 0 <= n < 2^31 by a multiplication (Granlund and Montgomery, "Division by
/// invariant integers using multiplication", PLDI 1994). The host fills it in.
struct Divider {
  unsigned multiplier, shift;
};
__device__ __forceinline__ int quotient(int n, Divider by, long long) {
  const unsigned u = static_cast<unsigned>(n);
  const unsigned high = static_cast<unsigned>(
      (static_cast<unsigned long long>(u) * static_cast<unsigned long long>(by.multiplier)) >> 32);
  return static_cast<int>((high + u) >> by.shift);
}
/// Iteration spaces of 2^31 elements and more use division.
__device__ __forceinline__ long long quotient(long long n, Divider, long long divisor) {
  return n / divisor;
}

}  // namespace tenon::cuda
