// The bodies of KernelSet, written once over a vector type V and compiled in each instruction set's
// own file: register tiles here, packing and unpacking in gemm_pack_impl.h.
//
// Everything is in an unnamed namespace and uses no inline function of a shared header. Otherwise
// the linker could use a copy compiled for wide vectors in code that runs everywhere. gemm_vector.h
// describes V.
#pragma once

#include "cpu/kernels/gemm/gemm_pack_impl.h"
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
