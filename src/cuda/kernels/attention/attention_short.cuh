// Attention of sequences of up to 64 positions and its gradients. A block holds all queries and all
// keys of one head, 16 queries a warp; the head size is at most 64.
//
// All weights of a query are present at once, so the backward pass is one launch and computes once
// what the two kernels of attention.cuh compute twice. It recomputes the softmax from the scores
// and takes delta from the weights. It does not use the log-sum-exp, whose rounding error would
// enter all weights. Weights and score gradients are transposed through shared memory.
//
// Bound by the latency of one round of loads and products, so occupancy matters: the 16-bit kernels
// use few enough registers for four blocks per multiprocessor. Two blocks of float32 tiles fill the
// shared memory.
#pragma once

#include "cuda/kernels/attention/attention.cuh"

namespace tenon::cuda {

/// Scaled and masked scores of one head, in units of log2. The mask's strides fit 32 bits.
template <class C>
struct ShortScores {
  const AttentionArgs& a;
  const unsigned char* mask = nullptr;
  float scale;

  TENON_DEVICE ShortScores(const AttentionArgs& args, int b, int h)
      : a(args), scale(args.scale * kLog2E) {
    constexpr int kBytes = C::kMask == AttentionMask::Bool      ? 1
                           : C::kMask == AttentionMask::Float32 ? 4
                                                                : 2;
    if constexpr (C::kMask != AttentionMask::None)
      mask = static_cast<const unsigned char*>(a.mask.data) +
             (b * a.mask.stride[0] + h * a.mask.stride[1]) * kBytes;
  }
  TENON_DEVICE float seen(float score, int i, int j) const {
    if (j >= static_cast<int>(a.keys) || i >= static_cast<int>(a.queries) || (C::kCausal && j > i))
      return minus_infinity();
    const float scaled = score * scale;
    if constexpr (C::kMask == AttentionMask::None) {
      return scaled;
    } else {
      const int at =
          i * static_cast<int>(a.mask.stride[2]) + j * static_cast<int>(a.mask.stride[3]);
      if constexpr (C::kMask == AttentionMask::Bool)
        return mask[at] != 0 ? scaled : minus_infinity();
      else if constexpr (C::kMask == AttentionMask::Float32)
        return scaled + added_score(element::Float32::load(mask, at));
      else if constexpr (C::kMask == AttentionMask::Float16)
        return scaled + added_score(element::Float16::load(mask, at));
      else
        return scaled + added_score(element::BFloat16::load(mask, at));
    }
  }
};

/// d += leftᵀ (16 columns of left, from column0) · right tile: sums over the rows of both.
template <class T, class Left, class Right>
TENON_DEVICE void multiply_across(float (&d)[Right::kCols / 8][4], const Left& left, int column0,
                                  const Right& right) {
  if constexpr (kIs16Bit<T>) {
    const int lane = static_cast<int>(threadIdx.x) % 32, i = lane / 8;
#pragma unroll
    for (int k = 0; k < Left::kRows; k += 16) {
      unsigned a[4];
      ldmatrix_x4_trans(a,
                        left.at + (k + i / 2 * 8 + lane % 8) * Left::kPitch + column0 + i % 2 * 8);
      multiply_steps<T>(d, a, right, k);
    }
  } else {
    T::template multiply_across<T>(d, left, column0, right);
  }
}

/// Writes a warp's 16 x 64 results to the rows from row0 on of a tile, rounded to the tile's type.
template <class T, class Tile>
TENON_DEVICE void keep_rounded(const Tile& tile, const float (&x)[8][4], int row0) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int n = 0; n < 8; ++n)
      store_pair<T>(tile.at + (row0 + g + 8 * half) * Tile::kPitch + n * 8 + 2 * t, x[n][2 * half],
                    x[n][2 * half + 1]);
}

