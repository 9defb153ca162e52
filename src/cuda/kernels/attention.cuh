// Attention and its gradients on tensor cores, 16-bit operands and float32 sums, a tile of scores
// at a time (Dao, "FlashAttention-2", 2023).
//
// A block owns 64 queries (forward, gradient of the query) or 64 keys (gradients of key and value)
// of one head, 16 a warp, and meets the other side tile by tile, staged in shared memory by
// asynchronous copies, the next tile under way while one is computed. Weights are made again from
// the logarithms for the gradients, in two sweeps that add to nothing of another block's: the same
// bits every time. Operands need rows of contiguous elements, 16 bytes aligned; sizes are multiples
// of 8 and are filled up to 16 with zeros. Bound by arithmetic: 4 size multiply-adds a score
// forward, 14 backward.
#pragma once

#include "cuda/kernels/attention_args.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "cuda/kernels/philox.cuh"
#include "scalar/log.h"

namespace tenon::cuda {

enum class AttentionMask { None, Bool, Float32, Float16, BFloat16 };
/// Weights that are dropped at random: none; of numbers of keys that are multiples of four, so that
/// four neighbours belong to one block of random words; of any number.
enum class AttentionDrops { None, Fours, Any };

struct AttentionBf16 {
  static TENON_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_bf16_m16n8k16(d, a, b);
  }
  static TENON_DEVICE unsigned pack(float lo, float hi) { return pack_bf16(lo, hi); }
  static TENON_DEVICE float wide(unsigned short x) { return bf16_to_float(x); }
};
struct AttentionF16 {
  static TENON_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_f16_m16n8k16(d, a, b);
  }
  static TENON_DEVICE unsigned pack(float lo, float hi) { return pack_f16(lo, hi); }
  static TENON_DEVICE float wide(unsigned short x) { return f16_to_float(x); }
};

/// Everything about an attention that is text.
template <class T, int size, int value_size, bool causal, AttentionMask mask,
          AttentionDrops drops = AttentionDrops::None>
struct AttentionConfig {
  using Type = T;
  static constexpr int kSize = size, kValueSize = value_size;
  static constexpr int kE = (size + 15) / 16 * 16, kF = (value_size + 15) / 16 * 16;
  static constexpr bool kCausal = causal;
  static constexpr AttentionMask kMask = mask;
  static constexpr AttentionDrops kDrops = drops;
  // Rows of the other side's tiles in the backward sweeps, where two gradients are accumulated.
  static constexpr int kOther = kE > 64 || kF > 64 ? 32 : 64;
};

TENON_DEVICE float minus_infinity() { return scalar::float_of(0xff800000u); }

constexpr float kLog2E = 1.44269504088896340736f, kLn2 = 0.69314718055994530942f;

/// A tile of 16-bit elements in shared memory, row by row: fragments load without bank conflicts.
template <int rows, int cols>
struct AttentionTile {
  static constexpr int kRows = rows, kCols = cols, kPitch = cols + 8;
  static constexpr int kElements = rows * kPitch;
  unsigned short* at;

  /// Rows [0, left) of `real` elements each; zeros beyond.
  template <int real>
  TENON_DEVICE void stage(const unsigned short* from, long long stride, long long left) const {
    constexpr int kChunks = cols / 8;
    for (int c = static_cast<int>(threadIdx.x); c < rows * kChunks; c += kAttentionThreads) {
      const int r = c / kChunks, e = c % kChunks * 8;
      const bool inside = r < left && e < real;
      copy_async_16(at + r * kPitch + e, inside ? from + r * stride + e : from, inside);
    }
  }
  /// Rows row0.. as the left operand, 16 elements of the reduction from k0.
  TENON_DEVICE void load_left(unsigned (&a)[4], int row0, int k0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    ldmatrix_x4(a, at + (row0 + lane % 16) * kPitch + k0 + lane / 16 * 8);
  }
  /// Rows n0.. as 16 columns of the right operand, whose reduction runs along the rows.
  TENON_DEVICE void load_columns(unsigned (&b)[4], int n0, int k0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, i = lane / 8;
    ldmatrix_x4(b, at + (n0 + i / 2 * 8 + lane % 8) * kPitch + k0 + i % 2 * 8);
  }
  /// Rows k0.. as 16 steps of the reduction, columns n0...
  TENON_DEVICE void load_steps(unsigned (&b)[4], int k0, int n0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, i = lane / 8;
    ldmatrix_x4_trans(b, at + (k0 + i % 2 * 8 + lane % 8) * kPitch + n0 + i / 2 * 8);
  }
};

