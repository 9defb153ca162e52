// Attention and its gradients on tensor cores with float32 sums, one tile of scores at a time (Dao,
// "FlashAttention-2", 2023). Operands are 16-bit, or float32 (attention_float.cuh).
//
// Tiles: a block owns 64 queries (forward, gradient of the query) or 64 keys (gradients of key and
// value) of one head, 16 rows a warp. It loops over the tiles of the other side. Asynchronous
// copies stage the next tile in shared memory while the current tile is computed. The backward pass
// recomputes the weights from the stored log-sum-exp (`log`). It uses two kernels, and no block
// adds to another block's result, so results are deterministic. All results are overwritten.
//
// Precision: the rounding error of a log-sum-exp grows with the scores. At a score of 200 the
// recomputed weights have a relative error of 1e-5, the same for all weights of a query. Where one
// weight dominates, the terms of its gradient cancel, and the error is 1e-5 of the cancelled terms.
// For float32 operands the weights are therefore divided by their sum, which the kernel of the
// queries computes. The kernel of the keys computes scores and weight gradients with the same bits,
// and delta is summed in the same way as the weight gradients.
//
// Layout: operands have rows of contiguous elements, 16 bytes aligned. The head size is a multiple
// of 8 and is padded with zeros to a multiple of 16. Compute-bound: per score, 4 * size operations
// forward and 14 * size backward.
#pragma once

#include "cuda/kernels/attention/attention_float.cuh"
#include "cuda/kernels/attention/attention_tile.cuh"
#include "cuda/kernels/attention/attention_weights.cuh"
#include "scalar/log.h"

namespace tenon::cuda {

template <class C>
__device__ __forceinline__ void attention_forward(const AttentionArgs& a) {
  using T = typename C::Type;
  using Element = typename T::Element;
  constexpr int kKeys = C::kRows;
  using QTile = AttentionTile<T, kAttentionRows, C::kE>;
  using KTile = AttentionTile<T, kKeys, C::kE>;
  using VTile = AttentionTile<T, kKeys, C::kF>;
  TENON_DYNAMIC_SHARED(shared);
  Element* const memory = reinterpret_cast<Element*>(shared);
  const QTile q{memory};
  const auto k_tile = [&](int s) {
    return KTile{memory + QTile::kElements + s * KTile::kElements};
  };
  const auto v_tile = [&](int s) {
    return VTile{memory + QTile::kElements + 2 * KTile::kElements + s * VTile::kElements};
  };
  // With a causal mask later queries see more keys: start the longest blocks first.
  const long long block = static_cast<long long>(gridDim.x - 1 - blockIdx.x),
                  h = static_cast<long long>(blockIdx.y) % a.heads,
                  b = static_cast<long long>(blockIdx.y) / a.heads, of = h / (a.heads / a.kv_heads);
  const long long q0 = block * kAttentionRows;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4,
            warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const Element *const kp = head_of<T>(a.k, b, of), *const vp = head_of<T>(a.v, b, of);
  const long long seen = C::kCausal && q0 + kAttentionRows < a.keys ? q0 + kAttentionRows : a.keys;
  const int blocks = static_cast<int>((seen + kKeys - 1) / kKeys);
  const auto stage = [&](int j) {
    const long long k0 = static_cast<long long>(j) * kKeys;
    k_tile(j % 2).template stage<C::kSize>(kp + k0 * a.k.stride[1], a.k.stride[1], a.keys - k0);
    v_tile(j % 2).template stage<C::kValueSize>(vp + k0 * a.v.stride[1], a.v.stride[1],
                                                a.keys - k0);
    copy_async_commit();
  };
  q.template stage<C::kSize>(head_of<T>(a.q, b, h) + q0 * a.q.stride[1], a.q.stride[1],
                             a.queries - q0);
  stage(0);
  float y[C::kF / 8][4], largest[2], total[2] = {0.0f, 0.0f};
  clear(y);
  largest[0] = largest[1] = minus_infinity();
  const AttentionKeeps<C> keeps(a, b, h);
  for (int j = 0; j < blocks; ++j) {
    if (j + 1 < blocks) {
      stage(j + 1);
      copy_async_wait<1>();
    } else {
      copy_async_wait<0>();
    }
    if (j == 0) q.round();
    k_tile(j % 2).round();
    v_tile(j % 2).round();
    __syncthreads();
    float p[kKeys / 8][4];
    clear(p);
    multiply_rows<kKeys>(p, q, warp_row, k_tile(j % 2));
    const long long k0 = static_cast<long long>(j) * kKeys;
    const bool all = sees_all<C>(a, q0 + warp_row, k0, kKeys);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const long long row = q0 + warp_row + g + 8 * half;
      float most = largest[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& s = p[n][2 * half + e];
          s = seen_score<C>(a, s, b, h, row, k0 + n * 8 + 2 * t + e, all);
          most = s > most ? s : most;
        }
      for (int other = 1; other < 4; other *= 2) {
        const float theirs = shuffle_xor(most, other);
        most = theirs > most ? theirs : most;
      }
      // The maximum of a query that has seen no key yet is -infinity; subtracting it would give
      // NaN.
      const float shift = most == minus_infinity() ? 0.0f : most,
                  factor = exp2_fast(largest[half] - shift);
      largest[half] = most;
      total[half] *= factor;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& s = p[n][2 * half + e];
          s = exp2_fast(s - shift);
          total[half] += s;
        }
#pragma unroll
      for (int n = 0; n < C::kF / 8; ++n) {
        y[n][2 * half] *= factor;
        y[n][2 * half + 1] *= factor;
      }
    }
    if constexpr (C::kDrops != AttentionDrops::None) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        const unsigned bits = keeps.of_keys(q0 + warp_row, k0 + n * 8);
#pragma unroll
        for (int e = 0; e < 4; ++e) p[n][e] = (bits >> e & 1u) != 0 ? p[n][e] : 0.0f;
      }
    }
    multiply_weights<kKeys>(y, p, v_tile(j % 2));
    __syncthreads();
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    for (int other = 1; other < 4; other *= 2) total[half] += shuffle_xor(total[half], other);
    const float inverse = inverse_of<C>(total[half]),
                factor = C::kDrops == AttentionDrops::None ? inverse : inverse * keeps.scale;
