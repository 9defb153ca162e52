// Several kernels in one launch: the part that a block belongs to, and the last block, which does
// the final work.
#pragma once

#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

/// The position of the first of `count` ascending numbers that is greater than `block`; one exists.
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

/// Called by every thread of every block. True in the last block to call, which sees the other
/// blocks' writes. The counter is zero between launches.
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
