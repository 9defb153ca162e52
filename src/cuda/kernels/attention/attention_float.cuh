// Attention's matrix products of float32 operands on tensor cores: rounded to tf32, or with nearly
// float32 accuracy.
//
// For float32 accuracy each operand is split into a high and a low tf32 part, and three of the four
// products are added (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores",
// 2022). The largest product has an accumulator of its own. At most 2^-21 of a product is lost.
// Tensor cores truncate sums instead of rounding them. The sums of a tile therefore start at zero
// and are added to the total in float32. An infinite operand, or one that rounds to infinity, gives
// NaN.
//
// Layout of the products by weights: a lane holds columns 2t and 2t + 1 of the weights, but the
// left operand of mma needs columns t and t + 4. The order of a sum is free. Row 2t of the right
// tile is therefore used for t, and row 2t + 1 for t + 4, so no lane exchange is needed. The order
// of result columns is free too: column c of accumulator j of kGroup is column kGroup * c + j, so a
// lane loads and stores neighbours.
#pragma once

#include "cuda/kernels/attention/attention_tile.cuh"
#include "scalar/convert.h"

namespace tenon::cuda {

/// Number of neighbouring result columns that a lane holds.
template <int cols>
constexpr int kAttentionGroup = cols % 32 == 0 ? 4 : 2;

template <int count>
struct alignas(4 * count) AttentionFloats {
  float v[count];
};

/// For an element type T: rounded() rounds a number as the operands are stored.
struct AttentionWide {
  using Element = float;
  static TENON_DEVICE float wide(float x) { return x; }

  /// d += p · right tile.
  template <class T, int inner, class Right>
  static TENON_DEVICE void multiply_weights(float (&d)[Right::kCols / 8][4],
                                            const float (&p)[inner / 8][4], const Right& right) {
    sum_rows<T, inner>(d, right, [&p](int k) {
      const float(&w)[4] = p[k / 8];
      return left_of<T>(T::rounded(w[0]), T::rounded(w[2]), T::rounded(w[1]), T::rounded(w[3]));
    });
  }
  /// d += leftᵀ (16 columns of left, from column0) · right tile.
  template <class T, class Left, class Right>
  static TENON_DEVICE void multiply_across(float (&d)[Right::kCols / 8][4], const Left& left,
                                           int column0, const Right& right) {
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const float* const from = left.at + 2 * t * Left::kPitch + column0 + g;
    sum_rows<T, Left::kRows>(d, right, [from](int k) {
      const float *const first = from + k * Left::kPitch, *const second = first + Left::kPitch;
      return left_of<T>(first[0], first[8], second[0], second[8]);
    });
  }
  template <class T>
  static TENON_DEVICE void store_pair(float* to, float x, float y) {
    *reinterpret_cast<AttentionFloats<2>*>(to) = {{T::rounded(x), T::rounded(y)}};
  }

  template <int tiles>
  static TENON_DEVICE void store_row(float* to, const float (&x)[tiles][4], int half, int real) {
    constexpr int kGroup = kAttentionGroup<tiles * 8>;
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int u = 0; u < tiles; u += kGroup)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = u * 8 + (2 * t + e) * kGroup;
        AttentionFloats<kGroup> row;
#pragma unroll
        for (int j = 0; j < kGroup; ++j) row.v[j] = x[u + j][2 * half + e];
        if (column < real) *reinterpret_cast<AttentionFloats<kGroup>*>(to + column) = row;
      }
  }

 private:
  template <class T>
  static TENON_DEVICE typename T::Left left_of(float a, float b, float c, float d) {
    return T::left(scalar::bits_of(a), scalar::bits_of(b), scalar::bits_of(c), scalar::bits_of(d));
  }
  /// Adds the products of two rows of a right tile; `from` is the lane's position in the first row.
  template <class T, int group, class Sums>
  static TENON_DEVICE void add_steps(Sums& sums, const typename T::Left& a, const float* from,
                                     int pitch) {
    using Row = AttentionFloats<group>;
    const Row first = *reinterpret_cast<const Row*>(from),
              second = *reinterpret_cast<const Row*>(from + pitch);
#pragma unroll
    for (int j = 0; j < group; ++j)
      sums.template add<false>(j, a,
                               T::right(scalar::bits_of(first.v[j]), scalar::bits_of(second.v[j])));
  }
  /// d += the sum over the rows of the right tile of left operand * row. Left operands come eight
  /// rows at a time.
  template <class T, int rows, class Right, class Lefts>
  static TENON_DEVICE void sum_rows(float (&d)[Right::kCols / 8][4], const Right& right,
                                    const Lefts& left_at) {
    constexpr int kGroup = kAttentionGroup<Right::kCols>;
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int u = 0; u < Right::kCols / 8; u += kGroup) {
      float part[kGroup][4];
      take<kGroup>(part, d + u);
      typename T::template Sums<kGroup> sums{part};
#pragma unroll
      for (int k = 0; k < rows; k += 8)
        add_steps<T, kGroup>(sums, left_at(k),
                             right.at + (k + 2 * t) * Right::kPitch + u * 8 + g * kGroup,
                             Right::kPitch);
      sums.finish();
      give<kGroup>(d + u, part);
    }
  }
  template <int count>
  static TENON_DEVICE void take(float (&part)[count][4], const float (*from)[4]) {
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) part[n][e] = from[n][e];
  }
  template <int count>
  static TENON_DEVICE void give(float (*to)[4], const float (&part)[count][4]) {
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) to[n][e] = part[n][e];
  }
};

