#include "cuda/kernels/gemm/gemm_wgmma.cuh"
#include "cuda/kernels/maps/map.cuh"
#include "cuda/kernels/maps/epilogue_sums.cuh"
namespace tenon::cuda {

__device__ unsigned epilogue_arrivals[1024];

// matmul+square+sum
struct Epilogue {
  struct Sums {
    alignas(8) float s0;
    __device__ __forceinline__ void add(const Sums& other) {
      s0 = SumOf::combine(s0, other.s0);
    }
    __device__ __forceinline__ void over_lanes() {
      s0 = reduce_lanes<SumOf, 32>(s0);
    }
  };
  static constexpr bool kSums = true, kColumnSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {0}; }
  static constexpr bool kChannels = false;
  template <int N>
  using Taken = Sums;
  long long s0_1;
  float* p0;
  float* p1;
  Sums* partials;
  long long arrival;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float t0 = acc;
    const float t1 = scalar::square(t0);
    const float t2 = acc;
    save(p0 + row * s0_1 + column, t2);
    sums.s0 = SumOf::combine(sums.s0, t1);
  }

  template <int N>
  struct Held {
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    return held;
  }
  static constexpr int kVaryingBytes = 0;
  template <int N>
  __device__ __forceinline__ void hold_again(Held<N>& held, long long batch, long long row, long long column) const {
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Taken<N>& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t1 = scalar::square(t0);
      const float t2 = acc[i];
      y0[i] = t2;
      sums.s0 = SumOf::combine(sums.s0, t1);
    }
    save_row<8>(p0 + row * s0_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }

  __device__ __forceinline__ unsigned* arrived() const { return &epilogue_arrivals[arrival]; }
  __device__ __forceinline__ void save_sums(const Sums& sums) const {
    save(p1, sums.s0);
  }
  template <int kThreads>
  __device__ __forceinline__ void end_block(const Sums& gathered) const {
    tenon::cuda::end_block<kThreads>(*this, gathered);
  }
  template <int kThreads, class Sync>
  __device__ __forceinline__ void combine_partials(int thread, unsigned blocks, unsigned count, const Sync& sync) const {
    tenon::cuda::combine_partials<kThreads>(*this, thread, blocks, count, sync);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  static constexpr int kRows = 128, kStages = 4, kCluster = 2, kSplits = 1, kStoreVector = 4;
  static constexpr bool kTurns = false, kAcrossA = true, kAcrossB = true, kBatches = false;
  static constexpr WgmmaType kType = WgmmaType::Bf16x6;
};

extern "C" __global__ void __launch_bounds__(384, 1) __cluster_dims__(2, 1, 1)
gemm_bf16x6(const __grid_constant__ WgmmaProblem p, const __grid_constant__ Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  WgmmaBlock<Config, Epilogue> block(p, epilogue, shared);
  block.set_up();
  tenon::cuda::await_kernels();
  block.run();
}