#pragma unroll
    for (int n = 0; n < C::kF / 8; ++n) {
      y[n][2 * half] *= factor;
      y[n][2 * half + 1] *= factor;
    }
    const long long row = q0 + warp_row + g + 8 * half;
    if (a.log != nullptr && t == 0 && row < a.queries)
      a.log[(b * a.heads + h) * a.queries + row] = largest[half] * kLn2 + scalar::log(total[half]);
  }
  if (a.out.data != nullptr) store_rows<T>(a.out, y, b, h, q0 + warp_row, a.queries, C::kValueSize);
}

/// For 64 queries: delta = rowsum(dy * y), the diagonal of dy · yᵀ.
template <class C>
__device__ __forceinline__ void attention_delta(const AttentionArgs& a) {
  using T = typename C::Type;
  using Element = typename T::Element;
  using Tile = AttentionTile<T, kAttentionRows, C::kF>;
  TENON_DYNAMIC_SHARED(shared);
  Element* const memory = reinterpret_cast<Element*>(shared);
  const Tile y{memory}, dy{memory + Tile::kElements};
  const long long q0 = static_cast<long long>(gridDim.x - 1 - blockIdx.x) * kAttentionRows,
                  h = static_cast<long long>(blockIdx.y) % a.heads,
                  b = static_cast<long long>(blockIdx.y) / a.heads;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4,
            warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  y.template stage<C::kValueSize>(head_of<T>(a.y, b, h) + q0 * a.y.stride[1], a.y.stride[1],
                                  a.queries - q0);
  dy.template stage<C::kValueSize>(head_of<T>(a.dy, b, h) + q0 * a.dy.stride[1], a.dy.stride[1],
                                   a.queries - q0);
  copy_async_commit();
  copy_async_wait<0>();
  y.round();
  dy.round();
  __syncthreads();
  float products[2][4];
  clear(products);
  multiply_rows<16>(products, dy, warp_row,
                    AttentionTile<T, 16, C::kF>{y.at + warp_row * Tile::kPitch});
  if (t != g / 2) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const long long row = q0 + warp_row + g + 8 * half;
    const float(&two)[4] = products[half];
    if (row < a.queries)
      a.delta[(b * a.heads + h) * a.queries + row] = g % 2 == 0 ? two[2 * half] : two[2 * half + 1];
  }
}

