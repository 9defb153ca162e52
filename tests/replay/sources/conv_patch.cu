#include "cuda/kernels/conv/conv_patch.cuh"
#include "cuda/kernels/maps/map.cuh"
namespace tenon::cuda {

// le+conv2d_input_grad+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false, kColumnSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  static constexpr bool kChannels = false;
  template <int N>
  using Taken = Sums;
  long long s0_0;
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + batch * s0_0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::le(x1, 0.0f);
    const float t4 = t3 != 0 ? 0.0f : t0;
    save(p1 + batch * s0_0 + row * s0_1 + column, t4);
  }

  template <int N>
  struct Held {
    float x1[N];
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    load_row<1>(held.x1, p0 + batch * s0_0 + row * s0_1 + column);
    return held;
  }
  static constexpr int kVaryingBytes = 4;
  template <int N>
  __device__ __forceinline__ void hold_again(Held<N>& held, long long batch, long long row, long long column) const {
    load_row<1>(held.x1, p0 + batch * s0_0 + row * s0_1 + column);
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
    save_row<1>(p1 + batch * s0_0 + row * s0_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  static constexpr Math kMath = Math::Bf16;
  static constexpr Kind kImage = Kind::Float32;
  static constexpr bool kShifts = false, kWhole = true;
  static constexpr int kM = 16;
  static constexpr int kN = 128;
  static constexpr int kThreads = 512;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 32;
  static constexpr Kind kFilters = Kind::Float32;
  static constexpr bool kRowsFirst = true;
  static constexpr int kStoreVector = 1;
};

extern "C" __global__ void __launch_bounds__(512, 1)
conv_patch(const ConvProblem p, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  ConvBlock<Config, Epilogue>(p, epilogue, shared).await_and_run();
}
