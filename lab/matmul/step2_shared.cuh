// Step 2: tiles in shared memory. A block of 32 x 32 threads computes a 32 x 32 tile of C. It
// copies 32 x 32 tiles of A and B to shared memory, where every element is used 32 times. Any
// sizes: elements outside count as zero.
//
// Global traffic falls by 32. Each multiply-add still reads two words of shared memory, so the load
// units remain the bound.
#pragma once

#include "element.cuh"

namespace lab {

template <class T>
__global__ void __launch_bounds__(1024)
    shared_kernel(const T* a, const T* b, T* c, int m, int n, int k) {
  constexpr int kTile = 32;
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int start = 0; start < k; start += kTile) {
    const bool a_inside = row < m && start + x < k, b_inside = start + y < k && column < n;
    tile_a[y][x] = a_inside ? to_float(a[static_cast<long long>(row) * k + start + x]) : 0.f;
    tile_b[y][x] = b_inside ? to_float(b[static_cast<long long>(start + y) * n + column]) : 0.f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[static_cast<long long>(row) * n + column] = from_float<T>(sum);
}

template <class T>
void run_shared(const T* a, const T* b, T* c, int m, int n, int k, cudaStream_t stream) {
  const dim3 block(32, 32), grid((n + 31) / 32, (m + 31) / 32);
  shared_kernel<T><<<grid, block, 0, stream>>>(a, b, c, m, n, k);
}

}  // namespace lab
