#include "cuda/kernels/gemm/gemm.cuh"
#include "cuda/kernels/maps/map.cuh"
namespace tenon::cuda {

// relu into matmul
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false, kColumnSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  static constexpr bool kChannels = false;
  template <int N>
  using Taken = Sums;
  long long s0_1;
  float* p0;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float t0 = acc;
    save(p0 + row * s0_1 + column, t0);
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
      y0[i] = t0;
    }
    save_row<4>(p0 + row * s0_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

#include "cuda/kernels/maps/map.cuh"
namespace tenon::cuda {

struct PrologueA {
  using Memory = float;
  using Result = float;
  static constexpr int kLayouts = 0;

  template <int N>
  struct Held {
  };
  template <int N, class Offset>
  __device__ __forceinline__ Held<N> hold(long long own, const Offset* more) const {
    Held<N> held;
    return held;
  }

  template <int N>
  __device__ __forceinline__ void apply(const Memory (&x)[N], const Held<N>& held, Result (&y)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t1 = scalar::relu(upcast(x[i]));
      y[i] = t1;
    }
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = ComputedSide<PrologueA, Kind::BFloat16, true, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Bf16;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 128;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 2;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 16;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false, kSerial = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 29184);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue, const PrologueA prologue_a) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr, prologue_a, NoPrologue());
}
