#include "cuda/kernels/vendor.cuh"

using namespace tenon::cuda;

extern "C" __global__ void __launch_bounds__(256)
tenon_turn(const TurnArgs a) {
  tenon::cuda::await_kernels();
  turn_rows<true, false>(a);
}
#include "cuda/kernels/gemm_simt.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// le+matmul+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false, kColumnSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  static constexpr bool kChannels = false;
  template <int N>
  using Taken = Sums;
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::le(x1, 0.0f);
    const float t4 = t3 != 0 ? 0.0f : t0;
    save(p1 + row * s0_1 + column, t4);
  }

  template <int N>
  struct Held {
    float x1[N];
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    load_row<8>(held.x1, p0 + row * s0_1 + column);
    return held;
  }
  static constexpr int kVaryingBytes = 4;
  template <int N>
  __device__ __forceinline__ void hold_again(Held<N>& held, long long batch, long long row, long long column) const {
    load_row<8>(held.x1, p0 + row * s0_1 + column);
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Taken<N>& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const int t3 = scalar::le(held.x1[i], 0.0f);
      const float t4 = t3 != 0 ? 0.0f : t0;
      y0[i] = t4;
    }
    save_row<8>(p1 + row * s0_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  static constexpr int kM = 128, kN = 64, kK = 16, kThreads = 128, kStages = 4;
  static constexpr bool kSplit = false;
};
using Block = SimtBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 49168);

extern "C" __global__ void __launch_bounds__(128, 4)
gemm_simt(const SimtProblem p, const Epilogue epilogue) {
  tenon::cuda::await_kernels();
  TENON_DYNAMIC_SHARED(shared);
  Block(p, epilogue, shared).run(nullptr);
}