/// exp2 of a warp's 16 x 64 scaled and masked scores minus the maximum of their row. `total`: the
/// sum of a row.
template <class C>
TENON_DEVICE void short_powers(float (&p)[8][4], const ShortScores<C>& scores, int warp_row,
                               float (&most)[2], float (&total)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row + g + 8 * half;
    most[half] = minus_infinity();
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& s = p[n][2 * half + e];
        s = scores.seen(s, row, n * 8 + 2 * t + e);
        most[half] = s > most[half] ? s : most[half];
      }
    for (int other = 1; other < 4; other *= 2) {
      const float theirs = shuffle_xor(most[half], other);
      most[half] = theirs > most[half] ? theirs : most[half];
    }
    const float shift = most[half] == minus_infinity() ? 0.0f : most[half];
    total[half] = 0.0f;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& s = p[n][2 * half + e];
        s = exp2_fast(s - shift);
        total[half] += s;
      }
    for (int other = 1; other < 4; other *= 2) total[half] += shuffle_xor(total[half], other);
  }
}

/// The forward pass. Grid: (1, batch * heads).
template <class C>
__device__ __forceinline__ void attention_short_forward(const AttentionArgs& a) {
  using T = typename C::Type;
  using Element = typename T::Element;
  using RowTile = AttentionTile<T, 64, C::kE>;
  using ValueTile = AttentionTile<T, 64, C::kF>;
  TENON_DYNAMIC_SHARED(shared);
  Element* const memory = reinterpret_cast<Element*>(shared);
  const RowTile q{memory}, k{memory + RowTile::kElements};
  const ValueTile v{memory + 2 * RowTile::kElements};
  const int heads = static_cast<int>(a.heads), b = static_cast<int>(blockIdx.y) / heads,
            h = static_cast<int>(blockIdx.y) % heads,
            of = h / (heads / static_cast<int>(a.kv_heads));
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4,
            warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  q.template stage<C::kSize>(head_of<T>(a.q, b, h), a.q.stride[1], a.queries);
  k.template stage<C::kSize>(head_of<T>(a.k, b, of), a.k.stride[1], a.keys);
  v.template stage<C::kValueSize>(head_of<T>(a.v, b, of), a.v.stride[1], a.keys);
  copy_async_commit();
  const ShortScores<C> scores(a, b, h);
  const AttentionKeeps<C> keeps(a, b, h);
  copy_async_wait<0>();
  q.round();
  k.round();
  v.round();
  __syncthreads();
  float p[8][4], most[2], total[2];
  clear(p);
  multiply_rows<64>(p, q, warp_row, k);
  short_powers<C>(p, scores, warp_row, most, total);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row + g + 8 * half;
    if (a.log != nullptr && t == 0 && row < a.queries)
      a.log[(static_cast<long long>(b) * heads + h) * a.queries + row] =
          most[half] * kLn2 + scalar::log(total[half]);
  }
  if (a.out.data == nullptr) return;
  if constexpr (C::kDrops != AttentionDrops::None) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const unsigned bits = keeps.of_keys(warp_row, n * 8);
#pragma unroll
      for (int e = 0; e < 4; ++e) p[n][e] = (bits >> e & 1u) != 0 ? p[n][e] : 0.0f;
    }
  }
  float y[C::kF / 8][4];
  clear(y);
  multiply_weights<64>(y, p, v);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float factor = keeps.scale * inverse_of<C>(total[half]);
#pragma unroll
    for (int n = 0; n < C::kF / 8; ++n) {
      y[n][2 * half] *= factor;
      y[n][2 * half + 1] *= factor;
    }
  }
  store_rows<T>(a.out, y, b, h, warp_row, a.queries, C::kValueSize);
}

