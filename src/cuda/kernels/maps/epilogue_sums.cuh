// Reductions of an epilogue over a whole result. Every thread accumulates its own elements, blocks
// leave partial results in global memory, and the last block to finish combines them in order and
// stores the totals. The bits therefore depend only on how the result is cut into parts.
//
// E: an epilogue with kSums (engines/maps/print_map.h). Every thread of the block must call these
// functions. Exception: a kernel may leave some of its warps out; `sync` is then a barrier of the
// warps that take part, whose threads are numbered from 0.
#pragma once

#include "cuda/kernels/maps/map_reduce.cuh"

namespace tenon::cuda {

/// Reduces over all kThreads threads; every thread gets the result.
template <int kThreads, class Sums, class Sync>
TENON_DEVICE Sums combine_block(Sums x, int thread, const Sync& sync) {
  __shared__ Sums of_warp[kThreads / 32];
  x.over_lanes();
  if (thread % 32 == 0) of_warp[thread / 32] = x;
  sync();
  x = of_warp[0];
#pragma unroll
  for (int w = 1; w < kThreads / 32; ++w) x.add(of_warp[w]);
  sync();
  return x;
}

/// Called after a barrier of a block whose partial results are in memory. The last of `blocks`
/// blocks combines all `count` partial results and stores the totals.
template <int kThreads, class E, class Sync>
TENON_DEVICE void combine_partials(const E& epilogue, int thread, unsigned blocks, unsigned count,
                                   const Sync& sync) {
  __shared__ bool last;
  if (thread == 0) {
    last = take_ticket(epilogue.arrived()) == blocks - 1;
    if (last) *epilogue.arrived() = 0;  // reset for the next launch
  }
  sync();
  if (!last) return;
  typename E::Sums all = E::no_sums();
#pragma unroll 8
  for (unsigned i = static_cast<unsigned>(thread); i < count; i += kThreads)
    all.add(epilogue.partials[i]);
  all = combine_block<kThreads>(all, thread, sync);
  if (thread == 0) epilogue.save_sums(all);
}

/// Stores the block's partial result.
template <int kThreads, class E>
TENON_DEVICE void end_block(const E& epilogue, const typename E::Sums& gathered) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto sync = [] { __syncthreads(); };
  const typename E::Sums own = combine_block<kThreads>(gathered, thread, sync);
  if (thread == 0) epilogue.partials[blockIdx.x] = own;
  combine_partials<kThreads>(epilogue, thread, gridDim.x, gridDim.x, sync);
}

}  // namespace tenon::cuda
