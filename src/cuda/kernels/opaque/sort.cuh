// Sorts rows of any length: pieces in shared memory by a bitonic network, then pairs of sorted runs
// are merged by rank. Every launch doubles the length of the runs.
//
// x is [rows, length], contiguous. Of each sorted row, `count` elements from `first` on go to
// values and indices [rows, count]; either may be null. Items (key, index) are all different, so
// the result is that of a stable sort. Memory-bound: each of the log2(length / 1024) merges reads
// and writes 16 bytes an element.
#pragma once

#include "cuda/kernels/element.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "cuda/kernels/opaque/sort_args.cuh"
#include "scalar/config.h"

namespace tenon::cuda {

struct SortItem {
  unsigned long long key, place;
};

__device__ __forceinline__ bool comes_before(const SortItem& a, const SortItem& b) {
  return a.key != b.key ? a.key < b.key : a.place < b.place;
}

/// Keys have the order of the elements. Zeros of both signs are equal, and so are all NaNs.
__device__ __forceinline__ unsigned long long sort_key(float x) {
  if (x != x) return 0xffffffffull;
  const unsigned bits = x == 0.0f ? 0u : static_cast<unsigned>(scalar::bits_of(x));
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ unsigned long long sort_key(double x) {
  if (x != x) return ~0ull;
  const unsigned long long bits =
      x == 0.0 ? 0ull : static_cast<unsigned long long>(scalar::bits_of(x));
  return (bits >> 63) != 0ull ? ~bits : bits | 0x8000000000000000ull;
}
__device__ __forceinline__ unsigned long long sort_key(long long x) {
  return static_cast<unsigned long long>(x) ^ 0x8000000000000000ull;
}

/// Element `rank` of the sorted row, if it is kept.
template <class E>
__device__ __forceinline__ void write_sorted(const SortArgs& a, long long row, long long rank,
                                             long long place) {
  const long long i = rank - a.first;
  if (i < 0 || i >= a.count) return;
  using Storage = typename E::Storage;
  if (a.values != nullptr)
    static_cast<Storage*>(a.values)[row * a.count + i] =
        static_cast<const Storage*>(a.x)[row * a.length + place];
  if (a.indices != nullptr) a.indices[row * a.count + i] = place;
}

/// A block sorts a piece of a row. Whole: the piece is the whole row, and its results are written.
template <class E, bool Whole>
__device__ __forceinline__ void sort_piece(const SortArgs& a) {
  __shared__ SortItem items[kSortPiece];
  const int t = static_cast<int>(threadIdx.x);
  const long long row = static_cast<long long>(blockIdx.x) / a.pieces,
                  start = static_cast<long long>(blockIdx.x) % a.pieces * kSortPiece;
  const unsigned long long permuted = a.descending != 0 ? ~0ull : 0ull;
  for (int i = t; i < kSortPiece; i += kSortThreads) {
    // Padding behind the row's end: sorts after every element of the row.
    items[i] = {~0ull, ~0ull};
    if (start + i < a.length)
      items[i] = {sort_key(E::load(a.x, row * a.length + start + i)) ^ permuted,
                  static_cast<unsigned long long>(start + i)};
  }
  __syncthreads();
  for (int run = 2; run <= kSortPiece; run *= 2)
    for (int apart = run / 2; apart > 0; apart /= 2) {
      for (int k = t; k < kSortPiece / 2; k += kSortThreads) {
        const int i = (k / apart) * 2 * apart + k % apart, j = i + apart;
        const bool rising = (i & run) == 0;
        const SortItem p = items[i], q = items[j];
        if (comes_before(q, p) == rising) items[i] = q, items[j] = p;
      }
      __syncthreads();
    }
  for (int i = t; i < kSortPiece; i += kSortThreads) {
    if (Whole) write_sorted<E>(a, row, i, static_cast<long long>(items[i].place));
    if (!Whole && start + i < a.length)
      static_cast<SortItem*>(a.to)[row * a.length + start + i] = items[i];
  }
}

/// A thread finds the merged position of an item: its position in its own run plus the number of
/// items of the neighbouring run that come before it. Last: the merged run is the row, whose first
/// items are written.
template <class E, bool Last>
__device__ __forceinline__ void sort_merge(const SortArgs& a) {
  const long long e = static_cast<long long>(blockIdx.x) * kSortThreads + threadIdx.x;
  if (e >= a.rows * a.length) return;
  const long long row = e / a.length, i = e % a.length, run = i / a.width;
  const SortItem* items = static_cast<const SortItem*>(a.from) + row * a.length;
  const SortItem mine = items[i];
  const long long other = (run ^ 1) * a.width;
  long long low = other < a.length ? other : a.length;
  const long long first = low;
  long long high = other + a.width < a.length ? other + a.width : a.length;
  if (high < low) high = low;
  while (low < high) {
    const long long middle = low + (high - low) / 2;
    if (comes_before(items[middle], mine))
      low = middle + 1;
    else
      high = middle;
  }
  const long long place = run / 2 * 2 * a.width + (i - run * a.width) + (low - first);
  if (!Last)
    static_cast<SortItem*>(a.to)[row * a.length + place] = mine;
  else
    write_sorted<E>(a, row, place, static_cast<long long>(mine.place));
}

}  // namespace tenon::cuda
