// Attention and its gradients by warpgroup products (Hopper), as attention.cuh does them by mma:
// heads of 64 or 128 16-bit elements, no mask but the causal one, a positive scale.
//
// A warpgroup owns 64 rows, 16 a warp: queries (forward, gradient of the query) or keys (gradients
// of key and value). Scores are products of two tiles in shared memory; weights stay in the
// registers where the product left them, which is how the next product takes its left operand. The
// other side comes in tiles of 64 rows, double-buffered by asynchronous copies. Nothing is added to
// what another block adds to: the same bits every time. Bound by arithmetic.
#pragma once

#include "cuda/kernels/attention.cuh"
#include "cuda/kernels/intrinsics_hopper.cuh"

namespace tenon::cuda {

/// `groups`: warpgroups of a block, which share the other side's tiles.
template <class T, int size, bool causal, int groups>
struct AttentionWgmmaConfig {
  using Type = T;
  static constexpr int kSize = size, kGroups = groups, kThreads = 128 * groups;
  static constexpr bool kCausal = causal;
  static constexpr AttentionMask kMask = AttentionMask::None;
  static constexpr int kBoxes = size / 64;  // of 64 x 64 elements: lines of 128 bytes, swizzled
  static constexpr int kTileBytes = kBoxes * kAttentionBoxBytes;  // 64 rows
};

template <class T>
inline constexpr WgmmaType kWgmmaTypeOf = WgmmaType::Bf16;
template <>
inline constexpr WgmmaType kWgmmaTypeOf<AttentionF16> = WgmmaType::F16;

/// Tiles of 64 rows in shared memory, one behind the other; 32-bit addresses, multiples of 1024.
template <class C>
struct AttentionTiles {
  unsigned char* memory;  // what `address` is the address of
  unsigned address;

  /// The first of the block's tiles.
  static TENON_DEVICE AttentionTiles first(unsigned char* shared) {
    const unsigned start = shared_address(shared), aligned = (start + 1023) & ~1023u;
    return {shared + (aligned - start), aligned};
  }
  TENON_DEVICE AttentionTiles next(int tiles) const {
    return {memory + tiles * C::kTileBytes, address + tiles * C::kTileBytes};
  }
  /// Begins to copy rows [0, left) of an operand to `tiles` tiles; zeros beyond.
  template <int tiles>
  TENON_DEVICE void stage(const unsigned short* from, long long stride, long long left) const {
    constexpr int kChunks = C::kSize / 8;
#pragma unroll
    for (int i = 0; i < tiles * 64 * kChunks / C::kThreads; ++i) {
      const int c = i * C::kThreads + static_cast<int>(threadIdx.x), r = c / kChunks,
                e = c % kChunks;
      const bool inside = r < left;
      copy_async_16(memory + r / 64 * C::kTileBytes + e / 8 * kAttentionBoxBytes + r % 64 * 128 +
                        ((e % 8 ^ r % 8) << 4),
                    inside ? from + r * stride + e * 8 : from, inside);
    }
  }
};

/// What asynchronous copies of this thread have brought can be read by products behind a barrier.
template <int pending>
TENON_DEVICE void await_tiles() {
  copy_async_wait<pending>();
  fence_shared_for_products();
  __syncthreads();
}

/// Begins d = left · rightᵀ: 64 rows each, the reduction along the rows.
template <class C>
TENON_DEVICE void begin_scores(float (&d)[32], const AttentionTiles<C>& left,
                               const AttentionTiles<C>& right) {
  const auto a = tile_descriptor<false>(left.address), b = tile_descriptor<false>(right.address);
#pragma unroll
  for (int k = 0; k < C::kSize / 16; ++k) {
    const int at = k / 4 * (kAttentionBoxBytes >> 4) + k % 4 * kDescriptorStep<false>;
    wgmma_m64n64<kWgmmaTypeOf<typename C::Type>>(d, a + at, b + at, k);
  }
  wgmma_commit();
}

/// Begins d += p · right: p in registers as 16-bit pairs, 64 steps of the reduction.
template <class C>
TENON_DEVICE void begin_weighted(float (&d)[C::kBoxes][32], const unsigned (&p)[4][4],
                                 const AttentionTiles<C>& right) {
  const auto b = tile_descriptor<true>(right.address);
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int box = 0; box < C::kBoxes; ++box)
      wgmma_m64n64_held<kWgmmaTypeOf<typename C::Type>>(
          d[box], p[k], b + box * (kAttentionBoxBytes >> 4) + k * kDescriptorStep<true>);
  wgmma_commit();
}