/// d[n / 8] += left (16 rows from row0) times the columns that are the right tile's rows.
template <class T, int columns, class Left, class Right>
TENON_DEVICE void multiply_rows(float (&d)[columns / 8][4], const Left& left, int row0,
                                const Right& right) {
#pragma unroll
  for (int k = 0; k < Left::kCols; k += 16) {
    unsigned a[4];
    left.load_left(a, row0, k);
#pragma unroll
    for (int n = 0; n < columns; n += 16) {
      unsigned b[4];
      right.load_columns(b, n, k);
      const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
      T::multiply(d[n / 8], a, first);
      T::multiply(d[n / 8 + 1], a, second);
    }
  }
}

/// d[n / 8] += p (16 rows, one for each row of the right tile) times the right tile.
template <class T, int inner, class Right>
TENON_DEVICE void multiply_weights(float (&d)[Right::kCols / 8][4], const float (&p)[inner / 8][4],
                                   const Right& right) {
#pragma unroll
  for (int k = 0; k < inner; k += 16) {
    const float(&low)[4] = p[k / 8], (&high)[4] = p[k / 8 + 1];
    const unsigned a[4] = {T::pack(low[0], low[1]), T::pack(low[2], low[3]),
                           T::pack(high[0], high[1]), T::pack(high[2], high[3])};
#pragma unroll
    for (int n = 0; n < Right::kCols; n += 16) {
      unsigned b[4];
      right.load_steps(b, k, n);
      const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
      T::multiply(d[n / 8], a, first);
      T::multiply(d[n / 8 + 1], a, second);
    }
  }
}

TENON_DEVICE const unsigned short* head_of(const AttentionOperand& x, long long b, long long h) {
  return static_cast<const unsigned short*>(x.data) + b * x.stride[0] + h * x.stride[2];
}

template <int tiles>
TENON_DEVICE void clear(float (&x)[tiles][4]) {
#pragma unroll
  for (int n = 0; n < tiles; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) x[n][e] = 0.0f;
}

/// Whether all of a tile's keys are there and seen by all of its queries, of which the first is q0.
template <class C>
TENON_DEVICE bool sees_all(const AttentionArgs& a, long long q0, long long k0, int keys) {
  return k0 + keys <= a.keys && (!C::kCausal || k0 + keys - 1 <= q0);
}

/// The score in units of log2 as it counts: scaled, masked, -infinity where it is hidden. `all`:
/// the tile has nothing that is hidden but by the mask.
template <class C>
TENON_DEVICE float seen_score(const AttentionArgs& a, float score, long long b, long long h,
                              long long i, long long j, bool all) {
  const float hidden = minus_infinity();
  if (!all && (j >= a.keys || (C::kCausal && j > i))) return hidden;
  const float scaled = score * (a.scale * kLog2E);
  if constexpr (C::kMask == AttentionMask::None) {
    return scaled;
  } else {
    if (i >= a.queries) return hidden;
    const long long at =
        b * a.mask.stride[0] + h * a.mask.stride[1] + i * a.mask.stride[2] + j * a.mask.stride[3];
    if constexpr (C::kMask == AttentionMask::Bool)
      return static_cast<const unsigned char*>(a.mask.data)[at] != 0 ? scaled : hidden;
    else if constexpr (C::kMask == AttentionMask::Float32)
      return scaled + kLog2E * element::Float32::load(a.mask.data, at);
    else if constexpr (C::kMask == AttentionMask::Float16)
      return scaled + kLog2E * element::Float16::load(a.mask.data, at);
    else
      return scaled + kLog2E * element::BFloat16::load(a.mask.data, at);
  }
}