/// Gradients of 64 keys and values. Loops over the queries that see the keys, in all heads that
/// share the keys.
template <class C>
__device__ __forceinline__ void attention_keys(const AttentionArgs& a) {
  using T = typename C::Type;
  using Element = typename T::Element;
  constexpr int kQueries = C::kOther;
  using KTile = AttentionTile<T, kAttentionRows, C::kE>;
  using VTile = AttentionTile<T, kAttentionRows, C::kF>;
  using QTile = AttentionTile<T, kQueries, C::kE>;
  using GTile = AttentionTile<T, kQueries, C::kF>;
  TENON_DYNAMIC_SHARED(shared);
  Element* const memory = reinterpret_cast<Element*>(shared);
  const KTile k{memory};
  const VTile v{memory + KTile::kElements};
  Element* const streamed = memory + KTile::kElements + VTile::kElements;
  const auto q_tile = [&](int s) { return QTile{streamed + s * QTile::kElements}; };
  const auto g_tile = [&](int s) {
    return GTile{streamed + 2 * QTile::kElements + s * GTile::kElements};
  };
  const long long of = static_cast<long long>(blockIdx.y) % a.kv_heads,
                  b = static_cast<long long>(blockIdx.y) / a.kv_heads, group = a.heads / a.kv_heads,
                  k0 = static_cast<long long>(blockIdx.x) * kAttentionRows;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4,
            warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  k.template stage<C::kSize>(head_of<T>(a.k, b, of) + k0 * a.k.stride[1], a.k.stride[1],
                             a.keys - k0);
  v.template stage<C::kValueSize>(head_of<T>(a.v, b, of) + k0 * a.v.stride[1], a.v.stride[1],
                                  a.keys - k0);
  const int all = static_cast<int>((a.queries + kQueries - 1) / kQueries),
            first = C::kCausal ? static_cast<int>(k0 / kQueries) : 0,
            blocks = all > first ? all - first : 0, steps = static_cast<int>(group) * blocks;
  const auto head_at = [&](int step) { return of * group + step / blocks; };
  const auto query_at = [&](int step) {
    return static_cast<long long>(first + step % blocks) * kQueries;
  };
  const auto stage = [&](int step) {
    const long long h = head_at(step), q0 = query_at(step), left = a.queries - q0;
    q_tile(step % 2).template stage<C::kSize>(head_of<T>(a.q, b, h) + q0 * a.q.stride[1],
                                              a.q.stride[1], left);
    g_tile(step % 2).template stage<C::kValueSize>(head_of<T>(a.dy, b, h) + q0 * a.dy.stride[1],
                                                   a.dy.stride[1], left);
    copy_async_commit();
  };
  float dk[C::kE / 8][4], dv[C::kF / 8][4];
  clear(dk);
  clear(dv);
  if (steps > 0) stage(0);
  for (int step = 0; step < steps; ++step) {
    const long long h = head_at(step), q0 = query_at(step);
    const QTile q = q_tile(step % 2);
    for (int i = static_cast<int>(threadIdx.x); i < kQueries; i += kAttentionThreads) {
      const long long at = (b * a.heads + h) * a.queries + q0 + i;
      q.beside(i)[0] = q0 + i < a.queries ? seen_log<C>(a.log[at]) * kLog2E : 0.0f;
      q.beside(i)[1] = q0 + i < a.queries ? a.delta[at] : 0.0f;
      if constexpr (!kIs16Bit<T>) q.beside(i)[2] = q0 + i < a.queries ? inverse_sums(a)[at] : 0.0f;
    }
    if (step + 1 < steps) {
      stage(step + 1);
      copy_async_wait<1>();
    } else {
      copy_async_wait<0>();
    }
    if (step == 0) {
      k.round();
      v.round();
    }
    q.round();
    g_tile(step % 2).round();
    __syncthreads();
    float p[kQueries / 8][4], ds[kQueries / 8][4];
    clear(p);
    clear(ds);
    multiply_rows<kQueries, true>(p, k, warp_row, q);
    multiply_rows<kQueries, true>(ds, v, warp_row, g_tile(step % 2));
    const bool all = sees_all<C>(a, q0, k0 + warp_row, 16);
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = n * 8 + 2 * t + e % 2;
        const float score =
            seen_score<C>(a, p[n][e], b, h, q0 + i, k0 + warp_row + g + e / 2 * 8, all);
        p[n][e] = q0 + i < a.queries ? weight_of<C>(score, q.beside(i)[0]) : 0.0f;
        if constexpr (!kIs16Bit<T>) p[n][e] *= q.beside(i)[2];
        if constexpr (C::kDrops == AttentionDrops::None)
          ds[n][e] = p[n][e] * (ds[n][e] - q.beside(i)[1]) * a.scale;
      }
    if constexpr (C::kDrops != AttentionDrops::None) {
      const AttentionKeeps<C> keeps(a, b, h);
#pragma unroll
      for (int n = 0; n < kQueries / 8; ++n) {
        const unsigned bits = keeps.of_queries(q0 + n * 8, k0 + warp_row);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float kept = (bits >> e & 1u) != 0 ? keeps.scale : 0.0f;
          ds[n][e] = p[n][e] * (ds[n][e] * kept - q.beside(n * 8 + 2 * t + e % 2)[1]) * a.scale;
          p[n][e] *= kept;
        }
      }
    }
    multiply_weights<kQueries>(dv, p, g_tile(step % 2));
    multiply_weights<kQueries>(dk, ds, q);
    __syncthreads();
  }
  if (a.out_k.data != nullptr) store_rows<T>(a.out_k, dk, b, of, k0 + warp_row, a.keys, C::kSize);
  if (a.out_v.data != nullptr)
    store_rows<T>(a.out_v, dv, b, of, k0 + warp_row, a.keys, C::kValueSize);
}

