// Reductions of generated kernels: along the lanes of a warp, over the threads of a block, and over
// blocks (by the last block to finish).
//
// Template arguments fix the shape of every reduction tree, so results depend on sizes alone and
// are deterministic. Every thread of the block must call these functions.
#pragma once

#include "cuda/kernels/intrinsics.cuh"
#include "scalar/arithmetic.h"

namespace tenon::cuda {

struct SumOf {
  template <class T>
  static __device__ __forceinline__ T combine(T a, T b) {
    return scalar::add(a, b);
  }
};
struct ProdOf {
  template <class T>
  static __device__ __forceinline__ T combine(T a, T b) {
    return scalar::mul(a, b);
  }
};
/// Maximum; NaN wins.
struct MaxOf {
  template <class T>
  static __device__ __forceinline__ T combine(T a, T b) {
    return scalar::maximum(a, b);
  }
  static __device__ __forceinline__ float combine(float a, float b) { return max_or_nan(a, b); }
};
struct MinOf {
  template <class T>
  static __device__ __forceinline__ T combine(T a, T b) {
    return scalar::minimum(a, b);
  }
};

/// A number and its index in the row. A missing index compares greater than every index.
template <class T>
struct Placed {
  T value;
  long long place;
};
inline constexpr long long kNoPlace = 0x7fffffffffffffffll;

/// The first of the largest numbers; NaN is larger than all numbers.
struct ArgMaxOf {
  template <class T>
  static __device__ __forceinline__ Placed<T> combine(Placed<T> a, Placed<T> b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool more = b_nan ? !a_nan : (!a_nan && b.value > a.value);
    const bool same = (a_nan && b_nan) || a.value == b.value;
    return more || (same && b.place < a.place) || a.place == kNoPlace ? b : a;
  }
};
struct ArgMinOf {
  template <class T>
  static __device__ __forceinline__ Placed<T> combine(Placed<T> a, Placed<T> b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool more = b_nan ? !a_nan : (!a_nan && b.value < a.value);
    const bool same = (a_nan && b_nan) || a.value == b.value;
    return more || (same && b.place < a.place) || a.place == kNoPlace ? b : a;
  }
};
template <class T>
__device__ __forceinline__ long long place_of(Placed<T> x) {
  return x.place == kNoPlace ? 0 : x.place;
}

/// The mean of `count` numbers and the sum of squared deviations from it. Two sets are combined by
/// the formula of Chan, Golub and LeVeque, in which nothing cancels.
template <class T>
struct Moments {
  T count, mean, squares;
};
struct MomentsOf {
  template <class T>
  static __device__ __forceinline__ Moments<T> combine(Moments<T> a, Moments<T> b) {
    const T count = a.count + b.count, share = count == T(0) ? T(0) : b.count / count;
    const T apart = b.mean - a.mean;
    // This order of multiplications does not overflow if one set is empty.
    const T added = apart * (a.count * share * apart);
    return {count, a.mean + apart * share, a.squares + b.squares + added};
  }
};
/// A thread's moments, accumulated as differences from the thread's first number. However large the
/// mean is, the squares lose only the digits of the distance between that first number and the
/// others.
template <class T>
struct Spread {
  T first, sum, squares;

  __device__ __forceinline__ void add(T x, bool is_first) {
    if (is_first) first = x;
    const T distance = x - first;
    sum += distance;
    squares += distance * distance;
  }
  /// Adds the moments of `count` numbers.
  __device__ __forceinline__ void add(T mean, T inner, T count, bool is_first) {
    if (is_first) first = mean;
    const T distance = mean - first, all = count * distance;
    sum += all;
    squares += all * distance + inner;
  }
  __device__ __forceinline__ Moments<T> moments(T count) const {
    if (count == T(0)) return {0, 0, 0};
    const T shift = sum * (T(1) / count);
    T deviations = squares - sum * shift;
    // If the squares of finite numbers overflow, the result is infinite, not NaN.
    if (deviations != deviations && sum - sum == T(0)) deviations = squares;
    return {count, first + shift, deviations < T(0) ? T(0) : deviations};
  }
};

template <class T>
__device__ __forceinline__ Moments<T> exchange(Moments<T> x, int mask) {
  return {shuffle_xor(x.count, mask), shuffle_xor(x.mean, mask), shuffle_xor(x.squares, mask)};
}
template <class T>
__device__ __forceinline__ T exchange(T x, int mask) {
  return shuffle_xor(x, mask);
}
template <class T>
__device__ __forceinline__ Placed<T> exchange(Placed<T> x, int mask) {
  return {shuffle_xor(x.value, mask), shuffle_xor(x.place, mask)};
}

/// Reduces groups of `Lanes` neighbouring lanes (a power of two, at most 32); all lanes get the
/// result.
template <class Op, int Lanes, class T>
__device__ __forceinline__ T reduce_lanes(T x) {
#pragma unroll
  for (int mask = 1; mask < Lanes; mask *= 2) x = Op::combine(x, exchange(x, mask));
  return x;
}

/// Reduces all `Threads` of the block; all threads get the result.
template <class Op, int Threads, class T>
__device__ __forceinline__ T reduce_block(T x) {
  __shared__ T of_warp[Threads / 32];
  x = reduce_lanes<Op, 32>(x);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = of_warp[0];
#pragma unroll
  for (int w = 1; w < Threads / 32; ++w) x = Op::combine(x, of_warp[w]);
  __syncthreads();
  return x;
}

/// Column reduction in a block. Thread t has the W neighbouring columns from (t % Kept) * W on.
/// Threads that are Kept (a power of two, at most 32) apart have the same columns. Thread t gets
/// the result of column t % (Kept * W); there are at most as many columns as threads.
template <class Op, int Threads, int Kept, int W, class T>
__device__ __forceinline__ T reduce_columns(const T (&x)[W]) {
  // Neither the writes (a warp's threads next to one another) nor the reads (W apart) have bank
  // conflicts.
  constexpr int kPitch = Kept + (W > 1 ? 32 / W : 0), kRow = W * kPitch, kColumns = Kept * W;
  static_assert(kColumns <= Threads);
  __shared__ T of_warp[Threads / 32 * kRow];
  const int t = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int v = 0; v < W; ++v) {
    T y = x[v];
#pragma unroll
    for (int mask = Kept; mask < 32; mask *= 2) y = Op::combine(y, exchange(y, mask));
    if (t % 32 < Kept) of_warp[t / 32 * kRow + v * kPitch + t % Kept] = y;
  }
  __syncthreads();
  T result = x[0];
  if (t < kColumns) {
    const T* column = of_warp + t % W * kPitch + t / W;
    result = column[0];
#pragma unroll
    for (int w = 1; w < Threads / 32; ++w) result = Op::combine(result, column[w * kRow]);
  }
  __syncthreads();
  return result;
}

