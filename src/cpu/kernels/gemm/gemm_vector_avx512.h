// Vectors of AVX-512: 16 floats, 32 registers; with and without its bfloat16 products. In an
// unnamed namespace, for files compiled for this instruction set only.
#pragma once

// GCC 12 reports the "undefined" operands in its own intrinsics as uninitialised variables (bug
// 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "cpu/kernels/gemm/gemm_vector.h"

namespace tenon::cpu {
namespace {

__mmask16 first(int count) { return static_cast<__mmask16>((1u << count) - 1u); }

struct Avx512 {
  using single = Avx512;
  using reg = __m512;
  static constexpr int lanes = 16;
  static constexpr int max_mr[5] = {0, 14, 14, 0, 6};
  static constexpr int max_dot_rows = 6;
  static constexpr bool has_pairs = false;
  static constexpr bool has_broadcast_operands = true;

  static reg zero() { return _mm512_setzero_ps(); }
  static reg load(const float* p) { return _mm512_loadu_ps(p); }
  static reg load_part(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static reg broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static reg fma(reg a, reg b, reg c) { return _mm512_fmadd_ps(a, b, c); }
  // Inline assembly, because compilers merge several loads of the same element into one broadcast.
  template <bool Pairs>
  static void fma_broadcast(const float* a, reg b, reg& sum) {
    if constexpr (Pairs) {
      asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*a));
    } else {
      asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*a));
    }
  }
  static reg add(reg a, reg b) { return _mm512_add_ps(a, b); }
  static void store(float* p, reg v) { _mm512_storeu_ps(p, v); }
  static void store_part(float* p, reg v, int n) { _mm512_mask_storeu_ps(p, first(n), v); }

  template <DType D>
  static reg load_as(const void* src, std::int64_t index, int n) {
    if constexpr (D == DType::Float32) {
      return _mm512_maskz_loadu_ps(first(n), static_cast<const float*>(src) + index);
    } else {
      const __m256i half =
          _mm256_maskz_loadu_epi16(first(n), static_cast<const std::uint16_t*>(src) + index);
      if constexpr (D == DType::Float16) return _mm512_cvtph_ps(half);
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }
  }

  // Nearest even in the upper half; a NaN keeps its upper half and stays a NaN.
  static reg round_bf16(reg v) {
    const __m512i u = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i quiet = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
    const __m512i picked =
        _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), quiet);
    return _mm512_castsi512_ps(
        _mm512_and_si512(picked, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }

  using mask = __mmask16;
  static mask greater_or_nan(reg a, reg b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) | _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
  }
  static mask equal(reg a, reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static reg select(mask m, reg yes, reg no) { return _mm512_mask_mov_ps(no, m, yes); }
  static reg mul(reg a, reg b) { return _mm512_mul_ps(a, b); }
  static void split(reg& lo, reg& hi) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const reg first_half = _mm512_permutex2var_ps(lo, even, hi);
    hi = _mm512_permutex2var_ps(lo, _mm512_or_si512(even, _mm512_set1_epi32(1)), hi);
    lo = first_half;
  }
  static void zip(reg& even, reg& odd) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const reg first_half = _mm512_permutex2var_ps(even, low, odd);
    odd = _mm512_permutex2var_ps(even, _mm512_add_epi32(low, _mm512_set1_epi32(8)), odd);
    even = first_half;
  }

  static void transpose(reg* r) {
    __m512 t[16];
    TENON_UNROLL
    for (int i = 0; i < 16; i += 2) {
      t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
      t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    TENON_UNROLL
    for (int i = 0; i < 16; i += 4) {
      const __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
      const __m512d c = _mm512_castps_pd(t[i + 2]), d = _mm512_castps_pd(t[i + 3]);
      r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
      r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
      r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
      r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    TENON_UNROLL
    for (int i = 0; i < 4; ++i) {
      t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
      t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
      t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
      t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    TENON_UNROLL
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
      r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
      r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
      r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
  }
};

struct Avx512Bf16 : Avx512 {
  static constexpr bool has_pairs = true;

  static __m512bh words(reg v) { return reinterpret_cast<__m512bh>(v); }
  static reg fma_pairs(reg a, reg b, reg c) { return _mm512_dpbf16_ps(c, words(a), words(b)); }

  // Word i = elements index + 2 i and index + 2 i + 1 of a row; n <= 32 elements, zero beyond.
  template <DType D>
  static reg pack_pairs(const void* src, std::int64_t index, int n) {
    if constexpr (D == DType::BFloat16) {
      const __mmask32 mask = n >= 32 ? ~__mmask32{0} : (__mmask32{1} << n) - 1;
      return _mm512_castsi512_ps(
          _mm512_maskz_loadu_epi16(mask, static_cast<const std::uint16_t*>(src) + index));
    } else {
      const reg lo = load_as<D>(src, index, n < 16 ? n : 16);
      const reg hi = n > 16 ? load_as<D>(src, index + 16, n - 16) : zero();
      return reinterpret_cast<reg>(_mm512_cvtne2ps_pbh(hi, lo));
    }
  }

  static reg zip_pairs(reg lo, reg hi) {
    return zip_halves(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(hi, lo)));
  }
  // The same for n <= 16 elements in memory each.
  template <DType D>
  static reg zip_rows(const void* lo, const void* hi, std::int64_t index, int n) {
    if constexpr (D == DType::BFloat16) {
      const auto half = [&](const void* src) {
        return _mm256_maskz_loadu_epi16(first(n), static_cast<const std::uint16_t*>(src) + index);
      };
      return zip_halves(_mm512_inserti64x4(_mm512_castsi256_si512(half(lo)), half(hi), 1));
    } else {
      return zip_pairs(load_as<D>(lo, index, n), load_as<D>(hi, index, n));
    }
  }

 private:
  // Word i = the i-th 16-bit element of the lower half and of the upper half.
  static reg zip_halves(__m512i halves) {
    const __m512i words = _mm512_setr_epi32(
        0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007, 0x180008,
        0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(words, halves));
  }
};

}  // namespace

}  // namespace tenon::cpu