template <class T>
TENON_DEVICE void pack_left(unsigned (&p)[4][4], const float (&x)[32]) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) p[k][i] = T::pack(x[8 * k + 2 * i], x[8 * k + 2 * i + 1]);
}

template <int boxes>
TENON_DEVICE void pin_all(float (&x)[boxes][32]) {
#pragma unroll
  for (int b = 0; b < boxes; ++b) pin(x[b]);
}
template <int boxes>
TENON_DEVICE void clear_all(float (&x)[boxes][32]) {
#pragma unroll
  for (int b = 0; b < boxes; ++b)
#pragma unroll
    for (int i = 0; i < 32; ++i) x[b][i] = 0.0f;
}

/// The warp's 16 rows from row0 on, to [length, heads, size].
template <class C>
TENON_DEVICE void store_boxes(void* out, const float (&x)[C::kBoxes][32], long long head_at,
                              long long row_stride, long long row0, long long rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const long long row = row0 + g + 8 * half;
    if (row >= rows) continue;
    unsigned short* to = static_cast<unsigned short*>(out) + head_at + row * row_stride + 2 * t;
#pragma unroll
    for (int box = 0; box < C::kBoxes; ++box)
#pragma unroll
      for (int n = 0; n < 8; ++n)
        *reinterpret_cast<unsigned*>(to + box * 64 + n * 8) =
            C::Type::pack(x[box][4 * n + 2 * half], x[box][4 * n + 2 * half + 1]);
  }
}

/// Which 64 rows of a batch's head the warpgroup has, and where its lane stands among them.
struct AttentionPlace {
  int group, g, t, warp_row;
  static TENON_DEVICE AttentionPlace here() {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    return {thread / 128, lane / 4, lane % 4, thread % 128 / 32 * 16};
  }
};

/// Scores of keys that are not there or lie behind the query become -infinity. x[4 n + e]: of the
/// query (or key) first + g + e / 2 * 8 and key (or query) second + 8 n + 2 t + e % 2.
template <class C>
TENON_DEVICE void hide(float (&x)[32], const AttentionPlace& at, long long query, long long key,
                       long long keys) {
  const int last = static_cast<int>(keys - key < 64 ? keys - key : 64),
            ahead = static_cast<int>(query - key);
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int row = at.g + i % 4 / 2 * 8, column = i / 4 * 8 + 2 * at.t + i % 2;
    if (column >= last || (C::kCausal && column > row + ahead)) x[i] = minus_infinity();
  }
}

