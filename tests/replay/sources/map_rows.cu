// ge+lt+logical_and+eq+add+amax+sub+exp+… (23)
#include "cuda/kernels/maps/map.cuh"
#include "cuda/kernels/maps/map_reduce.cuh"
#include "scalar/exp.h"
#include "scalar/log.h"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 1024, kLanes = 8, N = 2, kSteps = 1;
using Index = int;

struct Arguments {
  Word<long long> n3;
  Word<float> n22;
  Word<float> n24;
  long long rows;
  long long length;
  const long long* p0;
  const long long* p1;
  long long s1_0;
  const float* p2;
  const float* p3;
  float* p4;
  float* p5;
};

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
  const Index rows = Index(a.rows), length = Index(a.length);
  const Index lane = Index(threadIdx.x) % kLanes;
  for (Index first = Index(block) * (kThreads / kLanes); first < rows;
       first += Index(blocks) * (kThreads / kLanes)) {
    const Index row = first + Index(threadIdx.x) / kLanes;
    const bool active = row < rows;
    const Index c0 = row;
    const long long x0 = !active ? 0ll : load(a.p0 + c0);
    const int t2 = scalar::ge(x0, 0ll);
    const int t4 = scalar::lt(x0, a.n3.value);
    const int t5 = scalar::logical_and(t2, t4);
    const long long x6 = !active ? 0ll : load(a.p1 + c0);
    const float t26 = t5 != 0 ? a.n24.value : 0.0f;
    const float t27 = scalar::neg(t26);
    float g12 = scalar::float_of(0xff800000u);
    float g30 = 0;
    float x9[kSteps][N];
    float x10[kSteps][N];
    float k11[kSteps][N];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (active && j < length) {
        load_row<2>(x9[s], a.p2 + c0 * Index(a.s1_0) + j);
        load_row<2>(x10[s], a.p3 + j);
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (active && j < length) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const long long t7 = static_cast<long long>(j + i);
          const int t8 = as_coordinate(x6) == j + i ? 1 : 0;
          const float t11 = x9[s][i] + x10[s][i];
          k11[s][i] = t11;
          const float t28 = t8 != 0 ? t27 : 0.0f;
          g12 = MaxOf::combine(g12, t11);
          g30 = SumOf::combine(g30, t28);
        }
      }
    }
    g12 = reduce_lanes<MaxOf, kLanes>(g12);
    const float t12 = g12;
    g30 = reduce_lanes<SumOf, kLanes>(g30);
    const float t30 = g30;
    float g15 = 0;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (active && j < length) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const float t13 = k11[s][i] - t12;
          const float t14 = scalar::exp(t13);
          g15 = SumOf::combine(g15, t14);
        }
      }
    }
    g15 = reduce_lanes<SumOf, kLanes>(g15);
    const float t15 = g15;
    const float t16 = scalar::log(t15);
    float g20 = 0;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (active && j < length) {
        float y1[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const long long t7 = static_cast<long long>(j + i);
          const int t8 = as_coordinate(x6) == j + i ? 1 : 0;
          const float t13 = k11[s][i] - t12;
          const float t17 = t13 - t16;
          const float t19 = t8 != 0 ? t17 : 0.0f;
          const float t28 = t8 != 0 ? t27 : 0.0f;
          const float t29 = scalar::exp(t17);
          const float t31 = t29 * t30;
          const float t32 = t28 - t31;
          g20 = SumOf::combine(g20, t19);
          y1[i] = t32;
        }
        save_row<2>(a.p4 + c0 * Index(a.s1_0) + j, y1);
      }
    }
    g20 = reduce_lanes<SumOf, kLanes>(g20);
    const float t20 = g20;
    const float t21 = scalar::neg(t20);
    const float t23 = t5 != 0 ? t21 : a.n22.value;
    if (active && lane == 0) {
      save(a.p5 + c0, t23);
    }
  }
}

}  // namespace part0

namespace part1 {

constexpr int kThreads = 1024, kKept = 16, kReduced = 64;
using Index = int;
__device__ unsigned tickets[16384];

struct Arguments {
  long long s0_0;
  const float* p0;
  long long kept;
  long long reduced;
  long long tiles;
  Divider by_tiles;
  long long chunk;
  long long chunks;
  long long first_ticket;
  float* p1;
  float* partial0;
};

template <int N>
struct Held {
  float x0[N];
};
template <int N>
__device__ __forceinline__ Held<N> hold(const Arguments& a, Index c0, Index c1) {
  Held<N> held;
  load_row<1>(held.x0, a.p0 + c0 * Index(a.s0_0) + c1);
  return held;
}

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, const Held<N>& held, bool inside, float (&g0)[kResults]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (inside) g0[i % kResults] = SumOf::combine(g0[i % kResults], held.x0[i]);
  }
}

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
  const Index kept = Index(a.kept), thread = Index(threadIdx.x);
  const Index result = thread % kKept, lane = thread / kKept;
  for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);
       tile += Index(blocks)) {
    const Index part = quotient(tile, a.by_tiles, a.tiles);
    const Index column = tile - part * Index(a.tiles);
    const Index k_step = column * kKept + result, k = k_step;
    const bool active = k < kept;
    const Index place = column * (kKept) + thread;
    const bool leads = thread < kKept && place < kept;
    float g0[1];
    for (int v = 0; v < 1; ++v) g0[v] = 0;
    if (active) {
      const Index c1 = k_step;
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced));
      for (Index first = start + lane; first < end; first += kReduced * 8) {
        Held<1> held[8];
#pragma unroll
        for (int u = 0; u < 8; ++u) {
          const Index at = first + u * kReduced, r = at < end ? at : end - 1;
          const Index c0 = r;
          held[u] = hold<1>(a, c0, c1);
        }
#pragma unroll
        for (int u = 0; u < 8; ++u) {
          const Index at = first + u * kReduced, r = at < end ? at : end - 1;
          const Index c0 = r;
          elements<1, 1>(a, c0, c1, held[u], at < end, g0);
        }
      }
    }
    const float sum0 = reduce_columns<SumOf, kThreads, kKept>(g0);
    if (Index(a.chunks) == 1) {
      if (leads) {
        save(a.p1 + place, sum0);
      }
    } else {
      if (leads) {
        a.partial0[part * kept + place] = sum0;
      }
      if (is_last_block(&tickets[Index(a.first_ticket) + column], static_cast<unsigned>(a.chunks))) {
        for (int v = 0; v < 1; ++v) g0[v] = 0;
        if (active) {
#pragma unroll 4
          for (Index p = lane; p < Index(a.chunks); p += kReduced) {
            const auto part0 = *reinterpret_cast<const Packed<float, 1>*>(a.partial0 + p * kept + k);
            for (int v = 0; v < 1; ++v) g0[v] = SumOf::combine(g0[v], part0.element[v]);
          }
        }
        const float total0 = reduce_columns<SumOf, kThreads, kKept>(g0);
        if (leads) {
          save(a.p1 + place, total0);
        }
      }
    }
  }
}

}  // namespace part1

struct Arguments {
  part0::Arguments part0;
  part1::Arguments part1;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(1024) rows_ge_lt_logical_and_eq_add(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::await_kernels();
  tenon::cuda::part0::nest(a.part0, 0, 1);
  __syncthreads();
  tenon::cuda::part1::nest(a.part1, 0, 1);
}
