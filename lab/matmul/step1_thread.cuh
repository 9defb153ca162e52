// Step 1: one thread per element. Each thread reads one row of A and one column of B. Any sizes.
//
// C[m, n] = A[m, k] · B[k, n], all row-major; overwrites C. Every multiply-add loads two elements.
// The threads of a warp load the same element of A and 32 neighbouring elements of B, so the caches
// serve nearly all loads. Bound by the load units, not by the multipliers.
#pragma once

#include "element.cuh"

namespace lab {

template <class T>
__global__ void thread_kernel(const T* a, const T* b, T* c, int m, int n, int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += to_float(a[static_cast<long long>(row) * k + i]) *
           to_float(b[static_cast<long long>(i) * n + column]);
  }
  c[static_cast<long long>(row) * n + column] = from_float<T>(sum);
}

template <class T>
void run_thread(const T* a, const T* b, T* c, int m, int n, int k, cudaStream_t stream) {
  const dim3 block(32, 8), grid((n + 31) / 32, (m + 7) / 8);
  thread_kernel<T><<<grid, block, 0, stream>>>(a, b, c, m, n, k);
}

}  // namespace lab
