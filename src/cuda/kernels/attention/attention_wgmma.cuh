// Attention and its gradients with wgmma and TMA (Hopper); attention.cuh does the same with mma.
// Head sizes 64 and 128, 16-bit elements, no mask or the causal mask, a positive scale.
//
// Tiles: a block is one warpgroup and owns 64 rows, 16 a warp: queries (forward, gradient of the
// query) or keys (gradients of key and value). Scores are products of two tiles in shared memory.
// The weights stay in the registers where the product left them; the next product takes its left
// operand from there. TMA brings the other side in tiles of 64 rows, one step ahead. Blocks of
// several warpgroups that share tiles were slower, because the warpgroups wait for one another. No
// block adds to another block's result, so results are deterministic. All results are overwritten.
//
// The backward pass is two kernels with seven products. A single kernel needs five
// ("FlashAttention-2"), but many blocks would then add to its third result in global memory.
//
// Compute-bound. H200, causal, [batch, heads, length, size]: [16, 12, 1024, 64] reaches 273 TFLOP/s
// forward, 366 in the kernel of queries, 368 in the kernel of keys; [8, 16, 2048, 128] reaches 365,
// 434 and 438.
#pragma once

#include "cuda/kernels/attention/attention.cuh"
#include "cuda/kernels/intrinsics_hopper.cuh"

namespace tenon::cuda {

/// `weighs`: compute delta from weights and their gradients, not from the stored (rounded) results.
template <class T, int size, bool causal, bool weighs = false>
struct AttentionWgmmaConfig {
  using Type = T;
  static constexpr int kSize = size, kThreads = kAttentionThreads;
  static constexpr bool kCausal = causal, kWeighs = weighs;
  static constexpr AttentionMask kMask = AttentionMask::None;
  // Boxes of 64 x 64 elements: lines of 128 bytes, swizzled.
  static constexpr int kBoxes = size / 64;
  static constexpr int kTileBytes = kBoxes * kAttentionBoxBytes;  // 64 rows
};

template <class T>
inline constexpr WgmmaType kWgmmaTypeOf = WgmmaType::Bf16;
template <>
inline constexpr WgmmaType kWgmmaTypeOf<AttentionF16> = WgmmaType::F16;

/// Consecutive tiles of 64 rows in shared memory. 32-bit addresses, multiples of 1024.
template <class C>
struct AttentionTiles {
  unsigned char* memory;  // the memory at `address`
  unsigned address;

  /// The block's first tile.
  static TENON_DEVICE AttentionTiles first(unsigned char* shared) {
    const unsigned start = shared_address(shared), aligned = (start + 1023) & ~1023u;
    return {shared + (aligned - start), aligned};
  }
  TENON_DEVICE AttentionTiles next(int tiles) const {
    return {memory + tiles * C::kTileBytes, address + tiles * C::kTileBytes};
  }
  /// Starts the copy of 64 rows of a head, from `row` on; rows beyond the last are zero.
  TENON_DEVICE void bring(const TensorMap& from, long long row, long long h, long long b,
                          unsigned barrier) const {
#pragma unroll
    for (int box = 0; box < C::kBoxes; ++box)
      tma_load(address + box * kAttentionBoxBytes, &from, box * 64, static_cast<int>(row),
               static_cast<int>(h), static_cast<int>(b), barrier);
  }
};

/// Two barriers behind the block's tiles, for data that alternates between two slots. One thread
/// starts the copies, a whole step ahead.
struct AttentionSlots {
  unsigned barriers;
  const bool fills = threadIdx.x == 0;

