// Vectors of AVX2 with FMA and F16C: 8 floats, 16 registers. In an unnamed namespace, for files
// compiled for this instruction set only.
#pragma once

#include <immintrin.h>

#include "cpu/kernels/gemm/gemm_vector.h"

namespace tenon::cpu {
namespace {

struct Avx2 {
  using single = Avx2;
  using reg = __m256;
  static constexpr int lanes = 8;
  static constexpr int max_mr[5] = {0, 6, 6, 0, 3};
  static constexpr int max_dot_rows = 3;
  static constexpr bool has_pairs = false;
  static constexpr bool has_broadcast_operands = false;

  static __m256i first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static reg zero() { return _mm256_setzero_ps(); }
  static reg load(const float* p) { return _mm256_loadu_ps(p); }
  static reg load_part(const float* p, int n) {
    return n >= 8 ? load(p) : _mm256_maskload_ps(p, first(n));
  }
  static reg broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static reg fma(reg a, reg b, reg c) { return _mm256_fmadd_ps(a, b, c); }
  static reg add(reg a, reg b) { return _mm256_add_ps(a, b); }
  static void store(float* p, reg v) { _mm256_storeu_ps(p, v); }
  static void store_part(float* p, reg v, int n) {
    if (n >= 8) {
      store(p, v);
    } else {
      _mm256_maskstore_ps(p, first(n), v);
    }
  }

  template <DType D>
  static reg load_as(const void* src, std::int64_t index, int n) {
    if constexpr (D == DType::Float32) {
      return load_part(static_cast<const float*>(src) + index, n);
    } else {
      const std::uint16_t* from = static_cast<const std::uint16_t*>(src) + index;
      __m128i half = _mm_setzero_si128();
      if (n >= 8) {
        half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      } else {
        __builtin_memcpy(&half, from, sizeof(std::uint16_t) * static_cast<unsigned>(n));
      }
      if constexpr (D == DType::Float16) return _mm256_cvtph_ps(half);
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    }
  }

  // Nearest even in the upper half; a NaN keeps its upper half and stays a NaN.
  static reg round_bf16(reg v) {
    const __m256i u = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i picked = _mm256_blendv_epi8(rounded, quiet, nan);
    return _mm256_castsi256_ps(
        _mm256_and_si256(picked, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }

  using mask = __m256;
  static mask greater_or_nan(reg a, reg b) {
    return _mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ), _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  }
  static mask equal(reg a, reg b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static reg select(mask m, reg yes, reg no) { return _mm256_blendv_ps(no, yes, m); }
  static reg mul(reg a, reg b) { return _mm256_mul_ps(a, b); }
  static reg order(reg v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
  }
  static void split(reg& lo, reg& hi) {
    const reg even = _mm256_shuffle_ps(lo, hi, 0x88);
    hi = order(_mm256_shuffle_ps(lo, hi, 0xdd));
    lo = order(even);
  }
  static void zip(reg& even, reg& odd) {
    const reg low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
    even = _mm256_permute2f128_ps(low, high, 0x20);
    odd = _mm256_permute2f128_ps(low, high, 0x31);
  }

  static void transpose(reg* r) {
    reg t[8];
    TENON_UNROLL
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    TENON_UNROLL
    for (int i = 0; i < 8; i += 4) {
      r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
      r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
      r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
      r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    TENON_UNROLL
    for (int i = 0; i < 4; ++i) {
      t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
      t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    TENON_UNROLL
    for (int i = 0; i < 8; ++i) r[i] = t[i];
  }
};

}  // namespace

}  // namespace tenon::cpu