template <class C>
__device__ __forceinline__ void attention_wgmma_forward(const AttentionArgs& a) {
  using T = typename C::Type;
  using Tiles = AttentionTiles<C>;
  TENON_DYNAMIC_SHARED(shared);
  const Tiles q = Tiles::first(shared), k = q.next(C::kGroups), v = k.next(2);
  const AttentionPlace at = AttentionPlace::here();
  // Blocks with most keys first, where later queries see more.
  const long long block = static_cast<long long>(gridDim.x - 1 - blockIdx.x),
                  h = static_cast<long long>(blockIdx.y) % a.heads,
                  b = static_cast<long long>(blockIdx.y) / a.heads, of = h / (a.heads / a.kv_heads);
  const long long q0 = block * (64 * C::kGroups), mine = q0 + at.group * 64 + at.warp_row;
  const unsigned short *const kp = head_of(a.k, b, of), *const vp = head_of(a.v, b, of);
  const long long end = q0 + 64 * C::kGroups, seen = C::kCausal && end < a.keys ? end : a.keys;
  const int blocks = static_cast<int>((seen + 63) / 64);
  const auto stage = [&](int j) {
    const long long k0 = static_cast<long long>(j) * 64;
    k.next(j % 2).template stage<1>(kp + k0 * a.k.stride[1], a.k.stride[1], a.keys - k0);
    v.next(j % 2).template stage<1>(vp + k0 * a.v.stride[1], a.v.stride[1], a.keys - k0);
    copy_async_commit();
  };
  q.template stage<C::kGroups>(head_of(a.q, b, h) + q0 * a.q.stride[1], a.q.stride[1],
                               a.queries - q0);
  if (blocks > 0) stage(0);
  const float scale = a.scale * kLog2E;
  float y[C::kBoxes][32], largest[2], total[2] = {0.0f, 0.0f};
  clear_all(y);
  largest[0] = largest[1] = minus_infinity();
  for (int j = 0; j < blocks; ++j) {
    if (j + 1 < blocks) {
      stage(j + 1);
      await_tiles<1>();
    } else {
      await_tiles<0>();
    }
    const long long k0 = static_cast<long long>(j) * 64;
    // The first warpgroup's queries may all stand before these keys.
    if (!C::kCausal || k0 <= q0 + at.group * 64 + 63) {
      float s[32];
      pin(s);
      wgmma_fence();
      begin_scores<C>(s, q.next(at.group), k.next(j % 2));
      wgmma_wait<0>();
      pin(s);
      if (k0 + 64 > a.keys || (C::kCausal && k0 + 63 > mine)) hide<C>(s, at, mine, k0, a.keys);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float most = largest[half];
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) most = fmaxf(most, s[4 * n + 2 * half + e]);
        for (int other = 1; other < 4; other *= 2) most = fmaxf(most, shuffle_xor(most, other));
        // A query that has seen no key yet has no largest score to take off.
        const float shift = most == minus_infinity() ? 0.0f : most * scale,
                    factor = exp2_fast(largest[half] * scale - shift);
        largest[half] = most;
        float sum = total[half] * factor;
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& x = s[4 * n + 2 * half + e];
            x = exp2_fast(x * scale - shift);
            sum += x;
          }
        total[half] = sum;
#pragma unroll
        for (int box = 0; box < C::kBoxes; ++box)
#pragma unroll
          for (int n = 0; n < 8; ++n) {
            y[box][4 * n + 2 * half] *= factor;
            y[box][4 * n + 2 * half + 1] *= factor;
          }
      }
      unsigned p[4][4];
      pack_left<T>(p, s);
      pin_all(y);
      wgmma_fence();
      begin_weighted<C>(y, p, v.next(j % 2));
      wgmma_wait<0>();
      pin_all(y);
    }
    __syncthreads();
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    for (int other = 1; other < 4; other *= 2) total[half] += shuffle_xor(total[half], other);
    const float inverse = 1.0f / total[half];
#pragma unroll
    for (int box = 0; box < C::kBoxes; ++box)
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        y[box][4 * n + 2 * half] *= inverse;
        y[box][4 * n + 2 * half + 1] *= inverse;
      }
    const long long row = mine + at.g + 8 * half;
    if (a.log != nullptr && at.t == 0 && row < a.queries)
      a.log[(b * a.heads + h) * a.queries + row] =
          largest[half] * a.scale + scalar::log(total[half]);
  }
  if (a.out != nullptr)
    store_boxes<C>(a.out, y, (b * a.queries * a.heads + h) * C::kSize, a.heads * C::kSize, mine,
                   a.queries);
}

/// Weights from scores, and the scores' gradients from the weights': `log` in units of log2.
TENON_DEVICE float weight_of(float score, float scale, float log) {
  return exp2_fast(score * scale - log);
}