  TENON_DEVICE explicit AttentionSlots(unsigned address) : barriers(address) {
    if (fills) {
      barrier_init(barriers, 1);
      barrier_init(barriers + 8, 1);
      barrier_init_fence();
    }
    __syncthreads();
  }
  /// The barrier of a step's slot; `bytes` will arrive at it.
  TENON_DEVICE unsigned expect(int step, int bytes) const {
    const unsigned barrier = barriers + step % 2 * 8;
    barrier_expect(barrier, static_cast<unsigned>(bytes));
    return barrier;
  }
  /// Waits until the data of the step has arrived. No thread reads the other slot any more.
  TENON_DEVICE void await(int step) const {
    barrier_wait(barriers + step % 2 * 8, step / 2 % 2);
    __syncthreads();
  }
};

/// Starts d = left · rightᵀ: 64 rows each, the reduction runs along the rows.
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

/// Starts d += p · right: p is in registers as 16-bit pairs, 64 reduction steps.
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

template <int boxes>
TENON_DEVICE void multiply_all(float (&x)[boxes][32], float factor) {
#pragma unroll
  for (int b = 0; b < boxes; ++b)
#pragma unroll
    for (int i = 0; i < 32; ++i) x[b][i] *= factor;
}

/// Stores the warp's 16 rows from row0 on to head h of batch b.
template <class C>
TENON_DEVICE void store_boxes(const AttentionResult& out, const float (&x)[C::kBoxes][32],
                              long long b, long long h, long long row0, long long rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const long long row = row0 + g + 8 * half;
    if (row >= rows) continue;
    unsigned short* to = static_cast<unsigned short*>(out.data) + b * out.stride[0] +
                         row * out.stride[1] + h * out.stride[2] + 2 * t;
#pragma unroll
    for (int box = 0; box < C::kBoxes; ++box)
#pragma unroll
      for (int n = 0; n < 8; ++n)
        *reinterpret_cast<unsigned*>(to + box * 64 + n * 8) =
            C::Type::pack(x[box][4 * n + 2 * half], x[box][4 * n + 2 * half + 1]);
  }
}

/// A lane's position in the warpgroup: lane / 4, lane % 4, and the first of its warp's 16 rows.
struct AttentionPlace {
  int g, t, warp_row;
  static TENON_DEVICE AttentionPlace here() {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    return {lane / 4, lane % 4, thread / 32 * 16};
  }
};

/// Sums of a gradient's rows from row0 on. Uses shared memory that no thread reads any more.
template <class C>
TENON_DEVICE void save_sums(const AttentionSums& out, const float (&x)[C::kBoxes][32],
                            const AttentionPlace& at, float* memory, long long h, long long row0) {
  if (out.data == nullptr) return;
  __syncthreads();
#pragma unroll
  for (int box = 0; box < C::kBoxes; ++box)
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      float sums[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        sums[e] = x[box][4 * n + e] + x[box][4 * n + 2 + e];
        for (int other = 4; other < 32; other *= 2) sums[e] += shuffle_xor(sums[e], other);
      }
      if (at.g == 0)
        *reinterpret_cast<float2*>(memory + at.warp_row / 16 * C::kSize + box * 64 + n * 8 +
                                   2 * at.t) = make_float2(sums[0], sums[1]);
    }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= C::kSize) return;
  float sum = memory[thread];
#pragma unroll
  for (int warp = 1; warp < 4; ++warp) sum += memory[warp * C::kSize + thread];
  out.data[row0 / 64 * out.pitch + h * C::kSize + thread] = sum;
}

