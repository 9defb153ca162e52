// What all attention kernels share about a score and its weight: the compile-time parameters, the
// mask, the weight of a score, and the weights that dropout keeps. The products are in
// attention.cuh, attention_short.cuh and attention_wgmma.cuh.
#pragma once

#include "cuda/kernels/attention/attention_args.cuh"
#include "cuda/kernels/attention/attention_tile.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/philox.cuh"

namespace tenon::cuda {

enum class AttentionMask { None, Bool, Float32, Float16, BFloat16 };
/// Dropout of attention weights: none; with a number of keys that is a multiple of four, so that
/// four neighbouring weights share one block of random words; with any number of keys.
enum class AttentionDrops { None, Fours, Any };

/// The compile-time parameters of an attention kernel.
template <class T, int size, int value_size, bool causal, AttentionMask mask,
          AttentionDrops drops = AttentionDrops::None>
struct AttentionConfig {
  using Type = T;
  static constexpr int kSize = size, kValueSize = value_size;
  static constexpr int kE = (size + 15) / 16 * 16, kF = (value_size + 15) / 16 * 16;
  static constexpr bool kCausal = causal;
  static constexpr AttentionMask kMask = mask;
  static constexpr AttentionDrops kDrops = drops;
  // Rows of a tile of the other side: forward, and in the backward kernels, which accumulate two
  // gradients. A block needs at most 99 KiB of shared memory, which every GPU has.
  static constexpr int kRows = T::kRows;
  static constexpr int kOther = T::kGradientRows > 16 && (kE > 64 || kF > 64) ? T::kGradientRows / 2
                                                                              : T::kGradientRows;
};

TENON_DEVICE float minus_infinity() { return scalar::float_of(0xff800000u); }

constexpr float kLog2E = 1.44269504088896340736f, kLn2 = 0.69314718055994530942f;

/// True if all keys of a tile exist and all queries of the block see them; q0 is the first query.
template <class C>
TENON_DEVICE bool sees_all(const AttentionArgs& a, long long q0, long long k0, int keys) {
  return k0 + keys <= a.keys && (!C::kCausal || k0 + keys - 1 <= q0);
}

/// A mask's additive value in units of log2. Finite mask values stay finite, so a row that is
/// hidden by the lowest finite number still has weights.
TENON_DEVICE float added_score(float number) {
  constexpr float kLeast = -3e38f;
  const float scaled = __fmul_rn(kLog2E, number);
  return scaled < kLeast && number != minus_infinity() ? kLeast : scaled;
}

/// Limits weights to 1, for rows whose mask values are so large that the log-sum-exp loses the
/// logarithm of the sum to rounding.
template <class C>
TENON_DEVICE float weight_of(float score, float log) {
  float exponent = score - log;
  if constexpr (C::kMask != AttentionMask::None && C::kMask != AttentionMask::Bool)
    if (exponent > 0) exponent = 0;
  return exp2_fast(exponent);
}

/// The log-sum-exp of a query whose keys are all masked is -infinity. It is replaced by 0, so that
/// each weight of the query is 0 and not NaN.
template <class C>
TENON_DEVICE float seen_log(float log) {
  if constexpr (C::kMask != AttentionMask::None)
    if (log == minus_infinity()) return 0.0f;
  return log;
}

/// The factor on the weights of a query: 0 if the mask hides all keys from the query.
template <class C>
TENON_DEVICE float inverse_of(float total) {
  if constexpr (C::kMask != AttentionMask::None)
    if (total == 0.0f) return 0.0f;
  return 1.0f / total;
}

/// Float32 operands only: the factors that make each query's weights sum to 1, stored after the
/// deltas.
TENON_DEVICE float* inverse_sums(const AttentionArgs& a) {
  return a.delta + a.batch * a.heads * a.queries;
}

/// The score in units of log2: scaled, masked, -infinity where hidden. `all`: only the mask can
/// hide an element of this tile.
template <class C>
TENON_DEVICE float seen_score(const AttentionArgs& a, float score, long long b, long long h,
                              long long i, long long j, bool all) {
  const float hidden = minus_infinity();
  if (!all && (j >= a.keys || (C::kCausal && j > i))) return hidden;
  // Never contracted into an FMA: both passes must compute the same weights.
  const float scaled = __fmul_rn(score, a.scale * kLog2E);
  if constexpr (C::kMask == AttentionMask::None) {
    return scaled;
  } else {
    if (i >= a.queries) return hidden;
    const long long at =
        b * a.mask.stride[0] + h * a.mask.stride[1] + i * a.mask.stride[2] + j * a.mask.stride[3];
    if constexpr (C::kMask == AttentionMask::Bool)
      return static_cast<const unsigned char*>(a.mask.data)[at] != 0 ? scaled : hidden;
    else if constexpr (C::kMask == AttentionMask::Float32)
      return scaled + added_score(element::Float32::load(a.mask.data, at));
    else if constexpr (C::kMask == AttentionMask::Float16)
      return scaled + added_score(element::Float16::load(a.mask.data, at));
    else
      return scaled + added_score(element::BFloat16::load(a.mask.data, at));
  }
}

/// Which weights dropout keeps. The random words are those that a tensor of all weights [batch,
/// heads, queries, keys] would use. A lane holds four of a warp's 16 x 8 results; it gets one bit
/// for each, in their order. Every lane of the warp must call.
template <class C>
struct AttentionKeeps {
  RandomDraw draw = {0, 0};
  unsigned below = 0;
  float scale = 1.0f;                     // factor on the kept weights
  unsigned long long head = 0, keys = 0;  // weights before this head; weights in a row

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
  /// The bits of four keys from j on; j is a multiple of four.
  TENON_DEVICE unsigned four(long long i, long long j) const {
    const PhiloxBlock block = philox(draw.key, place(i, j) >> 2, draw.draw);
    return stays(block.word[0]) | stays(block.word[1]) << 1 | stays(block.word[2]) << 2 |
           stays(block.word[3]) << 3;
  }

  /// Rows are queries from i on, columns are keys from j on. Two lanes share two blocks of random
  /// words; each lane computes one of them.
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
  /// Rows are keys from j on (a multiple of 16), columns are queries from i on. Four lanes share
  /// four blocks of random words; each lane computes one of them.
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

}  // namespace tenon::cuda
