// Regions in phases.
#include "cuda/kernels/maps/map.cuh"
#include "cuda/kernels/maps/map_reduce.cuh"
#include "cuda/kernels/maps/phases.cuh"

namespace tenon::cuda {

// square+sum+add+add+add+add+add+sqrt+… (18)
namespace part0 {

constexpr int kThreads = 256, kLanes = 256, N = 4, kSteps = 2;
using Index = int;

struct Arguments {
  Word<float> n14;
  Word<float> n16;
  Word<float> n20;
  long long rows;
  long long length;
  const float* p0;
  const float* p1;
  const float* p2;
  const float* p3;
  const float* p4;
  const float* p5;
  const float* p6;
  float* p7;
  float* p8;
  float* p9;
};

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
  const Index rows = Index(a.rows), length = Index(a.length);
  const Index lane = Index(threadIdx.x) % kLanes;
  for (Index first = Index(block) * (kThreads / kLanes); first < rows;
       first += Index(blocks) * (kThreads / kLanes)) {
    const float x3 = load(a.p0);
    const float x5 = load(a.p1);
    const float x7 = load(a.p2);
    const float x9 = load(a.p3);
    const float x11 = load(a.p4);
    const float x24 = load(a.p5);
    float g2 = 0;
    float x0[kSteps][N];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (j < length) {
        load_constant_row<4>(x0[s], a.p6 + j);
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (j < length) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const float t1 = scalar::square(x0[s][i]);
          g2 = SumOf::combine(g2, t1);
        }
      }
    }
    g2 = reduce_block<SumOf, kThreads>(g2);
    const float t2 = g2;
    const float t4 = x3 + t2;
    const float t6 = t4 + x5;
    const float t8 = t6 + x7;
    const float t10 = t8 + x9;
    const float t12 = t10 + x11;
    const float t13 = scalar::sqrt(t12);
    const float t15 = t13 + a.n14.value;
    const float t17 = a.n16.value / t15;
    const float t18 = scalar::minimum(t17, a.n16.value);
    if (blockIdx.x == 0) {
      float x19[kSteps][N];
      float x26[kSteps][N];
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        const Index j = (s * kLanes + lane) * N;
        if (j < length) {
          load_row<4>(x19[s], a.p7 + j);
          load_row<4>(x26[s], a.p8 + j);
        }
      }
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        const Index j = (s * kLanes + lane) * N;
        if (j < length) {
          float y1[N];
          float y2[N];
#pragma unroll
          for (int i = 0; i < N; ++i) {
            const float t21 = x19[s][i] * a.n20.value;
            const float t22 = x0[s][i] * t18;
            const float t23 = t21 + t22;
            const float t25 = x24 * t23;
            const float t27 = x26[s][i] - t25;
            y1[i] = t23;
            y2[i] = t27;
          }
          save_row<4>(a.p7 + j, y1);
          save_row<4>(a.p8 + j, y2);
        }
      }
    }
    if (lane == 0) {
      save(a.p9, t18);
    }
  }
}

}  // namespace part0

// mul+mul+add+assign+mul+sub+assign
namespace part1 {

constexpr int kThreads = 256;
using Index = int;

struct Arguments {
  Word<float> n1;
  float* p0;
  const float* p1;
  const float* p2;
  const float* p3;
  float* p4;
  long long whole;
  long long rest;
};

template <int N>
__device__ __forceinline__ void elements(const Arguments& a, Index c0) {
  float x0[N];
  load_row<4>(x0, a.p0 + c0);
  float x3[N];
  load_row<4>(x3, a.p1 + c0);
  const float x4 = load(a.p2);
  const float x7 = load(a.p3);
  float x9[N];
  load_row<4>(x9, a.p4 + c0);
  float y0[N];
  float y1[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t2 = x0[i] * a.n1.value;
    const float t5 = x3[i] * x4;
    const float t6 = t2 + t5;
    const float t8 = x7 * t6;
    const float t10 = x9[i] - t8;
    y0[i] = t6;
    y1[i] = t10;
  }
  save_row<4>(a.p0 + c0, y0);
  save_row<4>(a.p4 + c0, y1);
}

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
  const Index count = Index(a.whole) + Index(a.rest);
  for (Index e = Index(block) * kThreads + Index(threadIdx.x); e < count;
       e += Index(blocks) * kThreads) {
    if (e < Index(a.whole)) {
      elements<4>(a, e * 4);
    } else {
      const Index first = e + Index(a.whole) * 3;
      elements<1>(a, first);
    }
  }
}

}  // namespace part1

struct Arguments {
  part0::Arguments part0[1];
  long long most0[1];
  part1::Arguments part1[5];
  long long most1[5];
};

__device__ __forceinline__ void phase0(const Arguments& a, unsigned block, unsigned step) {
  unsigned start = 0;
#pragma unroll 1
  for (int k = 0; k < 1; ++k) {
    const unsigned end = start + min(static_cast<unsigned>(a.most0[k]), gridDim.x);
#pragma unroll 1
    for (; block < end; block += step)
      tenon::cuda::part0::nest(a.part0[k], block - start, end - start);
    start = end;
  }
}

__device__ __forceinline__ void phase1(const Arguments& a, unsigned block, unsigned step) {
  unsigned start = 0;
#pragma unroll 1
  for (int k = 0; k < 5; ++k) {
    const unsigned end = start + min(static_cast<unsigned>(a.most1[k]), gridDim.x);
#pragma unroll 1
    for (; block < end; block += step)
      tenon::cuda::part1::nest(a.part1[k], block - start, end - start);
    start = end;
  }
}

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) phases_2(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::await_kernels();
  tenon::cuda::phase0(a, 0, 1);
  __syncthreads();
  tenon::cuda::phase1(a, blockIdx.x, gridDim.x);
}
