// Phases of one launch: where its blocks wait for one another.
//
// All blocks must be resident (a cooperative launch) where they wait. Nothing is carried from phase
// to phase but what memory holds, and each phase stands under `if (phase_runs(n))`.
#pragma once

#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

/// Where the blocks of a launch meet, a variable of the module. `come` is zero between launches and
/// between phases; `opened` only ever changes.
struct Gate {
  unsigned come, opened;
};

/// Every thread of every block comes here at the end of a phase. True in the block that comes last,
/// which sees what the others wrote, may do more alone, and must open the gate. False in the others
/// once it is open; they then see all that was written before.
__device__ __forceinline__ bool comes_last(Gate* gate) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    // Read before the block counts: it cannot be opened until this one has come.
    const unsigned opened = load_relaxed(&gate->opened);
    last = take_ticket(&gate->come) == gridDim.x - 1;
    if (last)
      gate->come = 0;
    else
      wait_while_equal(&gate->opened, opened);
  }
  __syncthreads();
  const bool result = last;
  __syncthreads();
  return result;
}

__device__ __forceinline__ void open_gate(Gate* gate) {
  __syncthreads();
  if (threadIdx.x == 0) store_release(&gate->opened, gate->opened + 1);
}

/// At the end of a launch, where no other waits: true in the block that comes last, which sees what
/// the others wrote. There is nothing to open, and the blocks need not be resident.
__device__ __forceinline__ bool ends_last(Gate* gate) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = take_ticket(&gate->come) == gridDim.x - 1;
    if (last) gate->come = 0;
  }
  __syncthreads();
  return last;
}

}  // namespace tenon::cuda
