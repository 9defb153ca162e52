// Launches of many parts: a block's own part, and the end, where one block's work is left.
#pragma once

#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

/// The first of `count` rising numbers that is above `block`; there is one.
__device__ __forceinline__ int first_above(const long long* ends, int count, unsigned block) {
  int low = 0;
#pragma unroll 1
  for (int left = count; left > 1;) {
    const int half = left / 2;
    if (static_cast<unsigned>(ends[low + half - 1]) <= block) low += half;
    left -= half;
  }
  return low;
}

/// Every thread of every block comes here. True in the block that comes last, which sees what the
/// others wrote. The counter is zero between launches.
__device__ __forceinline__ bool ends_last(unsigned* arrived) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = take_ticket(arrived) == gridDim.x - 1;
    if (last) *arrived = 0;
  }
  __syncthreads();
  return last;
}

}  // namespace tenon::cuda