/// The gradients of 64 keys and values a warpgroup: sweeps over the queries that see them, of all
/// heads that share them.
template <class C>
__device__ __forceinline__ void attention_wgmma_keys(const AttentionArgs& a) {
  using T = typename C::Type;
  using Tiles = AttentionTiles<C>;
  TENON_DYNAMIC_SHARED(shared);
  const Tiles k = Tiles::first(shared), v = k.next(C::kGroups), q = v.next(C::kGroups),
              dy = q.next(2);
  float* const rows = reinterpret_cast<float*>(dy.next(2).memory);  // logarithms, deltas, twice
  const AttentionPlace at = AttentionPlace::here();
  const long long of = static_cast<long long>(blockIdx.y) % a.kv_heads,
                  b = static_cast<long long>(blockIdx.y) / a.kv_heads, group = a.heads / a.kv_heads,
                  k0 = static_cast<long long>(blockIdx.x) * (64 * C::kGroups),
                  mine = k0 + at.group * 64 + at.warp_row;
  k.template stage<C::kGroups>(head_of(a.k, b, of) + k0 * a.k.stride[1], a.k.stride[1],
                               a.keys - k0);
  v.template stage<C::kGroups>(head_of(a.v, b, of) + k0 * a.v.stride[1], a.v.stride[1],
                               a.keys - k0);
  const int all = static_cast<int>((a.queries + 63) / 64),
            first = C::kCausal ? static_cast<int>(k0 / 64) : 0,
            blocks = all > first ? all - first : 0, steps = static_cast<int>(group) * blocks;
  const auto head_at = [&](int step) { return of * group + step / blocks; };
  const auto query_at = [&](int step) {
    return static_cast<long long>(first + step % blocks) * 64;
  };
  const auto stage = [&](int step) {
    const long long h = head_at(step), q0 = query_at(step), left = a.queries - q0;
    q.next(step % 2).template stage<1>(head_of(a.q, b, h) + q0 * a.q.stride[1], a.q.stride[1],
                                       left);
    dy.next(step % 2).template stage<1>(head_of(a.dy, b, h) + q0 * a.dy.stride[1], a.dy.stride[1],
                                        left);
    const int i = static_cast<int>(threadIdx.x);
    if (i < 128) {
      const bool inside = i % 64 < left;
      const float* from = (i < 64 ? a.log : a.delta) + (b * a.heads + h) * a.queries;
      copy_async_4(rows + step % 2 * 128 + i, inside ? from + q0 + i % 64 : from, inside);
    }
    copy_async_commit();
  };
  const float scale = a.scale * kLog2E;
  float dk[C::kBoxes][32], dv[C::kBoxes][32];
  clear_all(dk);
  clear_all(dv);
  if (steps > 0) stage(0);
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) {
      stage(step + 1);
      await_tiles<1>();
    } else {
      await_tiles<0>();
    }
    const long long q0 = query_at(step);
    if (!C::kCausal || q0 + 63 >= k0 + at.group * 64) {
      const float* const log = rows + step % 2 * 128;
      float s[32], ds[32];
      pin(s);
      pin(ds);
      wgmma_fence();
      begin_scores<C>(s, k.next(at.group), q.next(step % 2));
      begin_scores<C>(ds, v.next(at.group), dy.next(step % 2));
      wgmma_wait<1>();
      pin(s);
      const bool hides = C::kCausal && mine + 15 > q0;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int column = n * 8 + 2 * at.t + e % 2;
          float& x = s[4 * n + e];
          x = weight_of(x, scale, log[column] * kLog2E);
          if (hides && mine + at.g + e / 2 * 8 > q0 + column) x = 0.0f;
        }
      unsigned p[4][4];
      pack_left<T>(p, s);
      wgmma_wait<0>();
      pin(ds);
      pin_all(dv);
      wgmma_fence();
      begin_weighted<C>(dv, p, dy.next(step % 2));
#pragma unroll
      for (int i = 0; i < 32; ++i)
        ds[i] = s[i] * (ds[i] - log[64 + i / 4 * 8 + 2 * at.t + i % 2]) * a.scale;
      unsigned d[4][4];
      pack_left<T>(d, ds);
      pin_all(dk);
      wgmma_fence();
      begin_weighted<C>(dk, d, q.next(step % 2));
      wgmma_wait<0>();
      pin_all(dv);
      pin_all(dk);
    }
    __syncthreads();
  }
  if (a.out_k != nullptr)
    store_boxes<C>(a.out_k, dk, (b * a.keys * a.kv_heads + of) * C::kSize, a.kv_heads * C::kSize,
                   mine, a.keys);
  if (a.out_v != nullptr)
    store_boxes<C>(a.out_v, dv, (b * a.keys * a.kv_heads + of) * C::kSize, a.kv_heads * C::kSize,
                   mine, a.keys);
}