/// Sets scores to -infinity where the key does not exist or comes after the query. x[4 n + e] is
/// the score of query (or key) first + g + e / 2 * 8 and key (or query) second + 8 n + 2 t + e % 2.
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
__device__ __forceinline__ void attention_wgmma_forward(const AttentionArgs& a,
                                                        const AttentionMaps& maps) {
  using T = typename C::Type;
  using Tiles = AttentionTiles<C>;
  TENON_DYNAMIC_SHARED(shared);
  const Tiles q = Tiles::first(shared), k = q.next(1), v = k.next(2);
  const AttentionPlace at = AttentionPlace::here();
  // With a causal mask later queries see more keys: start the longest blocks first.
  const long long block = static_cast<long long>(gridDim.x - 1 - blockIdx.x),
                  h = static_cast<long long>(blockIdx.y) % a.heads,
                  b = static_cast<long long>(blockIdx.y) / a.heads, of = h / (a.heads / a.kv_heads);
  const long long q0 = block * 64, mine = q0 + at.warp_row;
  const long long end = q0 + 64, seen = C::kCausal && end < a.keys ? end : a.keys;
  const int blocks = static_cast<int>((seen + 63) / 64);
  const AttentionSlots slots(v.next(2).address);
  const auto stage = [&](int j) {
    if (!slots.fills) return;
    const unsigned there = slots.expect(j, (j == 0 ? 3 : 2) * C::kTileBytes);
    if (j == 0) q.bring(maps.q, q0, h, b, there);
    k.next(j % 2).bring(maps.k, static_cast<long long>(j) * 64, of, b, there);
    v.next(j % 2).bring(maps.v, static_cast<long long>(j) * 64, of, b, there);
  };
  if (blocks > 0) stage(0);
  const float scale = a.scale * kLog2E;
  float y[C::kBoxes][32], largest[2], total[2] = {0.0f, 0.0f};
  clear_all(y);
  largest[0] = largest[1] = minus_infinity();
  for (int j = 0; j < blocks; ++j) {
    slots.await(j);
    if (j + 1 < blocks) stage(j + 1);
    const long long k0 = static_cast<long long>(j) * 64;
    float s[32];
    pin(s);
    wgmma_fence();
    begin_scores<C>(s, q, k.next(j % 2));
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
      // The maximum of a query that has seen no key yet is -infinity; subtracting it would give
      // NaN.
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
  if (a.out.data != nullptr) store_boxes<C>(a.out, y, b, h, mine, a.queries);
}

/// A weight from its score; `log` is the log-sum-exp in units of log2.
TENON_DEVICE float weight_of(float score, float scale, float log) {
  return exp2_fast(score * scale - log);
}

/// The log-sum-exps and deltas of a head: for each 64 queries the 64 log-sum-exps (in units of
/// log2), then the 64 deltas. The kernel of queries writes them, the kernel of keys reads them.
TENON_DEVICE float* taken_of(const AttentionArgs& a, long long b, long long h) {
  return a.delta + (b * a.heads + h) * ((a.queries + 63) / 64) * kAttentionTaken;
}

/// Gradients of 64 keys and values per warpgroup. Loops over the queries that see the keys, in all
/// heads that share the keys.
template <class C>
__device__ __forceinline__ void attention_wgmma_keys(const AttentionArgs& a,
                                                     const AttentionMaps& maps) {
  using T = typename C::Type;
  using Tiles = AttentionTiles<C>;
  TENON_DYNAMIC_SHARED(shared);
  const Tiles k = Tiles::first(shared), v = k.next(1), q = v.next(1), dy = q.next(2),
              rows = dy.next(2);  // two slots of log-sum-exps and deltas
  constexpr int kTakenBytes = kAttentionTaken * sizeof(float);
  const AttentionPlace at = AttentionPlace::here();
  const long long of = static_cast<long long>(blockIdx.y) % a.kv_heads,
                  b = static_cast<long long>(blockIdx.y) / a.kv_heads, group = a.heads / a.kv_heads,
                  k0 = static_cast<long long>(blockIdx.x) * 64, mine = k0 + at.warp_row;
  const int all = static_cast<int>((a.queries + 63) / 64),
            first = C::kCausal ? static_cast<int>(k0 / 64) : 0,
            steps = all > first ? static_cast<int>(group) * (all - first) : 0;
  const AttentionSlots slots(rows.address + 2 * kTakenBytes);
  long long head = of * group;
  int coming = first;
  const auto stage = [&](int step) {
    if (!slots.fills) return;
    const int slot = step % 2;
    const unsigned there = slots.expect(step, (step == 0 ? 4 : 2) * C::kTileBytes + kTakenBytes);
    if (step == 0) {
      k.bring(maps.k, k0, of, b, there);
      v.bring(maps.v, k0, of, b, there);
    }
    const long long q0 = static_cast<long long>(coming) * 64;
    q.next(slot).bring(maps.q, q0, head, b, there);
    dy.next(slot).bring(maps.dy, q0, head, b, there);
    bulk_load(rows.address + slot * kTakenBytes, taken_of(a, b, head) + q0 * 2, kTakenBytes, there);
    if (++coming == all) {
      coming = first;
      ++head;
    }
  };
  const float scale = a.scale * kLog2E;
  float dk[C::kBoxes][32], dv[C::kBoxes][32];
  clear_all(dk);
  clear_all(dv);
  if (steps > 0) stage(0);
  for (int step = 0, tile = first; step < steps; ++step, tile = tile + 1 < all ? tile + 1 : first) {
    const int slot = step % 2;
    slots.await(step);
    if (step + 1 < steps) stage(step + 1);
    const long long q0 = static_cast<long long>(tile) * 64;
    const float2* const taken = reinterpret_cast<const float2*>(rows.memory + slot * kTakenBytes) +
                                at.t;  // one float2 holds two queries
    float s[32], ds[32];
    pin(s);
    pin(ds);
    wgmma_fence();
    begin_scores<C>(s, k, q.next(slot));
    begin_scores<C>(ds, v, dy.next(slot));
    wgmma_wait<0>();
    pin(s);
    pin(ds);
    if (C::kCausal && mine + 15 > q0) {
      const int behind = static_cast<int>(mine - q0) + at.g;
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (behind + i % 4 / 2 * 8 > i / 4 * 8 + 2 * at.t + i % 2) s[i] = minus_infinity();
    }
    unsigned p[4][4], d[4][4];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const float2 log = taken[n * 4], delta = taken[32 + n * 4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = 4 * n + 2 * half;
        const float x = weight_of(s[i], scale, log.x), y = weight_of(s[i + 1], scale, log.y);
        p[n / 2][n % 2 * 2 + half] = T::pack(x, y);
        d[n / 2][n % 2 * 2 + half] = T::pack(x * (ds[i] - delta.x), y * (ds[i + 1] - delta.y));
      }
    }
    pin_all(dv);
    pin_all(dk);
    wgmma_fence();
    begin_weighted<C>(dv, p, dy.next(slot));
    begin_weighted<C>(dk, d, q.next(slot));
    wgmma_wait<0>();
    pin_all(dv);
    pin_all(dk);
  }
  if (a.out_k.data != nullptr) {
    multiply_all(dk, a.scale);
    store_boxes<C>(a.out_k, dk, b, of, mine, a.keys);
  }
  if (a.out_v.data != nullptr) store_boxes<C>(a.out_v, dv, b, of, mine, a.keys);
  float* const memory = reinterpret_cast<float*>(k.memory);
  save_sums<C>(a.sums_k, dk, at, memory, of, b * a.keys + k0);
  save_sums<C>(a.sums_v, dv, at, memory, of, b * a.keys + k0);
}

