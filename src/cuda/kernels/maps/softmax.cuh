// Softmax and log-softmax of whole rows, one block per row. Used only where softmax was not
// decomposed into a map region, which can fuse.
//
// x and out are [rows, length], contiguous; out is overwritten. Three passes over a row, two of
// them from cache. The number of threads is fixed and decides how sums are cut.
#pragma once

#include "cuda/kernels/element.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "cuda/kernels/opaque/movement_args.cuh"
#include "scalar/exp.h"
#include "scalar/log.h"

namespace tenon::cuda {

constexpr int kSoftmaxThreads = 256;

/// Reduces one value per thread by a tree of fixed shape; every thread gets the result.
template <class T, class F>
__device__ __forceinline__ T over_block(T value, T* shared, F&& combine) {
  const int t = static_cast<int>(threadIdx.x);
  shared[t] = value;
  __syncthreads();
  for (int half = kSoftmaxThreads / 2; half > 0; half /= 2) {
    if (t < half) shared[t] = combine(shared[t], shared[t + half]);
    __syncthreads();
  }
  const T result = shared[0];
  __syncthreads();
  return result;
}

template <class E, bool Log>
__device__ __forceinline__ void softmax(const SoftmaxArgs& a) {
  using T = typename E::Value;
  __shared__ T shared[kSoftmaxThreads];
  const long long row = static_cast<long long>(blockIdx.x) * a.length;
  T largest = E::load(a.in[0], row), sum = 0;
  for (long long j = threadIdx.x; j < a.length; j += kSoftmaxThreads) {
    const T x = E::load(a.in[0], row + j);
    if (x > largest || x != x) largest = x;
  }
  largest = over_block(largest, shared, [](T p, T q) { return p > q || p != p ? p : q; });
  for (long long j = threadIdx.x; j < a.length; j += kSoftmaxThreads)
    sum += scalar::exp(E::load(a.in[0], row + j) - largest);
  sum = over_block(sum, shared, [](T p, T q) { return p + q; });
  const T shift = scalar::log(sum), scale = T(1) / sum;
  for (long long j = threadIdx.x; j < a.length; j += kSoftmaxThreads) {
    const T x = E::load(a.in[0], row + j) - largest;
    E::store(a.out, row + j, Log ? x - shift : scalar::exp(x) * scale);
  }
}

}  // namespace tenon::cuda
