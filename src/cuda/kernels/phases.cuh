// The end of a launch, where one block's work is left.
#pragma once

#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

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
