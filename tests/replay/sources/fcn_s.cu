// add+assign
#include "cuda/kernels/map.cuh"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256;
using Index = int;

struct Arguments {
  Word<double> n1;
  double* p0;
  long long whole;
  long long rest;
};

template <int N>
__device__ __forceinline__ void elements(const Arguments& a, Index c0) {
  const double x0 = load(a.p0);
  const double t2 = x0 + a.n1.value;
  double y0[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    y0[i] = t2;
  }
  save(a.p0, y0[N - 1]);
}

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
  const Index count = Index(a.whole) + Index(a.rest);
  for (Index e = Index(block) * kThreads + Index(threadIdx.x); e < count;
       e += Index(blocks) * kThreads) {
    if (e < Index(a.whole)) {
      elements<2>(a, e * 2);
    } else {
      const Index first = e + Index(a.whole) * 1;
      elements<1>(a, first);
    }
  }
}

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) map_add(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

// amax
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256, kKept = 1, kReduced = 256;
using Index = int;
__device__ unsigned tickets[1024];

struct Arguments {
  long long s0_0;
  const float* p0;
  long long kept;
  long long reduced;
  long long tiles;
  Divider by_tiles;
  long long chunk;
  long long chunks;
  float* p1;
  float* partial0;
};

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, float (&g0)[kResults]) {
  float x0[N];
  load_constant_row<4>(x0, a.p0 + c0 * Index(a.s0_0) + c1);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    g0[i % kResults] = MaxOf::combine(g0[i % kResults], x0[i]);
  }
}

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
  const Index kept = Index(a.kept), thread = Index(threadIdx.x);
  const Index result = thread / kReduced, lane = thread % kReduced;
  for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);
       tile += Index(blocks)) {
    const Index part = quotient(tile, a.by_tiles, a.tiles);
    const Index column = tile - part * Index(a.tiles);
    const Index k_step = column * kKept + result, k = k_step;
    const bool active = k < kept, leads = active && lane == 0;
    float g0[1];
    for (int v = 0; v < 1; ++v) g0[v] = scalar::float_of(0xff800000u);
    if (active) {
      const Index c0 = k_step;
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced)) / 4;
#pragma unroll 4
      for (Index r = start / 4 + lane; r < end; r += kReduced) {
        const Index c1 = r * 4;
        elements<4, 1>(a, c0, c1, g0);
      }
    }
    for (int v = 0; v < 1; ++v) g0[v] = reduce_block<MaxOf, kThreads>(g0[v]);
    if (Index(a.chunks) == 1) {
      if (leads) {
        for (int v = 0; v < 1; ++v) save(a.p1 + k + v, g0[v]);
      }
    } else {
      if (leads) {
        for (int v = 0; v < 1; ++v) a.partial0[part * kept + k + v] = g0[v];
      }
      if (is_last_block(&tickets[column], static_cast<unsigned>(a.chunks))) {
        for (int v = 0; v < 1; ++v) g0[v] = scalar::float_of(0xff800000u);
        if (active) {
          for (Index p = lane; p < Index(a.chunks); p += kReduced) {
            for (int v = 0; v < 1; ++v) g0[v] = MaxOf::combine(g0[v], a.partial0[p * kept + k + v]);
          }
        }
        for (int v = 0; v < 1; ++v) g0[v] = reduce_block<MaxOf, kThreads>(g0[v]);
        if (leads) {
          for (int v = 0; v < 1; ++v) save(a.p1 + k + v, g0[v]);
        }
      }
    }
  }
}

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) columns_amax(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

// sub+exp+sum
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"
#include "scalar/exp.h"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256, kKept = 1, kReduced = 256;
using Index = int;
__device__ unsigned tickets[1024];

struct Arguments {
  long long s0_0;
  const float* p0;
  const float* p1;
  float* p2;
  long long kept;
  long long reduced;
  long long tiles;
  Divider by_tiles;
  long long chunk;
  long long chunks;
  float* p3;
  float* partial0;
};

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, float (&g0)[kResults]) {
  float x0[N];
  load_constant_row<4>(x0, a.p0 + c0 * Index(a.s0_0) + c1);
  const float x1 = load_constant(a.p1 + c0);
  float y0[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t2 = x0[i] - x1;
    const float t3 = scalar::exp(t2);
    y0[i] = t2;
    g0[i % kResults] = SumOf::combine(g0[i % kResults], t3);
  }
  save_row<4>(a.p2 + c0 * Index(a.s0_0) + c1, y0);
}

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
  const Index kept = Index(a.kept), thread = Index(threadIdx.x);
  const Index result = thread / kReduced, lane = thread % kReduced;
  for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);
       tile += Index(blocks)) {
    const Index part = quotient(tile, a.by_tiles, a.tiles);
    const Index column = tile - part * Index(a.tiles);
    const Index k_step = column * kKept + result, k = k_step;
    const bool active = k < kept, leads = active && lane == 0;
    float g0[1];
    for (int v = 0; v < 1; ++v) g0[v] = 0;
    if (active) {
      const Index c0 = k_step;
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced)) / 4;
#pragma unroll 4
      for (Index r = start / 4 + lane; r < end; r += kReduced) {
        const Index c1 = r * 4;
        elements<4, 1>(a, c0, c1, g0);
      }
    }
    for (int v = 0; v < 1; ++v) g0[v] = reduce_block<SumOf, kThreads>(g0[v]);
    if (Index(a.chunks) == 1) {
      if (leads) {
        for (int v = 0; v < 1; ++v) save(a.p3 + k + v, g0[v]);
      }
    } else {
      if (leads) {
        for (int v = 0; v < 1; ++v) a.partial0[part * kept + k + v] = g0[v];
      }
      if (is_last_block(&tickets[column], static_cast<unsigned>(a.chunks))) {
        for (int v = 0; v < 1; ++v) g0[v] = 0;
        if (active) {
          for (Index p = lane; p < Index(a.chunks); p += kReduced) {
            for (int v = 0; v < 1; ++v) g0[v] = SumOf::combine(g0[v], a.partial0[p * kept + k + v]);
          }
        }
        for (int v = 0; v < 1; ++v) g0[v] = reduce_block<SumOf, kThreads>(g0[v]);
        if (leads) {
          for (int v = 0; v < 1; ++v) save(a.p3 + k + v, g0[v]);
        }
      }
    }
  }
}

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) columns_sub_exp_sum(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

// log
#include "cuda/kernels/map.cuh"
#include "scalar/log.h"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256;
using Index = int;

struct Arguments {
  const float* p0;
  float* p1;
  long long whole;
  long long rest;
};

template <int N>
__device__ __forceinline__ void elements(const Arguments& a, Index c0) {
  float x0[N];
  load_row<4>(x0, a.p0 + c0);
  float y0[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t1 = scalar::log(x0[i]);
    y0[i] = t1;
  }
  save_row<4>(a.p1 + c0, y0);
}

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
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

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) map_log(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

// eq+sub+where+sum+exp
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"
#include "scalar/exp.h"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256, kKept = 1, kReduced = 256;
using Index = int;
__device__ unsigned tickets[1024];

struct Arguments {
  const long long* p0;
  long long s1_0;
  const float* p1;
  const float* p2;
  bool* p3;
  float* p4;
  long long kept;
  long long reduced;
  long long tiles;
  Divider by_tiles;
  long long chunk;
  long long chunks;
  float* p5;
  float* partial0;
};

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, float (&g0)[kResults]) {
  const long long x0 = load_constant(a.p0 + c0);
  float x3[N];
  load_constant_row<8>(x3, a.p1 + c0 * Index(a.s1_0) + c1);
  const float x4 = load_constant(a.p2 + c0);
  int y0[N];
  float y1[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const long long t1 = static_cast<long long>(c1 + i);
    const int t2 = scalar::eq(x0, t1);
    const float t5 = x3[i] - x4;
    const float t7 = t2 != 0 ? t5 : 0.0f;
    const float t8 = scalar::exp(t5);
    y0[i] = t2;
    y1[i] = t8;
    g0[i % kResults] = SumOf::combine(g0[i % kResults], t7);
  }
  save_row<8>(a.p3 + c0 * Index(a.s1_0) + c1, y0);
  save_row<8>(a.p4 + c0 * Index(a.s1_0) + c1, y1);
}

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
  const Index kept = Index(a.kept), thread = Index(threadIdx.x);
  const Index result = thread / kReduced, lane = thread % kReduced;
  for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);
       tile += Index(blocks)) {
    const Index part = quotient(tile, a.by_tiles, a.tiles);
    const Index column = tile - part * Index(a.tiles);
    const Index k_step = column * kKept + result, k = k_step;
    const bool active = k < kept, leads = active && lane == 0;
    float g0[1];
    for (int v = 0; v < 1; ++v) g0[v] = 0;
    if (active) {
      const Index c0 = k_step;
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced)) / 8;
#pragma unroll 4
      for (Index r = start / 8 + lane; r < end; r += kReduced) {
        const Index c1 = r * 8;
        elements<8, 1>(a, c0, c1, g0);
      }
    }
    for (int v = 0; v < 1; ++v) g0[v] = reduce_block<SumOf, kThreads>(g0[v]);
    if (Index(a.chunks) == 1) {
      if (leads) {
        for (int v = 0; v < 1; ++v) save(a.p5 + k + v, g0[v]);
      }
    } else {
      if (leads) {
        for (int v = 0; v < 1; ++v) a.partial0[part * kept + k + v] = g0[v];
      }
      if (is_last_block(&tickets[column], static_cast<unsigned>(a.chunks))) {
        for (int v = 0; v < 1; ++v) g0[v] = 0;
        if (active) {
          for (Index p = lane; p < Index(a.chunks); p += kReduced) {
            for (int v = 0; v < 1; ++v) g0[v] = SumOf::combine(g0[v], a.partial0[p * kept + k + v]);
          }
        }
        for (int v = 0; v < 1; ++v) g0[v] = reduce_block<SumOf, kThreads>(g0[v]);
        if (leads) {
          for (int v = 0; v < 1; ++v) save(a.p5 + k + v, g0[v]);
        }
      }
    }
  }
}

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) columns_eq_sub_where_exp_sum(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

// ge+lt+logical_and+neg+where+sum+div+where+… (9)
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256, kLanes = 256, N = 4, kSteps = 1;
using Index = int;

struct Arguments {
  Word<long long> n3;
  Word<float> n8;
  Word<float> n11;
  Word<float> n13;
  long long rows;
  long long length;
  const long long* p0;
  const float* p1;
  float* p2;
  float* p3;
};

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
  const Index rows = Index(a.rows), length = Index(a.length);
  const Index lane = Index(threadIdx.x) % kLanes;
  for (Index first = Index(block) * (kThreads / kLanes); first < rows;
       first += Index(blocks) * (kThreads / kLanes)) {
    float g10 = 0;
    long long x0[kSteps][N];
    float x6[kSteps][N];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (j < length) {
        load_constant_row<4>(x0[s], a.p0 + j);
        load_constant_row<4>(x6[s], a.p1 + j);
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (j < length) {
        float y1[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const int t2 = scalar::ge(x0[s][i], 0ll);
          const int t4 = scalar::lt(x0[s][i], a.n3.value);
          const int t5 = scalar::logical_and(t2, t4);
          const float t7 = scalar::neg(x6[s][i]);
          const float t9 = t5 != 0 ? t7 : a.n8.value;
          const float t15 = t5 != 0 ? a.n13.value : 0.0f;
          const float t16 = scalar::neg(t15);
          g10 = SumOf::combine(g10, t9);
          y1[i] = t16;
        }
        save_row<4>(a.p2 + j, y1);
      }
    }
    g10 = reduce_block<SumOf, kThreads>(g10);
    const float t10 = g10;
    const float t12 = t10 / a.n11.value;
    if (lane == 0) {
      save(a.p3, t12);
    }
  }
}

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) rows_ge_lt_logical_and_neg_where(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

// where+sum
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256, kKept = 1, kReduced = 256;
using Index = int;
__device__ unsigned tickets[1024];

struct Arguments {
  long long s0_0;
  const bool* p0;
  const float* p1;
  float* p2;
  long long kept;
  long long reduced;
  long long tiles;
  Divider by_tiles;
  long long chunk;
  long long chunks;
  float* p3;
  float* partial0;
};

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, float (&g0)[kResults]) {
  int x0[N];
  load_constant_row<8>(x0, a.p0 + c0 * Index(a.s0_0) + c1);
  const float x1 = load_constant(a.p1 + c0);
  float y0[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t3 = x0[i] != 0 ? x1 : 0.0f;
    y0[i] = t3;
    g0[i % kResults] = SumOf::combine(g0[i % kResults], t3);
  }
  save_row<8>(a.p2 + c0 * Index(a.s0_0) + c1, y0);
}

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
  const Index kept = Index(a.kept), thread = Index(threadIdx.x);
  const Index result = thread / kReduced, lane = thread % kReduced;
  for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);
       tile += Index(blocks)) {
    const Index part = quotient(tile, a.by_tiles, a.tiles);
    const Index column = tile - part * Index(a.tiles);
    const Index k_step = column * kKept + result, k = k_step;
    const bool active = k < kept, leads = active && lane == 0;
    float g0[1];
    for (int v = 0; v < 1; ++v) g0[v] = 0;
    if (active) {
      const Index c0 = k_step;
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced)) / 8;
#pragma unroll 4
      for (Index r = start / 8 + lane; r < end; r += kReduced) {
        const Index c1 = r * 8;
        elements<8, 1>(a, c0, c1, g0);
      }
    }
    for (int v = 0; v < 1; ++v) g0[v] = reduce_block<SumOf, kThreads>(g0[v]);
    if (Index(a.chunks) == 1) {
      if (leads) {
        for (int v = 0; v < 1; ++v) save(a.p3 + k + v, g0[v]);
      }
    } else {
      if (leads) {
        for (int v = 0; v < 1; ++v) a.partial0[part * kept + k + v] = g0[v];
      }
      if (is_last_block(&tickets[column], static_cast<unsigned>(a.chunks))) {
        for (int v = 0; v < 1; ++v) g0[v] = 0;
        if (active) {
          for (Index p = lane; p < Index(a.chunks); p += kReduced) {
            for (int v = 0; v < 1; ++v) g0[v] = SumOf::combine(g0[v], a.partial0[p * kept + k + v]);
          }
        }
        for (int v = 0; v < 1; ++v) g0[v] = reduce_block<SumOf, kThreads>(g0[v]);
        if (leads) {
          for (int v = 0; v < 1; ++v) save(a.p3 + k + v, g0[v]);
        }
      }
    }
  }
}

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) columns_where_sum(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

// mul+sub+sum
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256, kKept = 32, kReduced = 8;
using Index = int;
__device__ unsigned tickets[1024];

struct Arguments {
  long long s0_0;
  const float* p0;
  const float* p1;
  const float* p2;
  float* p3;
  long long kept;
  long long reduced;
  long long tiles;
  Divider by_tiles;
  long long chunk;
  long long chunks;
  float* p4;
  float* partial0;
};

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, float (&g0)[kResults]) {
  float x0[N];
  load_constant_row<4>(x0, a.p0 + c0 * Index(a.s0_0) + c1);
  const float x1 = load_constant(a.p1 + c0);
  float x3[N];
  load_constant_row<4>(x3, a.p2 + c0 * Index(a.s0_0) + c1);
  float y0[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t2 = x0[i] * x1;
    const float t4 = x3[i] - t2;
    y0[i] = t4;
    g0[i % kResults] = SumOf::combine(g0[i % kResults], t4);
  }
  save_row<4>(a.p3 + c0 * Index(a.s0_0) + c1, y0);
}

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
  const Index kept = Index(a.kept), thread = Index(threadIdx.x);
  const Index result = thread % kKept, lane = thread / kKept;
  for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);
       tile += Index(blocks)) {
    const Index part = quotient(tile, a.by_tiles, a.tiles);
    const Index column = tile - part * Index(a.tiles);
    const Index k_step = column * kKept + result, k = k_step * 4;
    const bool active = k < kept, leads = active && lane == 0;
    float g0[4];
    for (int v = 0; v < 4; ++v) g0[v] = 0;
    if (active) {
      const Index c1 = k_step * 4;
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced));
#pragma unroll 4
      for (Index r = start + lane; r < end; r += kReduced) {
        const Index c0 = r;
        elements<4, 4>(a, c0, c1, g0);
      }
    }
    for (int v = 0; v < 4; ++v) g0[v] = reduce_strided<SumOf, kThreads, kKept>(g0[v]);
    if (Index(a.chunks) == 1) {
      if (leads) {
        for (int v = 0; v < 4; ++v) save(a.p4 + k + v, g0[v]);
      }
    } else {
      if (leads) {
        for (int v = 0; v < 4; ++v) a.partial0[part * kept + k + v] = g0[v];
      }
      if (is_last_block(&tickets[column], static_cast<unsigned>(a.chunks))) {
        for (int v = 0; v < 4; ++v) g0[v] = 0;
        if (active) {
          for (Index p = lane; p < Index(a.chunks); p += kReduced) {
            for (int v = 0; v < 4; ++v) g0[v] = SumOf::combine(g0[v], a.partial0[p * kept + k + v]);
          }
        }
        for (int v = 0; v < 4; ++v) g0[v] = reduce_strided<SumOf, kThreads, kKept>(g0[v]);
        if (leads) {
          for (int v = 0; v < 4; ++v) save(a.p4 + k + v, g0[v]);
        }
      }
    }
  }
}

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) columns_mul_sub_sum(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

// mul+add+assign+mul+sub+assign
#include "cuda/kernels/map.cuh"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256;
using Index = int;

struct Arguments {
  Word<float> n1;
  float* p0;
  const float* p1;
  const float* p2;
  float* p3;
  long long whole;
  long long rest;
};

template <int N>
__device__ __forceinline__ void elements(const Arguments& a, Index c0) {
  float x0[N];
  load_row<4>(x0, a.p0 + c0);
  float x3[N];
  load_row<4>(x3, a.p1 + c0);
  const float x5 = load(a.p2);
  float x7[N];
  load_row<4>(x7, a.p3 + c0);
  float y0[N];
  float y1[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t2 = x0[i] * a.n1.value;
    const float t4 = t2 + x3[i];
    const float t6 = x5 * t4;
    const float t8 = x7[i] - t6;
    y0[i] = t4;
    y1[i] = t8;
  }
  save_row<4>(a.p0 + c0, y0);
  save_row<4>(a.p3 + c0, y1);
}

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
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

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) map_mul_add_mul_sub(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

// sum
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256, kKept = 16, kReduced = 16;
using Index = int;
__device__ unsigned tickets[1024];

struct Arguments {
  long long s0_0;
  const float* p0;
  long long kept;
  long long reduced;
  long long tiles;
  Divider by_tiles;
  long long chunk;
  long long chunks;
  float* p1;
  float* partial0;
};

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, float (&g0)[kResults]) {
  float x0[N];
  load_constant_row<1>(x0, a.p0 + c0 * Index(a.s0_0) + c1);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    g0[i % kResults] = SumOf::combine(g0[i % kResults], x0[i]);
  }
}

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
  const Index kept = Index(a.kept), thread = Index(threadIdx.x);
  const Index result = thread % kKept, lane = thread / kKept;
  for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);
       tile += Index(blocks)) {
    const Index part = quotient(tile, a.by_tiles, a.tiles);
    const Index column = tile - part * Index(a.tiles);
    const Index k_step = column * kKept + result, k = k_step;
    const bool active = k < kept, leads = active && lane == 0;
    float g0[1];
    for (int v = 0; v < 1; ++v) g0[v] = 0;
    if (active) {
      const Index c1 = k_step;
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced));
#pragma unroll 4
      for (Index r = start + lane; r < end; r += kReduced) {
        const Index c0 = r;
        elements<1, 1>(a, c0, c1, g0);
      }
    }
    for (int v = 0; v < 1; ++v) g0[v] = reduce_strided<SumOf, kThreads, kKept>(g0[v]);
    if (Index(a.chunks) == 1) {
      if (leads) {
        for (int v = 0; v < 1; ++v) save(a.p1 + k + v, g0[v]);
      }
    } else {
      if (leads) {
        for (int v = 0; v < 1; ++v) a.partial0[part * kept + k + v] = g0[v];
      }
      if (is_last_block(&tickets[column], static_cast<unsigned>(a.chunks))) {
        for (int v = 0; v < 1; ++v) g0[v] = 0;
        if (active) {
          for (Index p = lane; p < Index(a.chunks); p += kReduced) {
            for (int v = 0; v < 1; ++v) g0[v] = SumOf::combine(g0[v], a.partial0[p * kept + k + v]);
          }
        }
        for (int v = 0; v < 1; ++v) g0[v] = reduce_strided<SumOf, kThreads, kKept>(g0[v]);
        if (leads) {
          for (int v = 0; v < 1; ++v) save(a.p1 + k + v, g0[v]);
        }
      }
    }
  }
}

}  // namespace part0

struct Arguments {
  part0::Arguments part0;
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) columns_sum(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