/// Which weights stay: the words of the draw that a tensor of all weights [batch, heads, queries,
/// keys] would read. In a warp's 16 x 8 results a lane has four, of which one bit each is given in
/// their order. Every lane of a warp must ask.
template <class C>
struct AttentionKeeps {
  RandomDraw draw = {0, 0};
  unsigned below = 0;
  float scale = 1.0f;                     // of those that stay
  unsigned long long head = 0, keys = 0;  // weights in front of the head's, and in one row of it

  TENON_DEVICE AttentionKeeps(const AttentionArgs& a, long long b, long long h) {
    if constexpr (C::kDrops != AttentionDrops::None) {
      draw = random_draw(a.drops, 0);
      below = static_cast<unsigned>(a.drops[2]);
      scale = 1.0f / (1.0f - static_cast<float>(below) * 5.9604644775390625e-8f);
      head = static_cast<unsigned long long>((b * a.heads + h) * a.queries * a.keys);
      keys = static_cast<unsigned long long>(a.keys);
    }
  }

  TENON_DEVICE unsigned long long place(long long i, long long j) const {
    return head + static_cast<unsigned long long>(i) * keys + static_cast<unsigned long long>(j);
  }
  TENON_DEVICE unsigned stays(unsigned word) const { return word >> 8 >= below ? 1u : 0u; }
  TENON_DEVICE unsigned one(long long i, long long j) const {
    const unsigned long long at = place(i, j);
    return stays(pick(philox(draw.key, at >> 2, draw.draw), static_cast<int>(at & 3)));
  }
  /// Of four keys from j on, a multiple of four.
  TENON_DEVICE unsigned four(long long i, long long j) const {
    const PhiloxBlock block = philox(draw.key, place(i, j) >> 2, draw.draw);
    return stays(block.word[0]) | stays(block.word[1]) << 1 | stays(block.word[2]) << 2 |
           stays(block.word[3]) << 3;
  }

  /// Rows are queries from i on, columns keys from j on. Two lanes share two blocks: each makes
  /// one.
  TENON_DEVICE unsigned of_keys(long long i, long long j) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    if constexpr (C::kDrops == AttentionDrops::Fours) {
      const bool lower = t % 2 != 0;
      const unsigned own = four(i + g + (lower ? 8 : 0), j + t / 2 * 4),
                     other = shuffle_xor(own, 1);
      const unsigned first = (lower ? other : own) >> t % 2 * 2,
                     second = (lower ? own : other) >> t % 2 * 2;
      return (first & 3u) | (second & 3u) << 2;
    } else {
      unsigned bits = 0;
#pragma unroll
      for (int e = 0; e < 4; ++e) bits |= one(i + g + e / 2 * 8, j + 2 * t + e % 2) << e;
      return bits;
    }
  }
  /// Rows are keys from j on, a multiple of 16, columns queries from i on. Four lanes share four
  /// blocks: each makes one.
  TENON_DEVICE unsigned of_queries(long long i, long long j) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    unsigned bits = 0;
    if constexpr (C::kDrops == AttentionDrops::Fours) {
      const unsigned own = four(i + 2 * t + g % 2, j + g % 4 / 2 * 8 + g / 4 * 4);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        bits |= (shuffle(own, (g / 4 * 4 + e) * 4 + t) >> g % 4 & 1u) << e;
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) bits |= one(i + 2 * t + e % 2, j + g + e / 2 * 8) << e;
    }
    return bits;
  }
};