/// Reduction over the rows of a block. Thread t has the W columns (W <= Rows) from (t % Lanes) * W
/// on of row t / Lanes. Thread t < Lanes * W gets the result of column t.
template <class Op, int Rows, int Lanes, int W, class T>
__device__ __forceinline__ T reduce_rows(const T (&x)[W]) {
  static_assert(W <= Rows, "a thread to each column");
  __shared__ alignas(16) T of_row[Rows][Lanes * W];
  const int t = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < W; ++i) of_row[t / Lanes][t % Lanes * W + i] = x[i];
  __syncthreads();
  T result = x[0];
  if (t < Lanes * W) {
    result = of_row[0][t];
#pragma unroll
    for (int r = 1; r < Rows; ++r) result = Op::combine(result, of_row[r][t]);
  }
  __syncthreads();
  return result;
}

/// reduce_columns() for Spreads; each thread has `count` numbers per column. The counts are the
/// same for all columns of a thread, so they are exchanged, and their reciprocals computed, once.
template <int Threads, int Kept, int W, class T>
__device__ __forceinline__ Moments<T> reduce_moments(const Spread<T> (&x)[W], T count) {
  constexpr int kPitch = Kept + (W > 1 ? 32 / W : 0), kRow = W * kPitch, kColumns = Kept * W;
  static_assert(kColumns <= Threads);
  __shared__ T means[Threads / 32 * kRow], deviations[Threads / 32 * kRow];
  __shared__ T counts[Threads / 32 * Kept];
  T mean[W], squares[W];
#pragma unroll
  for (int v = 0; v < W; ++v) {
    const Moments<T> own = x[v].moments(count);
    mean[v] = own.mean;
    squares[v] = own.squares;
  }
#pragma unroll
  for (int mask = Kept; mask < 32; mask *= 2) {
    const T more = exchange(count, mask), all = count + more;
    const T share = all == T(0) ? T(0) : more / all, weight = count * share;
#pragma unroll
    for (int v = 0; v < W; ++v) {
      const T apart = exchange(mean[v], mask) - mean[v];
      squares[v] += exchange(squares[v], mask) + apart * apart * weight;
      mean[v] += apart * share;
    }
    count = all;
  }
  const int t = static_cast<int>(threadIdx.x);
  if (t % 32 < Kept) {
#pragma unroll
    for (int v = 0; v < W; ++v) {
      const int place = t / 32 * kRow + v * kPitch + t % Kept;
      means[place] = mean[v];
      deviations[place] = squares[v];
    }
    counts[t / 32 * Kept + t % Kept] = count;
  }
  __syncthreads();
  Moments<T> result = {0, 0, 0};
  if (t < kColumns) {
    const int column = t % W * kPitch + t / W;
#pragma unroll
    for (int w = 0; w < Threads / 32; ++w)
      result =
          MomentsOf::combine(result, Moments<T>{counts[w * Kept + t / W], means[column + w * kRow],
                                                deviations[column + w * kRow]});
  }
  __syncthreads();
  return result;
}

/// Takes one ticket per block. True in all threads of the last of `blocks` blocks, which sees all
/// earlier writes of the others. Resets the counter to zero for the next launch.
__device__ __forceinline__ bool is_last_block(unsigned* counter, unsigned blocks) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = take_ticket(counter) == blocks - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  const bool result = last;
  __syncthreads();
  return result;
}

}  // namespace tenon::cuda