/// The gradient of 64 queries. Loops over the keys that the queries see. For float32 operands it
/// also stores the divisors of the weights. With `to_deltas` it writes delta instead of the
/// gradient: the sum over keys of weight * weight gradient. A delta computed from 16-bit results
/// would carry their rounding error, which remains where a gradient cancels.
template <class C, bool to_deltas = false>
__device__ __forceinline__ void attention_queries(const AttentionArgs& a) {
  using T = typename C::Type;
  using Element = typename T::Element;
  constexpr int kKeys = C::kOther;
  using QTile = AttentionTile<T, kAttentionRows, C::kE>;
  using GTile = AttentionTile<T, kAttentionRows, C::kF>;
  using KTile = AttentionTile<T, kKeys, C::kE>;
  using VTile = AttentionTile<T, kKeys, C::kF>;
  TENON_DYNAMIC_SHARED(shared);
  Element* const memory = reinterpret_cast<Element*>(shared);
  const QTile q{memory};
  const GTile dy{memory + QTile::kElements};
  Element* const streamed = memory + QTile::kElements + GTile::kElements;
  const auto k_tile = [&](int s) { return KTile{streamed + s * KTile::kElements}; };
  const auto v_tile = [&](int s) {
    return VTile{streamed + 2 * KTile::kElements + s * VTile::kElements};
  };
  const long long block = static_cast<long long>(gridDim.x - 1 - blockIdx.x),
                  h = static_cast<long long>(blockIdx.y) % a.heads,
                  b = static_cast<long long>(blockIdx.y) / a.heads, of = h / (a.heads / a.kv_heads);
  const long long q0 = block * kAttentionRows;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4,
            warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  q.template stage<C::kSize>(head_of<T>(a.q, b, h) + q0 * a.q.stride[1], a.q.stride[1],
                             a.queries - q0);
  dy.template stage<C::kValueSize>(head_of<T>(a.dy, b, h) + q0 * a.dy.stride[1], a.dy.stride[1],
                                   a.queries - q0);
  const Element *const kp = head_of<T>(a.k, b, of), *const vp = head_of<T>(a.v, b, of);
  const long long seen = C::kCausal && q0 + kAttentionRows < a.keys ? q0 + kAttentionRows : a.keys;
  const int blocks = static_cast<int>((seen + kKeys - 1) / kKeys);
  const auto stage = [&](int j) {
    const long long k0 = static_cast<long long>(j) * kKeys;
    k_tile(j % 2).template stage<C::kSize>(kp + k0 * a.k.stride[1], a.k.stride[1], a.keys - k0);
    v_tile(j % 2).template stage<C::kValueSize>(vp + k0 * a.v.stride[1], a.v.stride[1],
                                                a.keys - k0);
    copy_async_commit();
  };
  float log[2], delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const long long row = q0 + warp_row + g + 8 * half, at = (b * a.heads + h) * a.queries + row;
    log[half] = row < a.queries ? seen_log<C>(a.log[at]) * kLog2E : 0.0f;
    delta[half] = !to_deltas && row < a.queries ? a.delta[at] : 0.0f;
  }
  stage(0);
  float dq[C::kE / 8][4], total[2] = {0.0f, 0.0f};
  clear(dq);
  const AttentionKeeps<C> keeps(a, b, h);
  for (int j = 0; j < blocks; ++j) {
    if (j + 1 < blocks) {
      stage(j + 1);
      copy_async_wait<1>();
    } else {
      copy_async_wait<0>();
    }
    if (j == 0) {
      q.round();
      dy.round();
    }
    k_tile(j % 2).round();
    v_tile(j % 2).round();
    __syncthreads();
    float p[kKeys / 8][4], ds[kKeys / 8][4];
    clear(p);
    clear(ds);
    multiply_rows<kKeys>(p, q, warp_row, k_tile(j % 2));
    multiply_rows<kKeys>(ds, dy, warp_row, v_tile(j % 2));
    const long long k0 = static_cast<long long>(j) * kKeys;
    const bool all = sees_all<C>(a, q0 + warp_row, k0, kKeys);
    if constexpr (C::kDrops != AttentionDrops::None) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        const unsigned bits = keeps.of_keys(q0 + warp_row, k0 + n * 8);
#pragma unroll
        for (int e = 0; e < 4; ++e) ds[n][e] *= (bits >> e & 1u) != 0 ? keeps.scale : 0.0f;
      }
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const long long row = q0 + warp_row + g + e / 2 * 8, key = k0 + n * 8 + 2 * t + e % 2;
        const float score = seen_score<C>(a, p[n][e], b, h, row, key, all);
        const float weight = row < a.queries ? weight_of<C>(score, log[e / 2]) : 0.0f;
        if constexpr (to_deltas)
          total[e / 2] += weight * ds[n][e];
        else if constexpr (!kIs16Bit<T>)
          total[e / 2] += weight;
        ds[n][e] = weight * (ds[n][e] - delta[e / 2]) * a.scale;
      }
    if constexpr (!to_deltas) multiply_weights<kKeys>(dq, ds, k_tile(j % 2));
    __syncthreads();
  }
  if constexpr (to_deltas) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      for (int other = 1; other < 4; other *= 2) total[half] += shuffle_xor(total[half], other);
      const long long row = q0 + warp_row + g + 8 * half;
      if (t == 0 && row < a.queries) a.delta[(b * a.heads + h) * a.queries + row] = total[half];
    }
    return;
  }
  if constexpr (!kIs16Bit<T>) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      for (int other = 1; other < 4; other *= 2) total[half] += shuffle_xor(total[half], other);
      const long long row = q0 + warp_row + g + 8 * half;
      // The sum of the weights is 0: the mask value is so low that the log-sum-exp lost the scores.
      const float inverse = total[half] == 0.0f ? 0.0f : 1.0f / total[half];
      if (t == 0 && row < a.queries) inverse_sums(a)[(b * a.heads + h) * a.queries + row] = inverse;
#pragma unroll
      for (int n = 0; n < C::kE / 8; ++n) {
        dq[n][2 * half] *= inverse;
        dq[n][2 * half + 1] *= inverse;
      }
    }
    if (a.out.data == nullptr) return;
  }
  store_rows<T>(a.out, dq, b, h, q0 + warp_row, a.queries, C::kSize);
}

template <class C>
__device__ __forceinline__ void attention_weighted_delta(const AttentionArgs& a) {
  attention_queries<C, true>(a);
}

/// For queries that see only one tile of keys (the first queries of a causal sequence), delta is
/// computed from the weights, at negligible cost. Among them are the queries that see a single key.
template <class C>
__device__ __forceinline__ void attention_causal_delta(const AttentionArgs& a) {
  if (blockIdx.x + 1 == gridDim.x)
    attention_queries<C, true>(a);
  else
    attention_delta<C>(a);
}

}  // namespace tenon::cuda
