// Adds partial results [split][row, column] in the order of the splits and passes the sums to the
// epilogue. Several threads share an item: each adds a run of the splits, and the runs are added in
// order. Bound by the L2 cache, which still holds the partial results.
#pragma once

#include "cuda/kernels/conv/conv_args.cuh"
#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/gemm/gemm_math.cuh"

namespace tenon::cuda {

/// An item: kVector neighbours of a row.
template <int kVector, int kThreads, class E>
TENON_DEVICE void sum_partials(const ConvSum& s, const E& epilogue,
                               Floats<kVector> (&shared)[kThreads]) {
  using Item = Floats<kVector>;
  const int t = static_cast<int>(threadIdx.x), per_block = kThreads / s.runs;
  const int item = static_cast<int>(blockIdx.x) * per_block + t % per_block, run = t / per_block;
  const bool exists = item < s.items;
  unsigned column = static_cast<unsigned>(item);
  const unsigned row = split<false>(column, s.columns);
  column *= kVector;
  typename E::template Held<kVector> held;
  if (exists && run == 0) held = epilogue.template hold<kVector>(0, row, column);
  Item sum{};
  if (exists) {
    const int from = run * s.splits / s.runs, to = (run + 1) * s.splits / s.runs;
    const Item* partial = reinterpret_cast<const Item*>(s.partials) + item;
#pragma unroll 8
    for (int i = from; i < to; ++i) {
      const Item more = partial[static_cast<long long>(i) * s.items];
#pragma unroll
      for (int v = 0; v < kVector; ++v) sum.v[v] += more.v[v];
    }
  }
  shared[t] = sum;
  __syncthreads();
  typename E::Sums gathered = E::no_sums();
  if (run == 0 && exists) {
    for (int r = 1; r < s.runs; ++r) {
      const Item more = shared[r * per_block + t];
#pragma unroll
      for (int v = 0; v < kVector; ++v) sum.v[v] += more.v[v];
    }
    epilogue.template finish<kVector>(0, row, column, sum.v, held, gathered);
  }
  if constexpr (E::kSums) epilogue.template end_block<kThreads>(gathered);
}

}  // namespace tenon::cuda
