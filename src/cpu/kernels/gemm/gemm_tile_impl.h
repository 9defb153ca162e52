// The bodies of KernelSet, written once over a vector type V and compiled in each instruction set's
// own file.
//
// Everything is in an unnamed namespace and uses no inline function of a shared header. Otherwise
// the linker could use a copy compiled for wide vectors in code that runs everywhere. gemm_vector.h
// describes V.
#pragma once

#include "cpu/kernels/gemm/gemm_tile.h"
#include "cpu/kernels/gemm/gemm_vector.h"

namespace tenon::cpu {
namespace {

// Tiles that extend beyond the result are stored through memory: one small loop for all sizes.
[[gnu::noinline]] void store_edge(const TileArgs& t, float* c, const float* sums, const float* edge,
                                  int rows, int width) {
  for (int i = 0; i < rows; ++i, c += t.ldc, edge += width) {
    if (sums == nullptr) {
      for (std::int64_t j = 0; j < t.cols; ++j) c[j] = edge[j];
    } else {
      for (std::int64_t j = 0; j < t.cols; ++j) c[j] = sums[j] + edge[j];
      sums += t.ld_sums;
    }
  }
}

// sums[v] += *a * b[v]. With `inside` each multiplication has a memory broadcast operand and is
// decoded as one instruction. This does not slow down a compute-bound kernel, and keeps it fast
// when the core's other hardware thread uses half of the decoder.
template <class V, bool Pairs, int NV>
[[gnu::always_inline]] inline void multiply_row(const float* a, const typename V::reg (&b)[NV],
                                                typename V::reg (&sums)[NV], bool inside = true) {
  if constexpr (V::has_broadcast_operands) {
    if (inside) {
      TENON_UNROLL
      for (int v = 0; v < NV; ++v) V::template fma_broadcast<Pairs>(a, b[v], sums[v]);
      return;
    }
  }
  const typename V::reg av = V::broadcast(a);
  TENON_UNROLL
  for (int v = 0; v < NV; ++v) {
    if constexpr (Pairs) {
      sums[v] = V::fma_pairs(av, b[v], sums[v]);
    } else {
      sums[v] = V::fma(av, b[v], sums[v]);
    }
  }
}

// The rows a[0], a[1], … times the row of NV vectors at b. Every third broadcast is a separate
// instruction: broadcast operands alone would use two of the three loads that a core starts per
// cycle.
template <class V, bool Pairs, int MR, int NV>
[[gnu::always_inline]] inline void multiply_step(const float* a, const float* b,
                                                 typename V::reg (&sums)[MR][NV]) {
  typename V::reg bv[NV];
  TENON_UNROLL
  for (int v = 0; v < NV; ++v) bv[v] = V::load(b + v * V::lanes);
  TENON_UNROLL
  for (int i = 0; i < MR; ++i) multiply_row<V, Pairs, NV>(a + i, bv, sums[i], i % 3 != 2);
}

// Stores the tile's result: acc, plus sums if there are any. With `Whole`, all columns are stored.
template <class V, bool Whole, int MR, int NV>
[[gnu::always_inline]] inline void store_tile(const TileArgs& t, float* c, const float* sums,
                                              const typename V::reg (&acc)[MR][NV]) {
  constexpr int kWidth = NV * V::lanes;
  if (!Whole && t.cols < kWidth) {
    float edge[MR * kWidth];
    TENON_UNROLL
    for (int i = 0; i < MR * NV; ++i) V::store(edge + i * V::lanes, acc[i / NV][i % NV]);
    return store_edge(t, c, sums, edge, MR, kWidth);
  }
  const std::int64_t ldc = t.ldc, ld_sums = t.ld_sums;
  if (sums != nullptr) {
    TENON_UNROLL
    for (int i = 0; i < MR; ++i, c += ldc, sums += ld_sums) {
      TENON_UNROLL
      for (int v = 0; v < NV; ++v)
        V::store(c + v * V::lanes, V::add(acc[i][v], V::load(sums + v * V::lanes)));
    }
    return;
  }
  TENON_UNROLL
  for (int i = 0; i < MR; ++i, c += ldc) {
    TENON_UNROLL
    for (int v = 0; v < NV; ++v) V::store(c + v * V::lanes, acc[i][v]);
  }
}

// Prefetches both ends of a row of `width` floats, which is slightly more than two cache lines at
// most.
[[gnu::always_inline]] inline void fetch_row(const float* row, int width) {
  __builtin_prefetch(row);
  if (width > 16) __builtin_prefetch(row + width - 1);
}

// Sets the rows that a tile prefetches for the tile `tiles` below the first. Inline, the compiler
// would unroll and vectorize this small loop in every column function, which takes a third of their
// code.
[[gnu::noinline]] void begin_reads(const TileArgs& t, std::int64_t tiles, const char** read) {
  for (int i = 0; i < t.reads; ++i) read[i] = t.read[i].at + tiles * t.read[i].next;
}

// Tiles with strided A and B. The rows that a tile will add to and write are prefetched one by one
// while it computes; all rows at once would delay the lines of A.
template <class V, bool Pairs, int MR, int NV>
void column(const TileArgs& t) {
  constexpr int kWidth = NV * V::lanes;
  const std::int64_t a_step = t.a_step, b_step = t.b_step;
  const std::int64_t stretch = t.steps / 2 / MR + 1;  // steps per part, counted in pairs
  const std::int64_t ld_sums = t.sums != nullptr ? t.ld_sums : t.ldc;
  const float* a = t.a;
  const float* sums = t.sums;
  float* c = t.c;
  Stream ahead_a = t.ahead_a, ahead_b = t.ahead_b;
  const int reads = t.reads;
  const char* read[kMaxRowStreams];
  if (reads > 0) begin_reads(t, 0, read);
  for (std::int64_t tile = t.tiles; tile > 0; --tile) {
    typename V::reg acc[MR][NV];
    TENON_UNROLL
    for (int i = 0; i < MR * NV; ++i) acc[i / NV][i % NV] = V::zero();
    const float* ak = a;
    const float* bk = t.b;
    const float* c_row = c;
    const float* sums_row = sums != nullptr ? sums : c;
    for (std::int64_t twos = t.steps / 2; twos > 0; twos -= stretch) {
      fetch_row(c_row, kWidth);
      fetch_row(sums_row, kWidth);
      c_row += t.ldc;
      sums_row += ld_sums;
      TENON_ROLLED
      for (int i = 0; i < reads; ++i) {
        __builtin_prefetch(read[i], 0, 2);
        __builtin_prefetch(read[i] + t.read[i].bytes - 1, 0, 2);
        read[i] += t.read[i].row;
      }
      for (std::int64_t step = twos < stretch ? twos : stretch; step > 0; --step) {
        __builtin_prefetch(ahead_b.at, 0, 2);
        ahead_b.at += ahead_b.step;
        multiply_step<V, Pairs, MR, NV>(ak, bk, acc);
        ak += a_step;
        bk += b_step;
        asm("" : "+r"(ak), "+r"(bk));  // else the compiler keeps addresses of every row of A
        __builtin_prefetch(ahead_a.at, 0, 2);
        ahead_a.at += ahead_a.step;
        multiply_step<V, Pairs, MR, NV>(ak, bk, acc);
        ak += a_step;
        bk += b_step;
      }
    }
    if (t.steps % 2 != 0) multiply_step<V, Pairs, MR, NV>(ak, bk, acc);
    store_tile<V, false>(t, c, sums, acc);
    a += t.a_next;
    c += t.c_next;
    if (sums != nullptr) sums += t.sums_next;
    ahead_a.at += ahead_a.next;
    ahead_b.at += ahead_b.next;
    if (reads > 0) begin_reads(t, t.tiles - tile + 1, read);
  }
}

enum class Reach { TableB, Window };

template <class V, bool Pairs, Reach R, int RP, int RQ, int NV>
void tile(const TileArgs& t) {
  using reg = typename V::reg;
  constexpr int MR = RP * RQ;
  reg acc[MR][NV];
  TENON_UNROLL
  for (int i = 0; i < MR; ++i) {
    TENON_UNROLL
    for (int v = 0; v < NV; ++v) acc[i][v] = V::zero();
  }
  const float* a = t.a;
  const float* b = t.b;
  const std::int32_t* table = t.table;
  const std::int64_t a_row = t.a_row, b_vector = t.b_vector;
  // The memory that the tile of the next rows will write.
  if constexpr (R == Reach::TableB) {
    const float* row = t.c + NV * t.c_vector;
    TENON_UNROLL
    for (int i = 0; i < MR; ++i, row += t.ldc) {
      TENON_UNROLL
      for (int v = 0; v < NV; ++v) __builtin_prefetch(row + v * t.c_vector, 1);
    }
  }
  // Fewer instructions to decode, as in multiply_row.
  TENON_UNROLL_TWICE
  for (std::int64_t step = t.steps; step > 0; --step) {
    const float* ak = a;
    const float* bk = b;
    if constexpr (R == Reach::Window) ak += *table++;
    if constexpr (R == Reach::TableB) bk += *table++;
    reg bv[NV];
    TENON_UNROLL
    for (int v = 0; v < NV; ++v) {
      bv[v] = V::load(bk + v * (R == Reach::TableB ? b_vector : V::lanes));
    }
    TENON_UNROLL
    for (int i = 0; i < MR; ++i)
      multiply_row<V, Pairs, NV>(ak + (i / RQ) * a_row + i % RQ, bv, acc[i]);
    if constexpr (R != Reach::Window) a += t.a_step;
    if constexpr (R != Reach::TableB) b += t.b_step;
  }
  if constexpr (R == Reach::TableB) {
    float* row = t.c;
    const int count = static_cast<int>(t.cols);
    TENON_UNROLL
    for (int i = 0; i < MR; ++i, row += t.ldc) {
      TENON_UNROLL
      for (int v = 0; v < NV; ++v) V::store_part(row + v * t.c_vector, acc[i][v], count);
    }
  } else {
    constexpr bool kWhole = RP != kProductRows || RQ != 1;
    store_tile<V, kWhole>(t, t.c, t.sums, acc);
  }
}

template <class V, bool Pairs, int Q, int NV>
void spread(const TileArgs& t) {
  using reg = typename V::reg;
  constexpr int kOut = Q + kSpreadTaps - 1;
  reg acc[kOut][NV];
  TENON_UNROLL
  for (int i = 0; i < kOut * NV; ++i) acc[i / NV][i % NV] = V::zero();
  const float* b = t.b;
  const std::int32_t* table = t.table;
  for (std::int64_t step = t.steps; step > 0; --step, table += kSpreadTaps) {
    const float* a = t.a + *table;
    TENON_UNROLL
    for (int tap = 0; tap < kSpreadTaps; ++tap, b += t.b_step) {
      reg bv[NV];
      TENON_UNROLL
      for (int v = 0; v < NV; ++v) bv[v] = V::load(b + v * V::lanes);
      TENON_UNROLL
      for (int j = 0; j < Q; ++j) multiply_row<V, Pairs, NV>(a + j, bv, acc[j + tap]);
    }
  }
  TENON_UNROLL
  for (int i = 0; i < kOut * NV; ++i)
    V::store(t.c + i / NV * t.ldc + i % NV * V::lanes, acc[i / NV][i % NV]);
}

template <class V, bool Pairs, int NV, int Q>
void fill_spread(KernelSet& set) {
  if constexpr (Q + kSpreadTaps - 1 <= V::max_mr[NV]) {
    set.spread[Pairs][NV][Q] = spread<V, Pairs, Q, NV>;
    fill_spread<V, Pairs, NV, Q + 1>(set);
  }
}

template <class V, bool Pairs, int MK, int Taps>
void dot(const DotArgs& t) {
  using reg = typename V::reg;
  reg acc[Taps][MK];
  TENON_UNROLL
  for (int i = 0; i < Taps * MK; ++i) {
    acc[i / MK][i % MK] = V::load(t.c + i / MK * t.c_tap + i % MK * V::lanes);
  }
  const float* a = t.a;
  const float* b = t.b;
  for (std::int64_t step = t.steps; step > 0; --step, a += V::lanes, b += V::lanes) {
    reg av[MK];
    TENON_UNROLL
    for (int i = 0; i < MK; ++i) av[i] = V::load(a + i * t.a_row);
    TENON_UNROLL
    for (int j = 0; j < Taps; ++j) {
      const reg bv = V::load(b + t.taps[j]);
      TENON_UNROLL
      for (int i = 0; i < MK; ++i) {
        if constexpr (Pairs) {
          acc[j][i] = V::fma_pairs(av[i], bv, acc[j][i]);
        } else {
          acc[j][i] = V::fma(av[i], bv, acc[j][i]);
        }
      }
    }
  }
  TENON_UNROLL
  for (int i = 0; i < Taps * MK; ++i) {
    V::store(t.c + i / MK * t.c_tap + i % MK * V::lanes, acc[i / MK][i % MK]);
  }
}

template <class V, bool Pairs, int MK>
void fill_dots(KernelSet& set) {
  if constexpr (MK <= V::max_dot_rows) {
    set.dot[Pairs][MK][1] = dot<V, Pairs, MK, 1>;
    set.dot[Pairs][MK][2] = dot<V, Pairs, MK, 2>;
    set.dot[Pairs][MK][3] = dot<V, Pairs, MK, 3>;
    fill_dots<V, Pairs, MK + 1>(set);
  }
}

template <class V, bool Pairs, int NV, int RP, int RQ>
void fill_window(KernelSet& set) {
  if constexpr (NV <= kMaxWindowVectors && RP * RQ <= V::max_mr[NV]) {
    set.window[Pairs][NV][RP][RQ] = tile<V, Pairs, Reach::Window, RP, RQ, NV>;
  }
}

template <class V, bool Pairs, int NV, int MR>
void fill_tiles(KernelSet& set) {
  if constexpr (MR <= V::max_mr[NV]) {
    set.strided[Pairs][NV][MR] = column<V, Pairs, MR, NV>;
    set.table_b[Pairs][NV][MR] = tile<V, Pairs, Reach::TableB, 1, MR, NV>;
    fill_window<V, Pairs, NV, 1, MR>(set);
    fill_tiles<V, Pairs, NV, MR + 1>(set);
  }
}

// Windows of several rows: for outputs and filters with too few columns to fill a tile with one
// row.
template <class V, bool Pairs, int NV>
void fill_windows(KernelSet& set) {
  fill_window<V, Pairs, NV, 3, 1>(set);
  fill_window<V, Pairs, NV, 7, 1>(set);
  fill_window<V, Pairs, NV, kProductRows, 1>(set);
  fill_window<V, Pairs, NV, 2, 2>(set);
  fill_window<V, Pairs, NV, 2, 3>(set);
  fill_window<V, Pairs, NV, 3, 3>(set);
  fill_window<V, Pairs, NV, 4, 3>(set);
  fill_window<V, Pairs, NV, 2, 4>(set);
  fill_window<V, Pairs, NV, 3, 4>(set);
  fill_window<V, Pairs, NV, 2, 5>(set);
  fill_window<V, Pairs, NV, 2, 6>(set);
  fill_window<V, Pairs, NV, 2, 7>(set);
}

template <class V, bool Pairs>
void fill_all_tiles(KernelSet& set) {
  fill_tiles<V, Pairs, 1, 1>(set);
  fill_tiles<V, Pairs, 2, 1>(set);
  fill_tiles<V, Pairs, 4, 1>(set);
  fill_dots<V, Pairs, 1>(set);
  fill_windows<V, Pairs, 1>(set);
  fill_windows<V, Pairs, 2>(set);
  fill_spread<V, Pairs, 2, 1>(set);
  fill_spread<V, Pairs, 4, 1>(set);
}

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
void convert_rows(const void* lo, const void* hi, DType dtype, std::int64_t rows,
                  std::int64_t src_pitch, std::int64_t count, Math math, float* dst,
                  std::int64_t dst_pitch) {
  const std::int64_t row_bytes = src_pitch * (dtype == DType::Float32 ? 4 : 2);
  with_words<V>(dtype, math, [&]<class W, bool Pairs, DType D>(bool round) {
    const char* from = static_cast<const char*>(lo);
    const char* other = static_cast<const char*>(hi);
    for (std::int64_t row = 0; row < rows; ++row, from += row_bytes, dst += dst_pitch) {
      convert_as<W, Pairs, D>(from, other, count, round, dst);
      if (other != nullptr) other += row_bytes;
    }
  });
}

template <class V>
void convert(const void* lo, const void* hi, DType dtype, std::int64_t count, Math math,
             float* dst) {
  convert_rows<V>(lo, hi, dtype, 1, 0, count, math, dst, 0);
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

template <class V>
void add(float* sum, const float* part, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + V::lanes <= count; i += V::lanes)
    V::store(sum + i, V::add(V::load(sum + i), V::load(part + i)));
  for (; i < count; ++i) sum[i] += part[i];
}

template <class V, bool Pairs>
double burn_words(std::int64_t rounds) {
  constexpr int kChains = 14, kRepeats = 8;
  float zero = 0.0f, start[kChains * V::lanes] = {};
  asm volatile("" : : "r"(&zero), "r"(start) : "memory");  // zeros that the compiler cannot know
  typename V::reg acc[kChains];
  TENON_UNROLL
  for (int i = 0; i < kChains; ++i) acc[i] = V::load(start + i * V::lanes);
  for (std::int64_t round = 0; round < rounds; ++round) {
    asm volatile(""
                 :
                 :
                 : "memory");  // the factor is read again, so that the compiler cannot drop a round
    const typename V::reg x = V::broadcast(&zero);
    TENON_UNROLL
    for (int i = 0; i < kRepeats * kChains; ++i) {
      if constexpr (Pairs) {
        acc[i % kChains] = V::fma_pairs(x, x, acc[i % kChains]);
      } else {
        acc[i % kChains] = V::fma(x, x, acc[i % kChains]);
      }
    }
  }
  float sink[V::lanes];
  TENON_UNROLL
  for (int i = 1; i < kChains; ++i) acc[0] = V::add(acc[0], acc[i]);
  V::store(sink, acc[0]);
  asm volatile("" : : "r"(sink) : "memory");
  return static_cast<double>(rounds) * kRepeats * kChains * V::lanes * (Pairs ? 4 : 2);
}

template <class V>
double burn(std::int64_t rounds, bool pair_words) {
  if constexpr (V::has_pairs) {
    if (pair_words) return burn_words<V, true>(rounds);
  }
  return burn_words<typename V::single, false>(rounds);
}

// Kernels that do not multiply pairs have the same code with and without pairs, so they are
// compiled for V::single alone.
template <class V>
KernelSet make_kernels() {
  using S = typename V::single;
  KernelSet set;
  set.lanes = V::lanes;
  set.pairs = V::has_pairs;
  set.max_dot_rows = V::max_dot_rows;
  for (int nv = 0; nv < 5; ++nv) set.max_mr[nv] = V::max_mr[nv];
  fill_all_tiles<S, false>(set);
  if constexpr (V::has_pairs) fill_all_tiles<V, true>(set);
  set.pack_transposed = pack_transposed<V>;
  set.pack_rows = pack_rows<V>;
  if constexpr (V::has_pairs) set.pair_row = pair_row<V>;
  if constexpr (V::has_pairs) set.zip_transposed = zip_transposed<V>;
  set.convert = convert<V>;
  set.convert_rows = convert_rows<V>;
  set.take_rows = take_rows<S>;
  set.store_transposed = store_transposed<S>;
  set.store_segments = store_segments<S>;
  set.add = add<S>;
  set.burn = burn<V>;
  return set;
}

}  // namespace
}  // namespace tenon::cpu