/// rowsum(dy * y) of rows g and g + 8 of the warp's sixteen from `row0` on. A pair of lanes has a
/// row.
template <class C>
TENON_DEVICE void row_products(float (&sums)[2], const AttentionArgs& a, long long b, long long h,
                               long long row0) {
  using T = typename C::Type;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const long long row = row0 + lane / 2, e = lane % 2 * (C::kSize / 2);
  float sum = 0.0f;
  if (row < a.queries) {
    const uint4* const y =
        reinterpret_cast<const uint4*>(head_of<T>(a.y, b, h) + row * a.y.stride[1] + e);
    const uint4* const dy =
        reinterpret_cast<const uint4*>(head_of<T>(a.dy, b, h) + row * a.dy.stride[1] + e);
#pragma unroll
    for (int i = 0; i < C::kSize / 16; ++i) {
      const uint4 left = y[i], right = dy[i];
      const unsigned l[4] = {left.x, left.y, left.z, left.w},
                     r[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
      for (int k = 0; k < 4; ++k)
        sum += T::wide(static_cast<unsigned short>(l[k])) *
                   T::wide(static_cast<unsigned short>(r[k])) +
               T::wide(static_cast<unsigned short>(l[k] >> 16)) *
                   T::wide(static_cast<unsigned short>(r[k] >> 16));
    }
  }
  sum += shuffle_xor(sum, 1);
#pragma unroll
  for (int half = 0; half < 2; ++half) sums[half] = shuffle(sum, lane / 4 * 2 + half * 16);
}

/// The gradient of 64 queries per warpgroup. Loops over the keys that the queries see. It first
/// computes the log-sum-exps and deltas for the kernel of keys; with no gradient to write it stops
/// there.
///
/// A delta is the sum over keys of weight * weight gradient. It equals rowsum(dy * y), except for
/// the rounding error of y, which remains where the gradient cancels: if a query sees a single key,
/// the rounding error is the whole result. With `weighs` a separate kernel computes the deltas from
/// the weights, which adds two products to the seven of the backward pass. A block whose queries
/// see only one tile of keys does the same at no cost.
template <class C>
__device__ __forceinline__ void attention_wgmma_queries(const AttentionArgs& a,
                                                        const AttentionMaps& maps) {
  using T = typename C::Type;
  using Tiles = AttentionTiles<C>;
  TENON_DYNAMIC_SHARED(shared);
  const Tiles q = Tiles::first(shared), dy = q.next(1), k = dy.next(1), v = k.next(2);
  const AttentionPlace at = AttentionPlace::here();
  // With a causal mask later queries see more keys: start the longest blocks first.
  const long long block = static_cast<long long>(gridDim.x - 1 - blockIdx.x),
                  h = static_cast<long long>(blockIdx.y) % a.heads,
                  b = static_cast<long long>(blockIdx.y) / a.heads, of = h / (a.heads / a.kv_heads);
  const long long q0 = block * 64, mine = q0 + at.warp_row;
  const long long end = q0 + 64, seen = C::kCausal && end < a.keys ? end : a.keys;
  const int blocks = static_cast<int>((seen + 63) / 64),
            weighing = C::kWeighs || blocks == 1 ? blocks : 0,  // first steps, which compute deltas
      steps = weighing + (a.out.data != nullptr ? blocks : 0);
  const AttentionSlots slots(v.next(2).address);
  const auto first_key = [&](int step) {
    return static_cast<long long>(step < weighing ? step : step - weighing) * 64;
  };
  const auto stage = [&](int step) {
    if (!slots.fills) return;
    const unsigned there = slots.expect(step, (step == 0 ? 4 : 2) * C::kTileBytes);
    if (step == 0) {
      q.bring(maps.q, q0, h, b, there);
      dy.bring(maps.dy, q0, h, b, there);
    }
    k.next(step % 2).bring(maps.k, first_key(step), of, b, there);
    v.next(step % 2).bring(maps.v, first_key(step), of, b, there);
  };
  if (steps > 0) stage(0);
  float log[2], delta[2] = {0.0f, 0.0f};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const long long row = mine + at.g + 8 * half;
    log[half] = row < a.queries ? a.log[(b * a.heads + h) * a.queries + row] * kLog2E : 0.0f;
  }
  const auto keep_taken = [&] {
    if (at.t != 0) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const long long row = mine + at.g + 8 * half;
      float* const to = taken_of(a, b, h) + row / 64 * kAttentionTaken + row % 64;
      to[0] = log[half];
      to[64] = delta[half];
    }
  };
  if (weighing == 0) {
    row_products<C>(delta, a, b, h, mine);
    keep_taken();
  }
  const float scale = a.scale * kLog2E;
  float dq[C::kBoxes][32];
  clear_all(dq);
  for (int step = 0; step < steps; ++step) {
    slots.await(step);
    if (step + 1 < steps) stage(step + 1);
    const long long k0 = first_key(step);
    float s[32], ds[32];
    pin(s);
    pin(ds);
    wgmma_fence();
    begin_scores<C>(s, q, k.next(step % 2));
    begin_scores<C>(ds, dy, v.next(step % 2));
    wgmma_wait<0>();
    pin(s);
    pin(ds);
    if (k0 + 64 > a.keys || (C::kCausal && k0 + 63 > mine)) hide<C>(s, at, mine, k0, a.keys);
    if (step < weighing) {
#pragma unroll
      for (int i = 0; i < 32; ++i)
        delta[i % 4 / 2] += weight_of(s[i], scale, log[i % 4 / 2]) * ds[i];
      if (step + 1 < weighing) continue;
#pragma unroll
      for (int half = 0; half < 2; ++half)
        for (int other = 1; other < 4; other *= 2) delta[half] += shuffle_xor(delta[half], other);
      keep_taken();
      continue;
    }
    unsigned d[4][4];
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
      const int half = i % 4 / 2;
      d[i / 8][i % 8 / 2] =
          T::pack(weight_of(s[i], scale, log[half]) * (ds[i] - delta[half]),
                  weight_of(s[i + 1], scale, log[half]) * (ds[i + 1] - delta[half]));
    }
    pin_all(dq);
    wgmma_fence();
    begin_weighted<C>(dq, d, k.next(step % 2));
    wgmma_wait<0>();
    pin_all(dq);
  }
  if (a.out.data == nullptr) return;
  multiply_all(dq, a.scale);
  store_boxes<C>(a.out, dq, b, h, mine, a.queries);
  save_sums<C>(a.sums, dq, at, reinterpret_cast<float*>(q.memory), h, b * a.queries + q0);
}

}  // namespace tenon::cuda
