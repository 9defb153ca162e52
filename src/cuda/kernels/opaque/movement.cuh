// Data movement: concatenation, padding, gather and scatter.
//
// Arrays are contiguous, 16-byte aligned and do not overlap, but a scatter may write into its base;
// results are overwritten. One thread
// per word of the result, neighbouring threads on neighbouring words; bandwidth-bound. Scatter adds
// in the order of the indices, without atomics. An index outside its axis reads `fill` (NaN for
// floating-point types) or adds nowhere. The kernel records such an index for the host, which
// throws the error.
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/element.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "cuda/kernels/opaque/movement_args.cuh"

namespace tenon::cuda {

struct alignas(16) Word16 {
  unsigned long long low, high;
};

template <class Word>
__device__ __forceinline__ Word filled(long long bits) {
  return static_cast<Word>(bits);
}
template <>
__device__ __forceinline__ Word16 filled<Word16>(long long bits) {
  return {static_cast<unsigned long long>(bits), static_cast<unsigned long long>(bits)};
}

/// One store of 16 bytes: even if several threads write, the record describes a single index.
__device__ __forceinline__ void leave(Outside* record, long long site, long long index,
                                      long long place) {
  if (record != nullptr) *record = Outside{index, site << kSiteShift | (place + 1)};
}

template <class Word, bool Wide>
__device__ __forceinline__ void concat(const ConcatArgs& a) {
  const int k = static_cast<int>(blockIdx.y);
  typename Counter<Wide>::type n = thread_number<Wide>();
  const auto run = static_cast<typename Counter<Wide>::type>(a.run[k]);
  if (n >= static_cast<typename Counter<Wide>::type>(a.outer) * run) return;
  const long long outer = n / run;
  static_cast<Word*>(a.out)[outer * a.pitch + a.before[k] + n % run] =
      static_cast<const Word*>(a.in[k])[n];
}

template <class Word, int Rank, bool Wide>
__device__ __forceinline__ void pad(const PadArgs& a) {
  const typename Counter<Wide>::type number = thread_number<Wide>();
  if (number >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  typename Counter<Wide>::type rest = number;
  long long from = 0;
  bool inside = true;
#pragma unroll
  for (int d = Rank - 1; d >= 0; --d) {
    typename Counter<Wide>::type c = rest;
    rest = split<Wide>(c, a.size[d]);
    const long long position = static_cast<long long>(c) - a.before[d];
    inside = inside && position >= 0 && position < a.in_size[d];
    from += position * a.in_stride[d];
  }
  static_cast<Word*>(a.out)[number] =
      inside ? static_cast<const Word*>(a.in[0])[from] : filled<Word>(a.fill);
}

/// Rows: one index for a whole inner run. Otherwise the index tensor has an element for each
/// element of out.
template <class Word, class Index, bool Rows, bool Shared, bool Wide>
__device__ __forceinline__ void gather(const GatherArgs& a) {
  const typename Counter<Wide>::type number = thread_number<Wide>();
  if (number >= static_cast<typename Counter<Wide>::type>(a.count)) return;
  typename Counter<Wide>::type column = number;
  typename Counter<Wide>::type row = split<Wide>(column, a.inner);
  const typename Counter<Wide>::type pair = row;
  const long long outer = split<Wide>(row, a.indices);
  const long long at = Shared ? row : (Rows ? pair : number);
  const long long index = static_cast<const Index*>(a.in[1])[at];
  const long long from = (outer * a.size + index) * static_cast<long long>(a.inner.value) + column;
  const bool inside = index >= 0 && index < a.size;
  if (!inside) leave(a.outside, a.site, index, at);
  static_cast<Word*>(a.out)[number] =
      inside ? static_cast<const Word*>(a.in[0])[from] : filled<Word>(a.fill);
}

constexpr int kScatterThreads = 256;
constexpr int kScatterBytes = 32768;  // bytes of the part of out that a block owns
constexpr int kScatterBatch = 8;      // indices that a thread reads in one round

/// The part of out that a block owns, in shared memory until all updates are applied. Thread t owns
/// column t % columns of a range of rows, so each element's updates are applied by one thread, in
/// order.
template <class E>
struct ScatterTile {
  typename E::Value* held;
  long long outer, row0, column0;
  int rows, columns;               // size inside out
  int column, row_begin, row_end;  // this thread's elements

  __device__ __forceinline__ ScatterTile(const ScatterArgs& a, typename E::Value* memory)
      : held(memory) {
    unsigned n = blockIdx.x;  // below 2^31
    const unsigned rest = split<false>(n, a.column_tiles);
    column0 = static_cast<long long>(n) * a.columns;
    n = rest;
    outer = split<false>(n, a.row_tiles);
    row0 = static_cast<long long>(n) * a.rows;
    rows = static_cast<int>(min(a.rows, a.size - row0));
    columns = static_cast<int>(min(a.columns, a.inner - column0));
    const int group = static_cast<int>(threadIdx.x) / static_cast<int>(a.columns);
    column = static_cast<int>(threadIdx.x) % static_cast<int>(a.columns);
    row_begin = group * static_cast<int>(a.rows_per_thread);
    row_end = column < columns ? min(row_begin + static_cast<int>(a.rows_per_thread), rows) : 0;
    for (int r = row_begin; r < row_end; ++r)
      held[r * columns + column] = E::load(a.in[0], at(a, r) * a.base_step);
  }

  __device__ __forceinline__ long long at(const ScatterArgs& a, int row) const {
    return (outer * a.size + row0 + row) * a.inner + column0 + column;
  }
  __device__ __forceinline__ bool owns(long long row) const {
    return row >= row_begin && row < row_end;
  }
  template <bool Adds>
  __device__ __forceinline__ void apply(int row, typename E::Value v) {
    typename E::Value& element = held[row * columns + column];
    element = Adds ? element + v : v;
  }
  __device__ __forceinline__ void store(const ScatterArgs& a) const {
    for (int r = row_begin; r < row_end; ++r) E::store(a.out, at(a, r), held[r * columns + column]);
  }
};

/// Exclusive prefix sum over the threads; `total` is the sum over all threads.
__device__ __forceinline__ int count_before(int count, int& total) {
  __shared__ int warp_totals[kScatterThreads / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int sum = count;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int other = shuffle(sum, lane < step ? lane : lane - step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) warp_totals[warp] = sum;
  __syncthreads();
  int before = sum - count;
  total = 0;
#pragma unroll
  for (int w = 0; w < kScatterThreads / 32; ++w) {
    if (w < warp) before += warp_totals[w];
    total += warp_totals[w];
  }
  return before;
}

/// One index per row of updates. Each round lists the updates of this tile among 2048 indices, in
/// order; then every thread applies the updates of its elements.
template <class E, class Index, bool Adds>
__device__ __forceinline__ void scatter_rows(const ScatterArgs& a) {
  __shared__ typename E::Value memory[kScatterBytes / sizeof(typename E::Value)];
  __shared__ int found[kScatterThreads * kScatterBatch];
  ScatterTile<E> tile(a, memory);
  const Index* index = static_cast<const Index*>(a.in[1]) + tile.outer * a.index_pitch;
  const long long updates = tile.outer * a.indices * a.inner + tile.column0 + tile.column;
  const int own = static_cast<int>(threadIdx.x) * kScatterBatch;
  const bool first = tile.row0 == 0 && tile.column0 == 0;  // records indexes outside
  for (long long start = 0; start < a.indices; start += kScatterThreads * kScatterBatch) {
    int rows[kScatterBatch], count = 0, total = 0;
#pragma unroll
    for (int k = 0; k < kScatterBatch; ++k) {
      const bool there = start + own + k < a.indices;
      const long long at = there ? static_cast<long long>(index[start + own + k]) : -1;
      if (there && first && (at < 0 || at >= a.size))
        leave(a.outside, a.site, at, tile.outer * a.index_pitch + start + own + k);
      const long long row = there ? at - tile.row0 : -1;
      rows[k] = row >= 0 && row < tile.rows ? static_cast<int>(row) : -1;
      count += rows[k] >= 0 ? 1 : 0;
    }
    int place = count_before(count, total);
#pragma unroll
    for (int k = 0; k < kScatterBatch; ++k)
      if (rows[k] >= 0) found[place++] = rows[k] * (kScatterThreads * kScatterBatch) + own + k;
    __syncthreads();
    for (int k = 0; k < total; k += kScatterBatch) {
      int row[kScatterBatch];
      typename E::Value value[kScatterBatch];
#pragma unroll
      for (int l = 0; l < kScatterBatch; ++l) {
        const int entry = found[min(k + l, total - 1)];
        row[l] = entry / (kScatterThreads * kScatterBatch);
        if (k + l >= total || !tile.owns(row[l])) row[l] = -1;
        if (row[l] >= 0)
          value[l] = E::load(
              a.in[2], updates + (start + entry % (kScatterThreads * kScatterBatch)) * a.inner);
      }
#pragma unroll
      for (int l = 0; l < kScatterBatch; ++l)
        if (row[l] >= 0) tile.template apply<Adds>(row[l], value[l]);
    }
    __syncthreads();
  }
  tile.store(a);
}

/// Applies the updates `places` to a row of out that begins at element `to`, in order; this thread
/// has every kScatterThreads-th column. If a row has more updates than a block can list, another
/// pass applies the rest, so a 16-bit sum is rounded once per list.
template <class E, bool Adds>
__device__ __forceinline__ void apply_row(const ScatterArgs& a, const int* places, int count,
                                          bool fresh, long long to, long long updates) {
  if (!fresh && count == 0) return;
  constexpr int kColumns = 4;
  for (long long c0 = threadIdx.x; c0 < a.inner; c0 += kColumns * kScatterThreads) {
    typename E::Value sum[kColumns] = {};
    const auto each = [&](const auto& at_column) {
#pragma unroll
      for (int k = 0; k < kColumns; ++k)
        if (c0 + k * kScatterThreads < a.inner) at_column(k, c0 + k * kScatterThreads);
    };
    each([&](int k, long long c) {
      sum[k] = fresh ? E::load(a.in[0], (to + c) * a.base_step) : E::load(a.out, to + c);
    });
    for (int e = 0; e < count; e += kScatterBatch) {
      typename E::Value value[kScatterBatch][kColumns];
#pragma unroll
      for (int l = 0; l < kScatterBatch; ++l) {
        const long long from = updates + places[min(e + l, count - 1)] * a.inner;
        if (e + l < count)
          each([&](int k, long long c) { value[l][k] = E::load(a.in[2], from + c); });
      }
#pragma unroll
      for (int l = 0; l < kScatterBatch; ++l)
        if (e + l < count)
          each([&](int k, long long) { sum[k] = Adds ? sum[k] + value[l][k] : value[l][k]; });
    }
    each([&](int k, long long c) { E::store(a.out, to + c, sum[k]); });
  }
}

constexpr int kScatterEntries = 4096;  // updates that a block lists before it applies them

/// The updates of a block's rows, at most one row a thread: listed in the order of the indices,
/// then sorted by row.
template <class Index>
struct ScatterList {
  int place[kScatterEntries], by_row[kScatterEntries];
  unsigned char row[kScatterEntries];
  int first[kScatterThreads + 1];  // start of each row's updates in by_row

  /// Adds the updates among the next indices; returns their number.
  __device__ __forceinline__ int add(const ScatterArgs& a, const Index* index, long long start,
                                     long long row0, int rows, int before, long long outer) {
    const long long own = start + static_cast<int>(threadIdx.x) * kScatterBatch;
    int wanted[kScatterBatch], count = 0, total = 0;
#pragma unroll
    for (int k = 0; k < kScatterBatch; ++k) {
      const bool there = own + k < a.indices;
      const long long at = there ? static_cast<long long>(index[own + k]) : -1;
      if (there && row0 == 0 && (at < 0 || at >= a.size))
        leave(a.outside, a.site, at, outer * a.index_pitch + own + k);
      const bool owned = at >= row0 && at - row0 < rows;
      wanted[k] = owned ? static_cast<int>(at - row0) : -1;
      count += owned ? 1 : 0;
    }
    int entry = before + count_before(count, total);
#pragma unroll
    for (int k = 0; k < kScatterBatch; ++k) {
      if (wanted[k] < 0) continue;
      place[entry] = static_cast<int>(own) + k;
      row[entry++] = static_cast<unsigned char>(wanted[k]);
    }
    __syncthreads();
    return total;
  }
  /// Thread t collects the updates of row t.
  __device__ __forceinline__ void order(int entries) {
    const int t = static_cast<int>(threadIdx.x);
    int count = 0, total = 0;
    for (int e = 0; e < entries; ++e) count += row[e] == t ? 1 : 0;
    int to = count_before(count, total);
    first[t] = to;
    if (t == 0) first[kScatterThreads] = total;
    for (int e = 0; e < entries; ++e)
      if (row[e] == t) by_row[to++] = place[e];
    __syncthreads();
  }
};

/// One index per row of updates, for long rows: a thread has some columns of all rows of the block,
/// and its sums are in registers.
template <class E, class Index, bool Adds>
__device__ __forceinline__ void scatter_long_rows(const ScatterArgs& a) {
  __shared__ ScatterList<Index> list;
  unsigned tile = blockIdx.x;
  const long long outer = split<false>(tile, a.row_tiles),
                  row0 = static_cast<long long>(tile) * a.rows;
  const int rows = static_cast<int>(min(a.rows, a.size - row0));
  const Index* index = static_cast<const Index*>(a.in[1]) + outer * a.index_pitch;
  const long long updates = outer * a.indices * a.inner;
  constexpr int kRound = kScatterThreads * kScatterBatch;
  long long start = 0;
  bool fresh = true;  // no update was written to out yet
  do {
    int entries = 0;
    for (; start < a.indices && entries <= kScatterEntries - kRound; start += kRound)
      entries += list.add(a, index, start, row0, rows, entries, outer);
    list.order(entries);
    for (int r = 0; r < rows; ++r)
      apply_row<E, Adds>(a, list.by_row + list.first[r], list.first[r + 1] - list.first[r], fresh,
                         (outer * a.size + row0 + r) * a.inner, updates);
    fresh = false;
    __syncthreads();
  } while (start < a.indices);
}

/// One index per update.
template <class E, class Index, bool Adds>
__device__ __forceinline__ void scatter_elements(const ScatterArgs& a) {
  __shared__ typename E::Value memory[kScatterBytes / sizeof(typename E::Value)];
  ScatterTile<E> tile(a, memory);
  if (tile.row_begin >= tile.row_end) return;
  const long long start = tile.outer * a.indices * a.inner + tile.column0 + tile.column;
  const Index* index = static_cast<const Index*>(a.in[1]);
  const bool first = tile.row0 + tile.row_begin == 0;  // records indexes outside
#pragma unroll 4
  for (long long j = 0; j < a.indices; ++j) {
    const long long at = index[start + j * a.inner], row = at - tile.row0;
    if (first && (at < 0 || at >= a.size)) leave(a.outside, a.site, at, start + j * a.inner);
    if (tile.owns(row))
      tile.template apply<Adds>(static_cast<int>(row), E::load(a.in[2], start + j * a.inner));
  }
  tile.store(a);
}

/// One index per row of updates, into `out` itself: only the indexed rows are read and written. A
/// block has one row of updates. Of equal indices, the first block adds all their updates in order,
/// or the last block writes its own; every block scans all indices for that.
template <class E, class Index, bool Adds>
__device__ __forceinline__ void scatter_in_place(const ScatterArgs& a) {
  __shared__ int passed_on;
  const Index* index = static_cast<const Index*>(a.in[1]);
  const long long own = blockIdx.x, row = index[own];
  if (threadIdx.x == 0) passed_on = 0;
  __syncthreads();
  const long long begin = Adds ? 0 : own + 1, end = Adds ? own : a.indices;
  for (long long i = begin + threadIdx.x; i < end; i += kScatterThreads)
    if (index[i] == row) passed_on = 1;
  __syncthreads();
  if (row < 0 || row >= a.size) {
    if (threadIdx.x == 0) leave(a.outside, a.site, row, own);
    return;
  }
  if (passed_on != 0) return;
  for (long long c = threadIdx.x; c < a.inner; c += kScatterThreads) {
    typename E::Value value = E::load(a.in[2], own * a.inner + c);
    if (Adds) {
      value = E::load(a.out, row * a.inner + c) + value;
      for (long long i = own + 1; i < a.indices; ++i)
        if (index[i] == row) value = value + E::load(a.in[2], i * a.inner + c);
    }
    E::store(a.out, row * a.inner + c, value);
  }
}

}  // namespace tenon::cuda
