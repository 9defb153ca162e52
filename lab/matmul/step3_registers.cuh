// Step 3: tiles in registers, 16-byte accesses. A block of 256 threads computes a 128 x 128 tile of
// C, each thread an 8 x 8 part in registers. It does 64 multiply-adds for every 16 words read from
// shared memory, so the multipliers become the bound.
//
// The next tiles of A and B are loaded from global memory (to registers) while the current ones are
// used. A is stored transposed, so that a thread's eight rows are two 16-byte reads. A thread's
// rows and columns are two groups of four, 64 apart, so that a warp's reads have no bank conflicts.
// k and n must be multiples of 16 bytes; any m. Layouts as in step 1.
#pragma once

#include "element.cuh"

namespace lab {

/// 16 bytes of global memory, as floats.
template <class T>
struct Chunk {
  static constexpr int kSize = 16 / sizeof(T);
  float value[kSize];

  __device__ __forceinline__ void load(const T* from, bool inside) {
    uint4 raw = make_uint4(0, 0, 0, 0);
    if (inside) raw = *reinterpret_cast<const uint4*>(from);
    const T* element = reinterpret_cast<const T*>(&raw);
#pragma unroll
    for (int i = 0; i < kSize; ++i) value[i] = to_float(element[i]);
  }
};

template <class T>
__global__ void __launch_bounds__(256, 2)
    register_kernel(const T* a, const T* b, T* c, int m, int n, int k) {
  constexpr int kTile = 128, kDepth = 16, kChunk = Chunk<T>::kSize;
  constexpr int kLoads = kTile * kDepth / kChunk / 256;  // chunks a thread brings of each tile
  constexpr int kPitch = kTile + 4;
  __shared__ __align__(16) float tile_a[kDepth][kPitch];  // transposed
  __shared__ __align__(16) float tile_b[kDepth][kTile];

  const int thread = threadIdx.x;
  const long long row0 = static_cast<long long>(blockIdx.y) * kTile;
  const long long column0 = static_cast<long long>(blockIdx.x) * kTile;
  Chunk<T> next_a[kLoads], next_b[kLoads];

  const auto fetch = [&](int start) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int index = thread + i * 256;
      const int a_row = index / (kDepth / kChunk), a_k = index % (kDepth / kChunk) * kChunk;
      next_a[i].load(a + (row0 + a_row) * k + start + a_k, row0 + a_row < m && start + a_k < k);
      const int b_k = index / (kTile / kChunk), b_column = index % (kTile / kChunk) * kChunk;
      next_b[i].load(b + static_cast<long long>(start + b_k) * n + column0 + b_column,
                     start + b_k < k && column0 + b_column < n);
    }
  };
  const auto keep = [&] {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int index = thread + i * 256;
      const int a_row = index / (kDepth / kChunk), a_k = index % (kDepth / kChunk) * kChunk;
      const int b_k = index / (kTile / kChunk), b_column = index % (kTile / kChunk) * kChunk;
#pragma unroll
      for (int j = 0; j < kChunk; ++j) tile_a[a_k + j][a_row] = next_a[i].value[j];
#pragma unroll
      for (int j = 0; j < kChunk; ++j) tile_b[b_k][b_column + j] = next_b[i].value[j];
    }
  };

  const int x = thread % 16 * 4, y = thread / 16 * 4;
  float sum[8][8] = {};
  fetch(0);
  for (int start = 0; start < k; start += kDepth) {
    keep();
    __syncthreads();
    if (start + kDepth < k) fetch(start + kDepth);
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float u[8], v[8];
      *reinterpret_cast<float4*>(u) = *reinterpret_cast<const float4*>(&tile_a[i][y]);
      *reinterpret_cast<float4*>(u + 4) = *reinterpret_cast<const float4*>(&tile_a[i][y + 64]);
      *reinterpret_cast<float4*>(v) = *reinterpret_cast<const float4*>(&tile_b[i][x]);
      *reinterpret_cast<float4*>(v + 4) = *reinterpret_cast<const float4*>(&tile_b[i][x + 64]);
#pragma unroll
      for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int s = 0; s < 8; ++s) sum[r][s] += u[r] * v[s];
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const long long row = row0 + y + r % 4 + r / 4 * 64;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const long long column = column0 + x + half * 64;
      if (row >= m || column >= n) continue;  // n is a multiple of 4: four inside or none
      __align__(16) T out[4];
#pragma unroll
      for (int s = 0; s < 4; ++s) out[s] = from_float<T>(sum[r][half * 4 + s]);
      if constexpr (sizeof(T) == 4) {
        *reinterpret_cast<uint4*>(c + row * n + column) = *reinterpret_cast<const uint4*>(out);
      } else {
        *reinterpret_cast<uint2*>(c + row * n + column) = *reinterpret_cast<const uint2*>(out);
      }
    }
  }
}

template <class T>
void run_registers(const T* a, const T* b, T* c, int m, int n, int k, cudaStream_t stream) {
  const dim3 grid((n + 127) / 128, (m + 127) / 128);
  register_kernel<T><<<grid, 256, 0, stream>>>(a, b, c, m, n, k);
}

}  // namespace lab