/// Staged tiles are rounded in place; operands that come from accumulators are rounded when they
/// are multiplied or stored.
struct AttentionTf32 : AttentionWide {
  using Left = AttentionLeft;
  using Right = AttentionRight;
  static constexpr bool kRoundsTiles = true;
  static constexpr int kRows = 32, kGradientRows = 32;
  template <int tiles>
  using Sums = AttentionDirectSums<AttentionTf32, tiles>;
  static TENON_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_tf32_m16n8k8(d, a, b);
  }
  static TENON_DEVICE float rounded(float x) { return scalar::float_of(to_tf32(x)); }
  static TENON_DEVICE void round(float* four) {
    auto& x = *reinterpret_cast<AttentionFloats<4>*>(four);
    x = {{rounded(x.v[0]), rounded(x.v[1]), rounded(x.v[2]), rounded(x.v[3])}};
  }
  static TENON_DEVICE Left left(unsigned a, unsigned b, unsigned c, unsigned d) {
    return {{a, b, c, d}};
  }
  static TENON_DEVICE Right right(unsigned a, unsigned b) { return {{a, b}}; }
};

/// Elements in two parts. Tensor cores truncate the low part, which may have either sign.
template <int count>
struct AttentionParts {
  unsigned high[count], low[count];

  TENON_DEVICE void set(int i, unsigned bits) {
    const float x = scalar::float_of(bits);
    high[i] = to_tf32(x);
    low[i] = scalar::bits_of(x - scalar::float_of(high[i]));
  }
};

/// Products of the high parts, kept apart from the other products, which are 2^11 times smaller.
template <int tiles>
struct AttentionPartSums {
  float (&d)[tiles][4];
  float large[tiles][4] = {}, small[tiles][4] = {};

  template <bool permuted>
  TENON_DEVICE void add(int n, const AttentionParts<4>& a, const AttentionParts<2>& b) {
    if constexpr (permuted) mma_tf32_m16n8k8(small[n], a.high, b.low);
    mma_tf32_m16n8k8(small[n], a.low, b.high);
    if constexpr (!permuted) mma_tf32_m16n8k8(small[n], a.high, b.low);
    mma_tf32_m16n8k8(large[n], a.high, b.high);
  }
  TENON_DEVICE void finish() {
#pragma unroll
    for (int n = 0; n < tiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) d[n][e] += large[n][e] + small[n][e];
  }
};

struct AttentionF32 : AttentionWide {
  using Left = AttentionParts<4>;
  using Right = AttentionParts<2>;
  static constexpr bool kRoundsTiles = false;
  static constexpr int kRows = 32, kGradientRows = 16;
  template <int tiles>
  using Sums = AttentionPartSums<tiles>;
  static TENON_DEVICE float rounded(float x) { return x; }
  static TENON_DEVICE Left left(unsigned a, unsigned b, unsigned c, unsigned d) {
    Left x;
    x.set(0, a), x.set(1, b), x.set(2, c), x.set(3, d);
    return x;
  }
  static TENON_DEVICE Right right(unsigned a, unsigned b) {
    Right x;
    x.set(0, a), x.set(1, b);
    return x;
  }
};

}  // namespace tenon::cuda
