#include "cuda/kernels/conv/conv_sum.cuh"
#include "cuda/kernels/maps/map.cuh"
namespace tenon::cuda {

// conv2d_weight_grad+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false, kColumnSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  static constexpr bool kChannels = false;
  template <int N>
  using Taken = Sums;
  Word<float> n3;
  Word<float> n7;
  Word<float> n10;
  Word<float> n16;
  long long s0_1;
  float* p0;
  float* p1;
  const float* p2;
  const float* p3;
  float* p4;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row * s0_1 + column);
    const float x6 = load(p1 + row * s0_1 + column);
    const float x14 = load(p2);
    const float x19 = load(p3);
    const float x21 = load(p4 + row * s0_1 + column);
    const float t0 = acc;
    const float t2 = t0 - x1;
    const float t4 = t2 * n3.value;
    const float t5 = x1 + t4;
    const float t8 = x6 * n7.value;
    const float t9 = scalar::square(t0);
    const float t11 = t9 * n10.value;
    const float t12 = t8 + t11;
    const float t13 = scalar::sqrt(t12);
    const float t15 = t13 / x14;
    const float t17 = t15 + n16.value;
    const float t18 = t5 / t17;
    const float t20 = x19 * t18;
    const float t22 = x21 - t20;
    save(p0 + row * s0_1 + column, t5);
    save(p1 + row * s0_1 + column, t12);
    save(p4 + row * s0_1 + column, t22);
  }

  template <int N>
  struct Held {
    float x1[N];
    float x6[N];
    float x14;
    float x19;
    float x21[N];
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    load_row<1>(held.x1, p0 + row * s0_1 + column);
    load_row<1>(held.x6, p1 + row * s0_1 + column);
    held.x14 = load(p2);
    held.x19 = load(p3);
    load_row<1>(held.x21, p4 + row * s0_1 + column);
    return held;
  }
  static constexpr int kVaryingBytes = 12;
  template <int N>
  __device__ __forceinline__ void hold_again(Held<N>& held, long long batch, long long row, long long column) const {
    load_row<1>(held.x1, p0 + row * s0_1 + column);
    load_row<1>(held.x6, p1 + row * s0_1 + column);
    load_row<1>(held.x21, p4 + row * s0_1 + column);
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Taken<N>& sums) const {
    float y0[N];
    float y1[N];
    float y2[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t2 = t0 - held.x1[i];
      const float t4 = t2 * n3.value;
      const float t5 = held.x1[i] + t4;
      const float t8 = held.x6[i] * n7.value;
      const float t9 = scalar::square(t0);
      const float t11 = t9 * n10.value;
      const float t12 = t8 + t11;
      const float t13 = scalar::sqrt(t12);
      const float t15 = t13 / held.x14;
      const float t17 = t15 + n16.value;
      const float t18 = t5 / t17;
      const float t20 = held.x19 * t18;
      const float t22 = held.x21[i] - t20;
      y0[i] = t5;
      y1[i] = t12;
      y2[i] = t22;
    }
    save_row<1>(p0 + row * s0_1 + column, y0);
    save_row<1>(p1 + row * s0_1 + column, y1);
    save_row<1>(p4 + row * s0_1 + column, y2);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

extern "C" __global__ void __launch_bounds__(256)
conv_sum(const ConvSum s, const Epilogue epilogue) {
  tenon::cuda::await_kernels();
  __shared__ Floats<1> shared[256];
  sum_partials<1, 256>(s, epilogue, shared);
}
