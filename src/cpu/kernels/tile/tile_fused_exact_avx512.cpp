// The fused loops (tile_fused.h) on vectors of 16 floats. A form is a struct whose of() computes
// one vector; all forms share the loop over a row, fused(). The compiler may not contract into
// multiply-adds here, because the bits must be those of single operations.
#include "cpu/kernels/tile/tile_fused.h"

namespace tenon::cpu {
namespace {

using std::int64_t;

constexpr int kWidth = 16, kVectors = 4;  // floats of a vector; vectors of running sums
typedef float V __attribute__((vector_size(64)));
typedef std::uint32_t U __attribute__((vector_size(64)));
typedef std::uint16_t H __attribute__((vector_size(32)));

inline U bits_of(V x) { return reinterpret_cast<U>(x); }
inline V float_of(U x) { return reinterpret_cast<V>(x); }

/// How an element is stored in memory.
struct Half {
  using Memory = std::uint16_t;
  static V load(const Memory* from) {
    H x;
    __builtin_memcpy(&x, from, sizeof x);
    return float_of(__builtin_convertvector(x, U) << 16);
  }
  static void store(V x, Memory* to) {
    const H half = __builtin_convertvector(bits_of(x) >> 16, H);
    __builtin_memcpy(to, &half, sizeof half);
  }
};
struct Float {
  using Memory = float;
  static V load(const Memory* from) {
    V x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
  static void store(V x, Memory* to) { __builtin_memcpy(to, &x, sizeof x); }
};

/// Bools: 1 and 0.
struct Truth {
  using Memory = std::uint8_t;
  static V load(const Memory* from) {
    typedef std::uint8_t Bytes __attribute__((vector_size(16)));
    Bytes x;
    __builtin_memcpy(&x, from, sizeof x);
    return __builtin_convertvector(x, U) != 0u ? V{} + 1.0f : V{};
  }
};

/// Rounds to bfloat16 and back: nearest even, NaN stays NaN.
inline V rounded(V x) {
  const U u = bits_of(x), even = u + 0x7fffu + ((u >> 16) & 1u), quiet = u | 0x400000u;
  return float_of((x == x ? even : quiet) & 0xffff0000u);
}
template <class Out>
V as_stored(V x) {
  if constexpr (sizeof(typename Out::Memory) == sizeof(float)) return x;
  return rounded(x);
}
inline V relu(V x) { return x < 0.0f ? V{} : x; }
inline V normalised(V x, const V* r) { return (x - r[0]) * r[1] + r[2]; }

template <class... M>
struct Memories {
  static constexpr int kCount = sizeof...(M);
};

// ---- Forms: `sums` and `stores` in the order of the form's text ----

/// The inputs of a form, the number of its row constants and sums, and the type that it stores.
template <int Scalars, int Sums, class To, class... In>
struct Reads {
  using Elements = Memories<In...>;
  using Out = To;
  static constexpr int kScalars = Scalars, kSums = Sums;
  static constexpr int kMore = 0;  // stores beyond the first
};

/// A batch's moments, computed with the result of a convolution.
struct Moments : Reads<0, 2, Half, Float> {
  static V of(const V* x, const V*, V* sums) {
    const V y = rounded(x[0]);
    sums[0] = y;
    sums[1] = y * y;
    return y;
  }
};

/// Normalisation and ReLU.
template <class In, class To>
struct Normalise : Reads<3, 0, To, In> {
  static V of(const V* x, const V* r, V*) { return as_stored<To>(relu(normalised(x[0], r))); }
};

/// The same plus the residual branch.
template <class In, class Past, class To>
struct NormaliseAdd : Reads<3, 0, To, In, Past> {
  static V of(const V* x, const V* r, V*) {
    return as_stored<To>(relu(normalised(x[0], r) + x[1]));
  }
};

/// The same plus a residual branch that is normalised too.
template <class In, class Past, class To>
struct NormaliseBoth : Reads<6, 0, To, In, Past> {
  static V of(const V* x, const V* r, V*) {
    return as_stored<To>(relu(normalised(x[0], r) + normalised(x[1], r + 3)));
  }
};

/// The gradient of a normalisation.
template <class In, class Grad, class To>
struct NormaliseGrad : Reads<5, 0, To, In, Grad> {
  static V of(const V* x, const V* r, V*) {
    return as_stored<To>((x[0] - r[0]) * r[1] * r[2] + x[1] * r[3] + r[4]);
  }
};

/// The same after a ReLU's gradient.
struct NormaliseMaskedGrad : Reads<7, 0, Half, Half, Half, Half> {
  static V of(const V* x, const V* r, V*) {
    const V grad = x[1] <= r[3] ? r[4] : x[2];
    return rounded((x[0] - r[0]) * r[1] * r[2] + grad * r[5] + r[6]);
  }
};

/// A gradient, and the sums of its product with a ReLU's mask that the preceding normalisation
/// needs.
struct MaskedSums : Reads<3, 2, Half, Half, Float, Half> {
  static V of(const V* x, const V* r, V* sums) {
    const V past = rounded(x[1]), grad = x[0] <= r[0] ? r[1] : past;
    sums[0] = grad * (x[2] - r[2]);
    sums[1] = grad;
    return past;
  }
};

/// A ReLU's gradient for the sum of a block's gradient and the residual branch's, and the same
/// sums.
template <class Past>
struct AddMaskedSums : Reads<3, 2, Half, Past, Past, Float, Half> {
  static V of(const V* x, const V* r, V* sums) {
    const V grad = rounded(x[0] <= r[0] ? r[1] : x[1] + x[2]);
    sums[0] = grad * (x[3] - r[2]);
    sums[1] = grad;
    return grad;
  }
};

/// The same where the residual branch has one of two gradients.
struct ChooseMaskedSums : Reads<5, 2, Half, Half, Truth, Float, Half> {
  static V of(const V* x, const V* r, V* sums) {
    const V past = x[1] != 0.0f ? r[2] : r[3];
    const V grad = rounded(x[0] <= r[0] ? r[1] : past + x[2]);
    sums[0] = grad * (x[3] - r[4]);
    sums[1] = grad;
    return grad;
  }
};

/// A ReLU's gradient.
template <class In, class To>
struct Masked : Reads<2, 0, To, In, Float> {
  static V of(const V* x, const V* r, V*) { return as_stored<To>(x[0] <= r[0] ? r[1] : x[1]); }
};

/// A ReLU's gradient for the sum of a block's gradient and the residual branch's.
template <class In, class First, class Second, class To>
struct AddMasked : Reads<2, 0, To, In, First, Second> {
  static V of(const V* x, const V* r, V*) {
    return as_stored<To>(x[0] <= r[0] ? r[1] : x[1] + x[2]);
  }
};

/// The same sums of a block with two normalisations.
struct AddMaskedSumsOfBoth : Reads<4, 3, Half, Half, Half, Float, Half, Half> {
  static V of(const V* x, const V* r, V* sums) {
    const V grad = rounded(x[0] <= r[0] ? r[1] : x[1] + x[2]);
    sums[0] = grad * (x[3] - r[2]);
    sums[1] = grad;
    sums[2] = grad * (x[4] - r[3]);
    return grad;
  }
};

/// The update of a weight by its gradient: weight decay, momentum, learning rate.
struct MomentumUpdate : Reads<3, 0, Float, Float, Float, Float> {
  static constexpr int kMore = 1;
  static V of(const V* x, const V* r, V* more) {
    const V velocity = x[0] * r[0] + (x[1] + x[2] * r[1]);
    more[0] = x[2] - velocity * r[2];
    return velocity;
  }
};

// ---- The loop ----

template <class M>
V load_some(const void* from, int64_t at, int64_t count) {
  typename M::Memory block[kWidth] = {};
  __builtin_memcpy(block, static_cast<const typename M::Memory*>(from) + at,
                   static_cast<std::size_t>(count) * sizeof block[0]);
  return M::load(block);
}
template <class M>
void store_some(V x, void* to, int64_t at, int64_t count) {
  typename M::Memory block[kWidth];
  M::store(x, block);
  __builtin_memcpy(static_cast<typename M::Memory*>(to) + at, block,
                   static_cast<std::size_t>(count) * sizeof block[0]);
}

template <class... M>
inline void load_all(Memories<M...>, const FusedRow& row, int64_t at, V* x) {
  int k = 0;
  (
      [&] {
        const auto* from = static_cast<const typename M::Memory*>(row.elements[k]) + at;
        __builtin_prefetch(reinterpret_cast<const char*>(from) + row.ahead[k]);
        x[k++] = M::load(from);
      }(),
      ...);
}
template <class... M>
inline void load_some(Memories<M...>, const FusedRow& row, int64_t at, int64_t count, V* x) {
  int k = 0;
  ((x[k] = load_some<M>(row.elements[k], at, count), ++k), ...);
}

/// As add_up and sum_of of tile_reduce.inc: halves are added until one number is left.
inline float add_up(const V* sums) {
  typedef float V8 __attribute__((vector_size(32)));
  typedef float V4 __attribute__((vector_size(16)));
  const V all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  V8 eight[2];
  V4 four[2];
  __builtin_memcpy(eight, &all, sizeof all);
  eight[0] += eight[1];
  __builtin_memcpy(four, eight, sizeof four);
  four[0] += four[1];
  return (four[0][0] + four[0][2]) + (four[0][1] + four[0][3]);
}

template <class Form>
void fused(const FusedRow& row) {
  using Elements = typename Form::Elements;
  using Out = typename Form::Out;
  constexpr int kElements = Elements::kCount, kSums = Form::kSums, kParts = kSums + Form::kMore + 1;
  V r[Form::kScalars + 1], sums[kSums + 1][kVectors];
  for (int k = 0; k < kSums; ++k)
    for (int v = 0; v < kVectors; ++v) sums[k][v] = V{};
  for (int k = 0; k < Form::kScalars; ++k) r[k] = *row.scalars[k] - V{};
  const auto out = [&](int k) { return static_cast<typename Out::Memory*>(row.outs[k]); };
  const auto vector = [&](int64_t at, int v) __attribute__((always_inline)) {
    V x[kElements], parts[kParts];
    load_all(Elements(), row, at, x);
    Out::store(Form::of(x, r, parts), out(0) + at);
    for (int k = 0; k < Form::kMore; ++k) Out::store(parts[kSums + k], out(k + 1) + at);
    for (int k = 0; k < kSums; ++k) sums[k][v] += parts[k];
  };
  int64_t at = 0;
  for (; at + kVectors * kWidth <= row.count; at += kVectors * kWidth) {
    vector(at, 0);
    vector(at + kWidth, 1);
    vector(at + 2 * kWidth, 2);
    vector(at + 3 * kWidth, 3);
  }
  for (; at + kWidth <= row.count; at += kWidth) vector(at, 0);
  double totals[kSums + 1];
  for (int k = 0; k < kSums; ++k) totals[k] = at > 0 ? static_cast<double>(add_up(sums[k])) : 0.0;
  if (const int64_t left = row.count - at; left > 0) {
    V x[kElements], parts[kParts];
    load_some(Elements(), row, at, left, x);
    store_some<Out>(Form::of(x, r, parts), out(0), at, left);
    for (int k = 0; k < Form::kMore; ++k) store_some<Out>(parts[kSums + k], out(k + 1), at, left);
    for (int k = 0; k < kSums; ++k)
      for (int64_t i = 0; i < left; ++i) totals[k] += static_cast<double>(parts[k][i]);
  }
  for (int k = 0; k < kSums; ++k) *row.sums[k] += totals[k];
}

constexpr FusedLoop kLoops[] = {
    {"+cast(a);+square(#1);>h#1", fused<Moments>},
    {">hrelu(add(mul(sub(h,r),r),r))", fused<Normalise<Half, Half>>},
    {">frelu(add(mul(sub(h,r),r),r))", fused<Normalise<Half, Float>>},
    {">hrelu(add(mul(sub(a,r),r),r))", fused<Normalise<Float, Half>>},
    {">frelu(add(mul(sub(f,r),r),r))", fused<Normalise<Float, Float>>},
    {">hrelu(add(add(mul(sub(h,r),r),r),h))", fused<NormaliseAdd<Half, Half, Half>>},
    {">hrelu(add(add(mul(sub(a,r),r),r),h))", fused<NormaliseAdd<Float, Half, Half>>},
    {">frelu(add(add(mul(sub(f,r),r),r),f))", fused<NormaliseAdd<Float, Float, Float>>},
    {">hrelu(add(add(mul(sub(h,r),r),r),add(mul(sub(h,r),r),r)))",
     fused<NormaliseBoth<Half, Half, Half>>},
    {">hrelu(add(add(mul(sub(a,r),r),r),add(mul(sub(f,r),r),r)))",
     fused<NormaliseBoth<Float, Float, Half>>},
    {">frelu(add(add(mul(sub(f,r),r),r),add(mul(sub(f,r),r),r)))",
     fused<NormaliseBoth<Float, Float, Float>>},
    {">hadd(add(mul(mul(sub(h,r),r),r),mul(h,r)),r)", fused<NormaliseGrad<Half, Half, Half>>},
    {">hadd(add(mul(mul(sub(h,r),r),r),mul(f,r)),r)", fused<NormaliseGrad<Half, Float, Half>>},
    {">fadd(add(mul(mul(sub(f,r),r),r),mul(f,r)),r)", fused<NormaliseGrad<Float, Float, Float>>},
    {">hadd(add(mul(mul(sub(h,r),r),r),mul(where(le(h,r),r,h),r)),r)", fused<NormaliseMaskedGrad>},
    {"+mul(where(le(h,r),r,cast(a)),sub(h,r));+#4;>h#3", fused<MaskedSums>},
    {"+mul(cast(where(le(h,r),r,add(h,a))),sub(h,r));+#6;>h#6", fused<AddMaskedSums<Half>>},
    {"+mul(cast(where(le(f,r),r,add(f,a))),sub(h,r));+#6;>h#6", fused<AddMaskedSums<Float>>},
    {"+mul(cast(where(le(h,r),r,add(h,a))),sub(h,r));+#6;+mul(#6,sub(h,r));>h#6",
     fused<AddMaskedSumsOfBoth>},
    {"+mul(cast(where(le(h,r),r,add(where(b,r,r),a))),sub(h,r));+#7;>h#7", fused<ChooseMaskedSums>},
    {">fwhere(le(f,r),r,a)", fused<Masked<Float, Float>>},
    {">fwhere(le(f,r),r,add(f,a))", fused<AddMasked<Float, Float, Float, Float>>},
    {">fwhere(le(f,r),r,add(a,f))", fused<AddMasked<Float, Float, Float, Float>>},
    {">hwhere(le(h,r),r,add(h,a))", fused<AddMasked<Half, Half, Float, Half>>},
    {">hwhere(le(f,r),r,add(a,h))", fused<AddMasked<Float, Float, Half, Half>>},
    {">fadd(mul(f,r),add(a,mul(f,r)))>fsub(#3,mul(#6,r))", fused<MomentumUpdate>},
};

}  // namespace

FusedLoops fused_loops_avx512() {
  return {kLoops, static_cast<int>(sizeof kLoops / sizeof kLoops[0])};
}

}  // namespace tenon::cpu
