// The bodies of KernelSet that pack operands into panels and store transposed results, written once
// over a vector type V (gemm_vector.h) and compiled in each instruction set's own file.
//
// Everything is in an unnamed namespace and uses no inline function of a shared header, for the
// reason that gemm_tile_impl.h gives.
#pragma once

#include "cpu/kernels/gemm/gemm_tile.h"
#include "cpu/kernels/gemm/gemm_vector.h"

namespace tenon::cpu {
namespace {

template <class V, DType D>
typename V::reg load_words(const void* src, std::int64_t index, int count, bool round) {
  const typename V::reg value = V::template load_as<D>(src, index, count);
  return round ? V::round_bf16(value) : value;
}

// dst[step * width + i] = word `step` of row i for i < count, zero up to width; words(i, s0, n) are
// n words of row i from step s0 on.
template <class V, class Words>
void transpose_rows(int count, std::int64_t steps, float* dst, int width, Words words) {
  constexpr int L = V::lanes;
  for (int i0 = 0; i0 < width; i0 += L) {
    const int filled = count - i0 < L ? count - i0 : L;
    const int stored = width - i0 < L ? width - i0 : L;
    for (std::int64_t s0 = 0; s0 < steps; s0 += L) {
      const int n = steps - s0 < L ? static_cast<int>(steps - s0) : L;
      typename V::reg r[L];
      for (int i = 0; i < L; ++i) r[i] = i < filled ? words(i0 + i, s0, n) : V::zero();
      V::transpose(r);
      float* out = dst + s0 * width + i0;
      for (int s = 0; s < n; ++s) V::store_part(out + s * width, r[s], stored);
    }
  }
}

template <class V, bool Pairs, DType D>
void pack_transposed_as(const RowSource& source, std::int64_t k, bool round, float* dst,
                        int width) {
  constexpr int L = V::lanes;
  constexpr std::int64_t kItem = D == DType::Float32 ? 4 : 2;
  const auto words = [&](int row, std::int64_t s0, int n) {
    fetch_near(static_cast<const char*>(source.rows[row]) + s0 * (Pairs ? 2 : 1) * kItem);
    if constexpr (Pairs) {
      const std::int64_t left = k - 2 * s0;
      return V::template pack_pairs<D>(source.rows[row], 2 * s0,
                                       left < 2 * L ? static_cast<int>(left) : 2 * L);
    } else {
      return load_words<V, D>(source.rows[row], s0, n, round);
    }
  };
  transpose_rows<V>(source.count, Pairs ? (k + 1) / 2 : k, dst, width, words);
}

template <class V, DType D>
void zip_transposed_as(const RowSource& lo, const void* const* hi, std::int64_t k, float* dst,
                       int width) {
  constexpr std::int64_t kItem = D == DType::Float32 ? 4 : 2;
  transpose_rows<V>(lo.count, k, dst, width, [&](int row, std::int64_t s0, int n) {
    fetch_near(static_cast<const char*>(lo.rows[row]) + s0 * kItem);
    if (hi != nullptr) fetch_near(static_cast<const char*>(hi[row]) + s0 * kItem);
    if (hi != nullptr) return V::template zip_rows<D>(lo.rows[row], hi[row], s0, n);
    return V::zip_pairs(V::template load_as<D>(lo.rows[row], s0, n), V::zero());
  });
}

template <class V>
void zip_transposed(const RowSource& lo, const void* const* hi, std::int64_t k, float* dst,
                    int width) {
  if (lo.dtype == DType::Float32)
    return zip_transposed_as<V, DType::Float32>(lo, hi, k, dst, width);
  if (lo.dtype == DType::BFloat16)
    return zip_transposed_as<V, DType::BFloat16>(lo, hi, k, dst, width);
  zip_transposed_as<V, DType::Float16>(lo, hi, k, dst, width);
}

// Packs columns [0, filled) of k rows, zero up to `stored`; filled <= stored <= lanes.
template <class V, bool Pairs, DType D>
[[gnu::always_inline]] inline void pack_columns(const char* src, std::int64_t row_bytes,
                                                std::int64_t k, int filled, int stored, bool round,
                                                float* dst, std::int64_t width) {
  const typename V::reg zero = V::zero();
  for (std::int64_t i = 0; i < k; i += Pairs ? 2 : 1, dst += width) {
    typename V::reg word = load_words<V, D>(src, 0, filled, round);
    src += row_bytes;
    if constexpr (Pairs) {
      word = V::zip_pairs(word, i + 1 < k ? load_words<V, D>(src, 0, filled, round) : zero);
      src += row_bytes;
    }
    V::store_part(dst, word, stored);
  }
}

template <class V, bool Pairs, DType D>
void pack_rows_as(const char* src, std::int64_t row_bytes, std::int64_t k, int cols, bool round,
                  float* dst, std::int64_t width) {
  constexpr int L = V::lanes;
  constexpr std::int64_t kItem = D == DType::Float32 ? 4 : 2;
  for (std::int64_t j = 0; j < width; j += L) {
    const int left = cols > j ? static_cast<int>(cols - j) : 0;
    const int filled = left < L ? left : L;
    const int stored = width - j < L ? static_cast<int>(width - j) : L;
    if (filled == L) {  // known to the compiler: no masks
      pack_columns<V, Pairs, D>(src + j * kItem, row_bytes, k, L, L, round, dst + j, width);
    } else {
      pack_columns<V, Pairs, D>(src + j * kItem, row_bytes, k, filled, stored, round, dst + j,
                                width);
    }
  }
}

template <class V, bool Pairs, DType D>
[[gnu::always_inline]] inline void convert_vector(const void* lo, const void* hi, std::int64_t at,
                                                  int n, bool round, float* dst) {
  constexpr std::int64_t kItem = D == DType::Float32 ? 4 : 2;
  fetch_ahead(static_cast<const char*>(lo) + at * kItem);
  if constexpr (Pairs) {
    if (hi != nullptr) {
      fetch_ahead(static_cast<const char*>(hi) + at * kItem);
      V::store_part(dst + at, V::template zip_rows<D>(lo, hi, at, n), n);
    } else {
      V::store_part(dst + at, V::zip_pairs(V::template load_as<D>(lo, at, n), V::zero()), n);
    }
  } else {
    V::store_part(dst + at, load_words<V, D>(lo, at, n, round), n);
  }
}

template <class V, bool Pairs, DType D>
void convert_as(const void* lo, const void* hi, std::int64_t count, bool round, float* dst) {
  constexpr int L = V::lanes;
  std::int64_t at = 0;
  for (; at + L <= count; at += L)  // L is known to the compiler: no masks
    convert_vector<V, Pairs, D>(lo, hi, at, L, round, dst);
  if (at < count) convert_vector<V, Pairs, D>(lo, hi, at, static_cast<int>(count - at), round, dst);
}

// Calls f.template operator()<V, Pairs, D>(round) for the words that `math` and `dtype` require,
// with V::single for single words.
template <class V, class F>
void with_words(DType dtype, Math math, F f) {
  using S = typename V::single;
  const bool round = math == Math::Bf16;
  if constexpr (V::has_pairs) {
    if (round) {
      if (dtype == DType::Float32) return f.template operator()<V, true, DType::Float32>(false);
      if (dtype == DType::BFloat16) return f.template operator()<V, true, DType::BFloat16>(false);
      return f.template operator()<V, true, DType::Float16>(false);
    }
  }
  if (dtype == DType::Float32) return f.template operator()<S, false, DType::Float32>(round);
  if (dtype == DType::BFloat16) return f.template operator()<S, false, DType::BFloat16>(false);
  return f.template operator()<S, false, DType::Float16>(round);
}

template <class V>
void pack_transposed(const RowSource& source, std::int64_t k, Math math, float* dst, int width) {
  with_words<V>(source.dtype, math, [&]<class W, bool Pairs, DType D>(bool round) {
    pack_transposed_as<W, Pairs, D>(source, k, round, dst, width);
  });
}

template <class V>
void pack_rows(const void* src, DType dtype, std::int64_t row_stride, std::int64_t k, int cols,
               Math math, float* dst, std::int64_t width) {
  const std::int64_t row_bytes = row_stride * (dtype == DType::Float32 ? 4 : 2);
  with_words<V>(dtype, math, [&]<class W, bool Pairs, DType D>(bool round) {
    pack_rows_as<W, Pairs, D>(static_cast<const char*>(src), row_bytes, k, cols, round, dst, width);
  });
}

template <class V>
void convert_rows(const ConvertedRows& rows, Math math, float* dst, std::int64_t dst_pitch) {
  const std::int64_t row_bytes = rows.pitch * (rows.dtype == DType::Float32 ? 4 : 2);
  with_words<V>(rows.dtype, math, [&]<class W, bool Pairs, DType D>(bool round) {
    const char* from = static_cast<const char*>(rows.lo);
    const char* other = static_cast<const char*>(rows.hi);
    for (std::int64_t row = 0; row < rows.rows; ++row, from += row_bytes, dst += dst_pitch) {
      convert_as<W, Pairs, D>(from, other, rows.count, round, dst);
      if (other != nullptr) other += row_bytes;
    }
  });
}

template <class V>
void convert(const void* lo, const void* hi, DType dtype, std::int64_t count, Math math,
             float* dst) {
  convert_rows<V>({lo, hi, dtype, 1, count, 0}, math, dst, 0);
}

template <class V>
void pair_row(const void* src, DType dtype, int count, float* dst) {
  typename V::reg words;
  if (dtype == DType::Float32) {
    words = V::template pack_pairs<DType::Float32>(src, 0, count);
  } else if (dtype == DType::BFloat16) {
    words = V::template pack_pairs<DType::BFloat16>(src, 0, count);
  } else {
    words = V::template pack_pairs<DType::Float16>(src, 0, count);
  }
  V::store(dst, words);
}

// Stores the elements with even index: src[0], src[2], … `count` of them.
template <class V>
[[gnu::always_inline]] inline void take_half(const float* src, int count, float* dst) {
  const int read = 2 * count - 1;
  typename V::reg even = V::load_part(src, read < V::lanes ? read : V::lanes);
  typename V::reg odd = read > V::lanes ? V::load_part(src + V::lanes, read - V::lanes) : V::zero();
  V::split(even, odd);
  V::store_part(dst, even, count);
}

template <class V>
void take_rows(const float* src, std::int64_t rows, std::int64_t src_pitch, std::int64_t step,
               std::int64_t count, float* dst, std::int64_t dst_pitch) {
  for (std::int64_t row = 0; row < rows; ++row, src += src_pitch, dst += dst_pitch) {
    if (step != 2) {
      for (std::int64_t i = 0; i < count; ++i) dst[i] = src[i * step];
      continue;
    }
    for (std::int64_t i = 0; i < count; i += V::lanes) {
      const std::int64_t left = count - i;
      take_half<V>(src + 2 * i, left < V::lanes ? static_cast<int>(left) : V::lanes, dst + i);
    }
  }
}

template <class V>
void store_transposed(const float* tile_data, std::int64_t ld, int rows, int cols, float* dst,
                      std::int64_t dst_stride) {
  constexpr int L = V::lanes;
  for (int j0 = 0; j0 < cols; j0 += L) {
    const int width = cols - j0 < L ? cols - j0 : L;
    for (int i0 = 0; i0 < rows; i0 += L) {
      const int height = rows - i0 < L ? rows - i0 : L;
      typename V::reg r[L];
      for (int i = 0; i < L; ++i)
        r[i] = i < height ? V::load(tile_data + (i0 + i) * ld + j0) : V::zero();
      V::transpose(r);
      float* out = dst + j0 * dst_stride + i0;
      if (height == L) {
        for (int j = 0; j < width; ++j) V::store(out + j * dst_stride, r[j]);
      } else {
        for (int j = 0; j < width; ++j) V::store_part(out + j * dst_stride, r[j], height);
      }
    }
  }
}

// Copies segments of a tile's columns that are neighbours in the result, for all rows.
template <class V>
void store_segments(const float* tile_data, std::int64_t ld, int rows, const Segment* segments,
                    int count, float* dst, std::int64_t dst_stride) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < count; ++i) {
      const float* from = tile_data + row * ld + segments[i].from;
      float* to = dst + row * dst_stride + segments[i].to;
      for (int left = segments[i].count; left > 0;
           left -= V::lanes, from += V::lanes, to += V::lanes) {
        const int n = left < V::lanes ? left : V::lanes;
        V::store_part(to, V::load_part(from, n), n);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