/// Rows row0 + g and row0 + g + 8 of a warp's 16 x cols results, to head h of batch b.
template <class T, int tiles>
TENON_DEVICE void store_rows(const AttentionResult& out, const float (&x)[tiles][4], long long b,
                             long long h, long long row0, long long rows, int real) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const long long row = row0 + g + 8 * half;
    if (row >= rows) continue;
    unsigned short* to = static_cast<unsigned short*>(out.data) + b * out.stride[0] +
                         row * out.stride[1] + h * out.stride[2];
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
      const int e = n * 8 + 2 * t;
      if (e < real)
        *reinterpret_cast<unsigned*>(to + e) = T::pack(x[n][2 * half], x[n][2 * half + 1]);
    }
  }
}

template <class C>
__device__ __forceinline__ void attention_forward(const AttentionArgs& a) {
  using T = typename C::Type;
  constexpr int kKeys = 64;
  using QTile = AttentionTile<kAttentionRows, C::kE>;
  using KTile = AttentionTile<kKeys, C::kE>;
  using VTile = AttentionTile<kKeys, C::kF>;
  TENON_DYNAMIC_SHARED(shared);
  unsigned short* const memory = reinterpret_cast<unsigned short*>(shared);
  const QTile q{memory};
  const auto k_tile = [&](int s) {
    return KTile{memory + QTile::kElements + s * KTile::kElements};
  };
  const auto v_tile = [&](int s) {
    return VTile{memory + QTile::kElements + 2 * KTile::kElements + s * VTile::kElements};
  };
  // Blocks with most keys first, where later queries see more.
  const long long block = static_cast<long long>(gridDim.x - 1 - blockIdx.x),
                  h = static_cast<long long>(blockIdx.y) % a.heads,
                  b = static_cast<long long>(blockIdx.y) / a.heads, of = h / (a.heads / a.kv_heads);
  const long long q0 = block * kAttentionRows;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4,
            warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const unsigned short *const kp = head_of(a.k, b, of), *const vp = head_of(a.v, b, of);
  const long long seen = C::kCausal && q0 + kAttentionRows < a.keys ? q0 + kAttentionRows : a.keys;
  const int blocks = static_cast<int>((seen + kKeys - 1) / kKeys);
  const auto stage = [&](int j) {
    const long long k0 = static_cast<long long>(j) * kKeys;
    k_tile(j % 2).template stage<C::kSize>(kp + k0 * a.k.stride[1], a.k.stride[1], a.keys - k0);
    v_tile(j % 2).template stage<C::kValueSize>(vp + k0 * a.v.stride[1], a.v.stride[1],
                                                a.keys - k0);
    copy_async_commit();
  };
  q.template stage<C::kSize>(head_of(a.q, b, h) + q0 * a.q.stride[1], a.q.stride[1],
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
    __syncthreads();
    float p[kKeys / 8][4];
    clear(p);
    multiply_rows<T, kKeys>(p, q, warp_row, k_tile(j % 2));
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
      // A query that has seen no key yet has no largest score to take off.
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
    multiply_weights<T, kKeys>(y, p, v_tile(j % 2));
    __syncthreads();
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    for (int other = 1; other < 4; other *= 2) total[half] += shuffle_xor(total[half], other);
    const float inverse = 1.0f / total[half],
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

/// A warp a query: delta = rowsum(dy y).
template <class C>
__device__ __forceinline__ void attention_delta(const AttentionArgs& a) {
  using T = typename C::Type;
  const long long row = (static_cast<long long>(blockIdx.x) * kAttentionThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool inside = row < a.batch * a.heads * a.queries;
  float sum = 0.0f;
  if (inside) {
    const long long i = row % a.queries, h = row / a.queries % a.heads,
                    b = row / a.queries / a.heads;
    const unsigned short* y = head_of(a.y, b, h) + i * a.y.stride[1];
    const unsigned short* dy = head_of(a.dy, b, h) + i * a.dy.stride[1];
    for (int e = lane; e < C::kValueSize; e += 32) sum += T::wide(y[e]) * T::wide(dy[e]);
  }
  for (int other = 16; other > 0; other /= 2) sum += shuffle_xor(sum, other);
  if (inside && lane == 0) a.delta[row] = sum;
}

/// The gradients of 64 keys and values: sweeps over the queries that see them, of all heads that
/// share them.
template <class C>
__device__ __forceinline__ void attention_keys(const AttentionArgs& a) {
  using T = typename C::Type;
  constexpr int kQueries = C::kOther;
  using KTile = AttentionTile<kAttentionRows, C::kE>;
  using VTile = AttentionTile<kAttentionRows, C::kF>;
  using QTile = AttentionTile<kQueries, C::kE>;
  using GTile = AttentionTile<kQueries, C::kF>;
  TENON_DYNAMIC_SHARED(shared);
  unsigned short* const memory = reinterpret_cast<unsigned short*>(shared);
  const KTile k{memory};
  const VTile v{memory + KTile::kElements};
  unsigned short* const streamed = memory + KTile::kElements + VTile::kElements;
  const auto q_tile = [&](int s) { return QTile{streamed + s * QTile::kElements}; };
  const auto g_tile = [&](int s) {
    return GTile{streamed + 2 * QTile::kElements + s * GTile::kElements};
  };
  float* const rows =
      reinterpret_cast<float*>(streamed + 2 * QTile::kElements + 2 * GTile::kElements);
  const long long of = static_cast<long long>(blockIdx.y) % a.kv_heads,
                  b = static_cast<long long>(blockIdx.y) / a.kv_heads, group = a.heads / a.kv_heads,
                  k0 = static_cast<long long>(blockIdx.x) * kAttentionRows;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4,
            warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  k.template stage<C::kSize>(head_of(a.k, b, of) + k0 * a.k.stride[1], a.k.stride[1], a.keys - k0);
  v.template stage<C::kValueSize>(head_of(a.v, b, of) + k0 * a.v.stride[1], a.v.stride[1],
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
    q_tile(step % 2).template stage<C::kSize>(head_of(a.q, b, h) + q0 * a.q.stride[1],
                                              a.q.stride[1], left);
    g_tile(step % 2).template stage<C::kValueSize>(head_of(a.dy, b, h) + q0 * a.dy.stride[1],
                                                   a.dy.stride[1], left);
    copy_async_commit();
  };
  float dk[C::kE / 8][4], dv[C::kF / 8][4];
  clear(dk);
  clear(dv);
  if (steps > 0) stage(0);
  for (int step = 0; step < steps; ++step) {
    const long long h = head_at(step), q0 = query_at(step);
    float *const log = rows, *const delta = rows + kQueries;
    for (int i = static_cast<int>(threadIdx.x); i < kQueries; i += kAttentionThreads) {
      const long long at = (b * a.heads + h) * a.queries + q0 + i;
      log[i] = q0 + i < a.queries ? a.log[at] * kLog2E : 0.0f;
      delta[i] = q0 + i < a.queries ? a.delta[at] : 0.0f;
    }
    if (step + 1 < steps) {
      stage(step + 1);
      copy_async_wait<1>();
    } else {
      copy_async_wait<0>();
    }
    __syncthreads();
    float p[kQueries / 8][4], ds[kQueries / 8][4];
    clear(p);
    clear(ds);
    multiply_rows<T, kQueries>(p, k, warp_row, q_tile(step % 2));
    multiply_rows<T, kQueries>(ds, v, warp_row, g_tile(step % 2));
    const bool all = sees_all<C>(a, q0, k0 + warp_row, 16);
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = n * 8 + 2 * t + e % 2;
        const float score =
            seen_score<C>(a, p[n][e], b, h, q0 + i, k0 + warp_row + g + e / 2 * 8, all);
        p[n][e] = q0 + i < a.queries ? exp2_fast(score - log[i]) : 0.0f;
        if constexpr (C::kDrops == AttentionDrops::None)
          ds[n][e] = p[n][e] * (ds[n][e] - delta[i]) * a.scale;
      }
    if constexpr (C::kDrops != AttentionDrops::None) {
      const AttentionKeeps<C> keeps(a, b, h);
#pragma unroll
      for (int n = 0; n < kQueries / 8; ++n) {
        const unsigned bits = keeps.of_queries(q0 + n * 8, k0 + warp_row);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float kept = (bits >> e & 1u) != 0 ? keeps.scale : 0.0f;
          ds[n][e] = p[n][e] * (ds[n][e] * kept - delta[n * 8 + 2 * t + e % 2]) * a.scale;
          p[n][e] *= kept;
        }
      }
    }
    multiply_weights<T, kQueries>(dv, p, g_tile(step % 2));
    multiply_weights<T, kQueries>(dk, ds, q_tile(step % 2));
    __syncthreads();
  }
  if (a.out_k.data != nullptr) store_rows<T>(a.out_k, dk, b, of, k0 + warp_row, a.keys, C::kSize);
  if (a.out_v.data != nullptr)
    store_rows<T>(a.out_v, dv, b, of, k0 + warp_row, a.keys, C::kValueSize);
}

/// The gradient of 64 queries: a sweep over the keys that they see.
template <class C>
__device__ __forceinline__ void attention_queries(const AttentionArgs& a) {
  using T = typename C::Type;
  constexpr int kKeys = C::kOther;
  using QTile = AttentionTile<kAttentionRows, C::kE>;
  using GTile = AttentionTile<kAttentionRows, C::kF>;
  using KTile = AttentionTile<kKeys, C::kE>;
  using VTile = AttentionTile<kKeys, C::kF>;
  TENON_DYNAMIC_SHARED(shared);
  unsigned short* const memory = reinterpret_cast<unsigned short*>(shared);
  const QTile q{memory};
  const GTile dy{memory + QTile::kElements};
  unsigned short* const streamed = memory + QTile::kElements + GTile::kElements;
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
  q.template stage<C::kSize>(head_of(a.q, b, h) + q0 * a.q.stride[1], a.q.stride[1],
                             a.queries - q0);
  dy.template stage<C::kValueSize>(head_of(a.dy, b, h) + q0 * a.dy.stride[1], a.dy.stride[1],
                                   a.queries - q0);
  const unsigned short *const kp = head_of(a.k, b, of), *const vp = head_of(a.v, b, of);
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
    log[half] = row < a.queries ? a.log[at] * kLog2E : 0.0f;
    delta[half] = row < a.queries ? a.delta[at] : 0.0f;
  }
  stage(0);
  float dq[C::kE / 8][4];
  clear(dq);
  const AttentionKeeps<C> keeps(a, b, h);
  for (int j = 0; j < blocks; ++j) {
    if (j + 1 < blocks) {
      stage(j + 1);
      copy_async_wait<1>();
    } else {
      copy_async_wait<0>();
    }
    __syncthreads();
    float p[kKeys / 8][4], ds[kKeys / 8][4];
    clear(p);
    clear(ds);
    multiply_rows<T, kKeys>(p, q, warp_row, k_tile(j % 2));
    multiply_rows<T, kKeys>(ds, dy, warp_row, v_tile(j % 2));
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
        const float weight = row < a.queries ? exp2_fast(score - log[e / 2]) : 0.0f;
        ds[n][e] = weight * (ds[n][e] - delta[e / 2]) * a.scale;
      }
    multiply_weights<T, kKeys>(dq, ds, k_tile(j % 2));
    __syncthreads();
  }
  store_rows<T>(a.out, dq, b, h, q0 + warp_row, a.queries, C::kSize);
}

}  // namespace tenon::cuda