/// Gradients of queries, keys and values; the keys have as many heads as the queries. Grid: (1,
/// batch * heads).
template <class C>
__device__ __forceinline__ void attention_short_backward(const AttentionArgs& a) {
  using T = typename C::Type;
  using Element = typename T::Element;
  using RowTile = AttentionTile<T, 64, C::kE>;
  using ValueTile = AttentionTile<T, 64, C::kF>;
  using ScoreTile = AttentionTile<T, 64, 64>;
  TENON_DYNAMIC_SHARED(shared);
  Element* const memory = reinterpret_cast<Element*>(shared);
  const RowTile q{memory}, k{memory + RowTile::kElements};
  const ValueTile dy{memory + 2 * RowTile::kElements};
  const ScoreTile slopes{dy.at + ValueTile::kElements};
  const ValueTile v{slopes.at + ScoreTile::kElements};
  // For 16-bit operands the weights have their own tile. For float32 operands memory is short: the
  // weights overwrite the values, which are no longer needed.
  const ScoreTile kept{kIs16Bit<T> ? v.at + ValueTile::kElements : v.at};
  const int heads = static_cast<int>(a.heads), b = static_cast<int>(blockIdx.y) / heads,
            h = static_cast<int>(blockIdx.y) % heads;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4,
            warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  q.template stage<C::kSize>(head_of<T>(a.q, b, h), a.q.stride[1], a.queries);
  k.template stage<C::kSize>(head_of<T>(a.k, b, h), a.k.stride[1], a.keys);
  v.template stage<C::kValueSize>(head_of<T>(a.v, b, h), a.v.stride[1], a.keys);
  dy.template stage<C::kValueSize>(head_of<T>(a.dy, b, h), a.dy.stride[1], a.queries);
  copy_async_commit();
  const ShortScores<C> scores(a, b, h);
  const AttentionKeeps<C> keeps(a, b, h);
  copy_async_wait<0>();
  q.round();
  k.round();
  v.round();
  dy.round();
  __syncthreads();
  float p[8][4], ds[8][4], most[2], total[2], taken[2] = {0.0f, 0.0f};
  clear(p);
  clear(ds);
  multiply_rows<64>(p, q, warp_row, k);
  multiply_rows<64>(ds, dy, warp_row, v);
  short_powers<C>(p, scores, warp_row, most, total);
  const float inverse[2] = {warp_row + g < a.queries ? inverse_of<C>(total[0]) : 0.0f,
                            warp_row + g + 8 < a.queries ? inverse_of<C>(total[1]) : 0.0f};
  if constexpr (!kIs16Bit<T>) __syncthreads();
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    unsigned bits = 15;
    if constexpr (C::kDrops != AttentionDrops::None) bits = keeps.of_keys(warp_row, n * 8);
    float left[4];  // the weights that the forward pass multiplied values by
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float factor = (bits >> e & 1u) != 0 ? keeps.scale : 0.0f;
      p[n][e] *= inverse[e / 2];
      ds[n][e] *= factor;
      taken[e / 2] += p[n][e] * ds[n][e];
      left[e] = p[n][e] * factor;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      store_pair<T>(kept.at + (warp_row + g + 8 * half) * ScoreTile::kPitch + n * 8 + 2 * t,
                    left[2 * half], left[2 * half + 1]);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half)
    for (int other = 1; other < 4; other *= 2) taken[half] += shuffle_xor(taken[half], other);
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) ds[n][e] = p[n][e] * (ds[n][e] - taken[e / 2]) * a.scale;
  keep_rounded<T>(slopes, ds, warp_row);
  if (a.out.data != nullptr) {
    float dq[C::kE / 8][4];
    clear(dq);
    multiply_weights<64>(dq, ds, k);
    store_rows<T>(a.out, dq, b, h, warp_row, a.queries, C::kSize);
  }
  __syncthreads();
  if (a.out_v.data != nullptr) {
    float dv[C::kF / 8][4];
    clear(dv);
    multiply_across<T>(dv, kept, warp_row, dy);
    store_rows<T>(a.out_v, dv, b, h, warp_row, a.keys, C::kValueSize);
  }
  if (a.out_k.data != nullptr) {
    float dk[C::kE / 8][4];
    clear(dk);
    multiply_across<T>(dk, slopes, warp_row, q);
    store_rows<T>(a.out_k, dk, b, h, warp_row, a.keys, C::kSize);
  }
}

}  // namespace tenon::cuda
