// Contraction by its definition, one thread per result: float64, integers, and sizes beyond 2^31.
// Correct for every case and slow; not tuned.
//
// Operands as in gemm_args.cuh, of any element type; sums in double, float or wrapping 64-bit
// integers. Overwrites the epilogue's outputs.
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/gemm/gemm_args.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "scalar/arithmetic.h"

namespace tenon::cuda {

/// Splits an index into the digits d.
TENON_DEVICE void digits_of(const GemmAxis& axis, unsigned long long index, long long (&d)[3]) {
  unsigned long long rest = index;
  unsigned long long d1 = split<true>(rest, axis.size2);
  const unsigned long long d0 = split<true>(d1, axis.size1);
  d[0] = static_cast<long long>(d0);
  d[1] = static_cast<long long>(d1);
  d[2] = static_cast<long long>(rest);
}

/// The position of an element: from the operand's start, and in the layouts of its prologue.
template <int layouts>
struct Located {
  long long own = 0, more[layouts > 0 ? layouts : 1] = {};
};

template <int window, class P>
TENON_DEVICE bool locate(const GemmOperand& o, const P& prologue, const long long (&x)[3],
                         const long long (&y)[3], Located<P::kLayouts>& at) {
  for (int i = 0; i < 3; ++i) at.own += x[i] * o.outer.stride[i] + y[i] * o.inner.stride[i];
  if constexpr (P::kLayouts > 0)
    for (int j = 0; j < P::kLayouts; ++j)
      for (int i = 0; i < 3; ++i)
        at.more[j] += x[i] * prologue.layouts[j].outer[i] + y[i] * prologue.layouts[j].inner[i];
  if (window == 0) return true;
  long long u = o.outer.u0 + x[1] * o.outer.u_step + o.inner.u0 + y[1] * o.inner.u_step;
  long long v = o.outer.v0 + x[2] * o.outer.v_step + o.inner.v0 + y[2] * o.inner.v_step;
  if (window == 3) {
    const auto step_u = static_cast<long long>(o.step_u.value),
               step_v = static_cast<long long>(o.step_v.value);
    if (u < 0 || v < 0 || u % step_u != 0 || v % step_v != 0) return false;
    u /= step_u;
    v /= step_v;
    at.own += u * o.stride_u + v * o.stride_v;
    if constexpr (P::kLayouts > 0)
      for (int j = 0; j < P::kLayouts; ++j)
        at.more[j] += u * prologue.layouts[j].stride_u + v * prologue.layouts[j].stride_v;
  }
  return u >= 0 && u < o.limit_u && v >= 0 && v < o.limit_v;
}

template <class P>
struct IsNone {
  static constexpr bool value = false;
};
template <>
struct IsNone<NoPrologue> {
  static constexpr bool value = true;
};

/// kRound: operands are rounded to bfloat16 (1) or float16 (2) first.
template <int kRound, class T>
TENON_DEVICE T rounded(T x) {
  if constexpr (kRound == 1) return static_cast<T>(bf16_to_float(float_to_bf16(x)));
  if constexpr (kRound == 2) return static_cast<T>(f16_to_float(float_to_f16(x)));
  return x;
}

template <class Element, class T, class P>
TENON_DEVICE T element_at(const GemmOperand& o, const P& prologue, const Located<P::kLayouts>& at) {
  if constexpr (IsNone<P>::value) {
    return static_cast<T>(Element::load(o.data, at.own));
  } else {
    const typename P::Memory x[1] = {static_cast<const typename P::Memory*>(o.data)[at.own]};
    typename P::Result y[1];
    prologue.apply(x, prologue.template hold<1>(at.own, at.more), y);
    return static_cast<T>(y[0]);
  }
}

/// Computes the i'th result.
template <class ElementA, class ElementB, class T, int kWindowA, int kWindowB, int kInnerAxis,
          int kRound, class E, class PA, class PB>
TENON_DEVICE void plain_result(const GemmProblem& p, const GemmOperand& a, const GemmOperand& b,
                               const E& epilogue, unsigned long long i, const PA& prologue_a,
                               const PB& prologue_b, typename E::Sums& gathered) {
  const auto rows = static_cast<unsigned long long>(p.m),
             columns = static_cast<unsigned long long>(p.n);
  const unsigned long long n = i % columns, m = i / columns % rows, z = i / columns / rows;
  Located<PA::kLayouts> base_a;
  Located<PB::kLayouts> base_b;
  if constexpr (PA::kLayouts > 0)
    for (int j = 0; j < PA::kLayouts; ++j) base_a.more[j] = prologue_a.layouts[j].offset;
  if constexpr (PB::kLayouts > 0)
    for (int j = 0; j < PB::kLayouts; ++j) base_b.more[j] = prologue_b.layouts[j].offset;
  unsigned long long rest = z;
  for (int d = p.batch_axes - 1; d >= 0; --d) {
    const auto digit = static_cast<long long>(rest % p.batch_size[d].value);
    base_a.own += digit * p.batch_stride_a[d];
    base_b.own += digit * p.batch_stride_b[d];
    if constexpr (PA::kLayouts > 0)
      for (int j = 0; j < PA::kLayouts; ++j)
        base_a.more[j] += digit * prologue_a.layouts[j].batch[d];
    if constexpr (PB::kLayouts > 0)
      for (int j = 0; j < PB::kLayouts; ++j)
        base_b.more[j] += digit * prologue_b.layouts[j].batch[d];
    rest /= p.batch_size[d].value;
  }
  long long outer_a[3], outer_b[3];
  digits_of(a.outer, m, outer_a);
  digits_of(b.outer, n, outer_b);
  T sum = 0;
  for (long long k = 0; k < p.k; ++k) {
    long long inner[3];
    Located<PA::kLayouts> at_a = base_a;
    Located<PB::kLayouts> at_b = base_b;
    digits_of(a.inner, static_cast<unsigned long long>(k), inner);
    if (!locate<kWindowA>(a, prologue_a, outer_a, inner, at_a)) continue;
    digits_of(b.inner, static_cast<unsigned long long>(k), inner);
    if (!locate<kWindowB>(b, prologue_b, outer_b, inner, at_b)) continue;
    const T x = rounded<kRound>(element_at<ElementA, T>(a, prologue_a, at_a));
    const T y = rounded<kRound>(element_at<ElementB, T>(b, prologue_b, at_b));
    sum = scalar::add(sum, scalar::mul(x, y));
  }
  auto batch = static_cast<long long>(z) * p.batch_step,
       row = static_cast<long long>(m) + static_cast<long long>(z) * p.row_step;
  auto column = static_cast<long long>(n) + static_cast<long long>(z) * p.column_step;
  if (kInnerAxis == 1) {
    batch = static_cast<long long>(m / p.inner_size.value);
    row = static_cast<long long>(m % p.inner_size.value);
  } else if (kInnerAxis == 2) {
    batch = static_cast<long long>(n / p.inner_size.value);
    column = static_cast<long long>(n % p.inner_size.value);
  }
  epilogue.store(batch, row, column, sum, gathered);
}

/// ElementA, ElementB: of element.cuh; T: the type of the sums.
template <class ElementA, class ElementB, class T, int kWindowA, int kWindowB, int kInnerAxis,
          int kRound, int kThreads, class E, class PA = NoPrologue, class PB = NoPrologue>
TENON_DEVICE void plain_contraction(const GemmProblem& p, const GemmOperand& a,
                                    const GemmOperand& b, const E& epilogue,
                                    unsigned long long count, const PA& prologue_a = {},
                                    const PB& prologue_b = {}) {
  const unsigned long long i =
      static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  typename E::Sums gathered = E::no_sums();
  if (i < count)
    plain_result<ElementA, ElementB, T, kWindowA, kWindowB, kInnerAxis, kRound>(
        p, a, b, epilogue, i, prologue_a, prologue_b, gathered);
  if constexpr (E::kSums) epilogue.template end_block<kThreads>(gathered);
}

}  // namespace tenon::cuda