/// The gradient of 64 queries a warpgroup: a sweep over the keys that they see.
template <class C>
__device__ __forceinline__ void attention_wgmma_queries(const AttentionArgs& a) {
  using T = typename C::Type;
  using Tiles = AttentionTiles<C>;
  TENON_DYNAMIC_SHARED(shared);
  const Tiles q = Tiles::first(shared), dy = q.next(C::kGroups), k = dy.next(C::kGroups),
              v = k.next(2);
  const AttentionPlace at = AttentionPlace::here();
  const long long block = static_cast<long long>(gridDim.x - 1 - blockIdx.x),
                  h = static_cast<long long>(blockIdx.y) % a.heads,
                  b = static_cast<long long>(blockIdx.y) / a.heads, of = h / (a.heads / a.kv_heads);
  const long long q0 = block * (64 * C::kGroups), mine = q0 + at.group * 64 + at.warp_row;
  q.template stage<C::kGroups>(head_of(a.q, b, h) + q0 * a.q.stride[1], a.q.stride[1],
                               a.queries - q0);
  dy.template stage<C::kGroups>(head_of(a.dy, b, h) + q0 * a.dy.stride[1], a.dy.stride[1],
                                a.queries - q0);
  const unsigned short *const kp = head_of(a.k, b, of), *const vp = head_of(a.v, b, of);
  const long long end = q0 + 64 * C::kGroups, seen = C::kCausal && end < a.keys ? end : a.keys;
  const int blocks = static_cast<int>((seen + 63) / 64);
  const auto stage = [&](int j) {
    const long long k0 = static_cast<long long>(j) * 64;
    k.next(j % 2).template stage<1>(kp + k0 * a.k.stride[1], a.k.stride[1], a.keys - k0);
    v.next(j % 2).template stage<1>(vp + k0 * a.v.stride[1], a.v.stride[1], a.keys - k0);
    copy_async_commit();
  };
  float log[2], delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const long long row = mine + at.g + 8 * half, place = (b * a.heads + h) * a.queries + row;
    log[half] = row < a.queries ? a.log[place] * kLog2E : 0.0f;
    delta[half] = row < a.queries ? a.delta[place] : 0.0f;
  }
  if (blocks > 0) stage(0);
  const float scale = a.scale * kLog2E;
  float dq[C::kBoxes][32];
  clear_all(dq);
  for (int j = 0; j < blocks; ++j) {
    if (j + 1 < blocks) {
      stage(j + 1);
      await_tiles<1>();
    } else {
      await_tiles<0>();
    }
    const long long k0 = static_cast<long long>(j) * 64;
    if (!C::kCausal || k0 <= q0 + at.group * 64 + 63) {
      float s[32], ds[32];
      pin(s);
      pin(ds);
      wgmma_fence();
      begin_scores<C>(s, q.next(at.group), k.next(j % 2));
      begin_scores<C>(ds, dy.next(at.group), v.next(j % 2));
      wgmma_wait<1>();
      pin(s);
      if (k0 + 64 > a.keys || (C::kCausal && k0 + 63 > mine)) hide<C>(s, at, mine, k0, a.keys);
#pragma unroll
      for (int i = 0; i < 32; ++i) s[i] = weight_of(s[i], scale, log[i % 4 / 2]);
      wgmma_wait<0>();
      pin(ds);
#pragma unroll
      for (int i = 0; i < 32; ++i) ds[i] = s[i] * (ds[i] - delta[i % 4 / 2]) * a.scale;
      unsigned d[4][4];
      pack_left<T>(d, ds);
      pin_all(dq);
      wgmma_fence();
      begin_weighted<C>(dq, d, k.next(j % 2));
      wgmma_wait<0>();
      pin_all(dq);
    }
    __syncthreads();
  }
  store_boxes<C>(a.out, dq, (b * a.queries * a.heads + h) * C::kSize, a.heads * C::kSize, mine,
                 a.queries);
}

}  // namespace tenon::cuda
