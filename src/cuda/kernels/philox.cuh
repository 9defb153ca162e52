// Philox4x32-10 for generated kernels: the numbering of src/base/philox.h and of random tensors
// (docs/numerics.md), bit for bit where numbers are uniform.
//
// Element e of a draw reads word e % 4 of block e / 4. Nothing here keeps state.
#pragma once

#include "scalar/arithmetic.h"
#include "scalar/config.h"
#include "scalar/log.h"
#include "scalar/trig.h"

namespace tenon::cuda {

struct PhiloxBlock {
  unsigned word[4];
};

/// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
__device__ __forceinline__ PhiloxBlock philox(unsigned long long key, unsigned long long low,
                                              unsigned long long high) {
  unsigned c[4] = {static_cast<unsigned>(low), static_cast<unsigned>(low >> 32),
                   static_cast<unsigned>(high), static_cast<unsigned>(high >> 32)};
  unsigned k0 = static_cast<unsigned>(key), k1 = static_cast<unsigned>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned long long p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
    c[0] = static_cast<unsigned>(q >> 32) ^ c[1] ^ k0;
    c[2] = static_cast<unsigned>(p >> 32) ^ c[3] ^ k1;
    c[1] = static_cast<unsigned>(q);
    c[3] = static_cast<unsigned>(p);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

__device__ __forceinline__ float unit_float(unsigned word) {
  return static_cast<float>(word >> 8) * 5.9604644775390625e-8f;
}

/// The draw of an element: `state` is (seed, counter), `offset` counts the draws of a program.
struct RandomDraw {
  unsigned long long key, draw;
};
__device__ __forceinline__ RandomDraw random_draw(const long long* state, long long offset) {
  return {static_cast<unsigned long long>(state[0]),
          static_cast<unsigned long long>(state[1]) + static_cast<unsigned long long>(offset)};
}

/// Selects a word by comparisons, because indexing would move the registers to local memory.
__device__ __forceinline__ unsigned pick(const PhiloxBlock& block, int word) {
  const unsigned even = (word & 2) != 0 ? block.word[2] : block.word[0];
  const unsigned odd = (word & 2) != 0 ? block.word[3] : block.word[1];
  return (word & 1) != 0 ? odd : even;
}

/// The blocks of N neighbouring elements; the first element is a multiple of N (1, 2, 4 or 8).
template <int N>
struct RandomRow {
  PhiloxBlock block[(N + 3) / 4];
  int first;  // word of the first element
};
template <int N>
__device__ __forceinline__ RandomRow<N> random_row(RandomDraw d, long long element) {
  RandomRow<N> row;
  row.first = static_cast<int>(element & 3);
#pragma unroll
  for (int k = 0; k < (N + 3) / 4; ++k)
    row.block[k] = philox(d.key, (static_cast<unsigned long long>(element) >> 2) + k, d.draw);
  return row;
}
template <int N>
__device__ __forceinline__ int word_of(const RandomRow<N>& row, int i) {
  return N >= 4 ? i & 3 : row.first + i;
}

/// Uniform in [0, 1), 24 random bits.
template <int N>
__device__ __forceinline__ float uniform_of(const RandomRow<N>& row, int i) {
  return unit_float(pick(row.block[i / 4], word_of(row, i)));
}
/// Normal numbers by Box-Muller on the word pairs (0, 1) and (2, 3).
template <int N>
__device__ __forceinline__ float normal_of(const RandomRow<N>& row, int i) {
  const int word = word_of(row, i);
  const float first = unit_float(pick(row.block[i / 4], word & 2));
  const float second = unit_float(pick(row.block[i / 4], word | 1));
  const float radius = scalar::sqrt(-2.0f * scalar::log(1.0f - first));
  const double angle = 6.283185307179586476925 * static_cast<double>(second);
  const double permuted = scalar::sin_quadrant(angle, (word & 1) == 0 ? 1u : 0u);
  return static_cast<float>(static_cast<double>(radius) * permuted);
}
template <int N>
__device__ __forceinline__ long long bits_of_word(const RandomRow<N>& row, int i) {
  return static_cast<long long>(pick(row.block[i / 4], word_of(row, i)));
}

}  // namespace tenon::cuda
