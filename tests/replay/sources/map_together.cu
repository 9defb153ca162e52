// Regions that do not depend on one another.
#include "cuda/kernels/maps/map.cuh"
#include "cuda/kernels/maps/map_reduce.cuh"

namespace tenon::cuda {

// sum+div
namespace part0 {

constexpr int kThreads = 256, kLanes = 256, N = 4, kSteps = 1;
using Index = int;

struct Arguments {
  Word<float> n2;
  long long rows;
  long long length;
  const float* p0;
  float* p1;
};

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
  const Index rows = Index(a.rows), length = Index(a.length);
  const Index lane = Index(threadIdx.x) % kLanes;
  for (Index first = Index(block) * (kThreads / kLanes); first < rows;
       first += Index(blocks) * (kThreads / kLanes)) {
    float g1 = 0;
    float x0[kSteps][N];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (j < length) {
        load_constant_row<4>(x0[s], a.p0 + j);
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (j < length) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
          g1 = SumOf::combine(g1, x0[s][i]);
        }
      }
    }
    g1 = reduce_block<SumOf, kThreads>(g1);
    const float t1 = g1;
    const float t3 = t1 / a.n2.value;
    if (lane == 0) {
      save(a.p1, t3);
    }
  }
}

}  // namespace part0

// cast+sum
namespace part1 {

constexpr int kThreads = 256, kKept = 16, kReduced = 16;
using Index = int;
__device__ unsigned tickets[16384];

struct Arguments {
  long long s0_0;
  const BF16* p0;
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
  load_constant_row<8>(held.x0, a.p0 + c0 * Index(a.s0_0) + c1);
  return held;
}

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, const Held<N>& held, bool inside, float (&g0)[kResults]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t1 = held.x0[i];
    if (inside) g0[i % kResults] = SumOf::combine(g0[i % kResults], t1);
  }
}

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
  const Index kept = Index(a.kept), thread = Index(threadIdx.x);
  const Index result = thread % kKept, lane = thread / kKept;
  for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);
       tile += Index(blocks)) {
    const Index part = quotient(tile, a.by_tiles, a.tiles);
    const Index column = tile - part * Index(a.tiles);
    const Index k_step = column * kKept + result, k = k_step * 8;
    const bool active = k < kept;
    const Index place = column * (kKept * 8) + thread;
    const bool leads = thread < kKept * 8 && place < kept;
    float g0[8];
    for (int v = 0; v < 8; ++v) g0[v] = 0;
    if (active) {
      const Index c1 = k_step * 8;
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced));
      for (Index first = start + lane; first < end; first += kReduced * 8) {
        Held<8> held[8];
#pragma unroll
        for (int u = 0; u < 8; ++u) {
          const Index at = first + u * kReduced, r = at < end ? at : end - 1;
          const Index c0 = r;
          held[u] = hold<8>(a, c0, c1);
        }
#pragma unroll
        for (int u = 0; u < 8; ++u) {
          const Index at = first + u * kReduced, r = at < end ? at : end - 1;
          const Index c0 = r;
          elements<8, 8>(a, c0, c1, held[u], at < end, g0);
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
        for (int v = 0; v < 8; ++v) g0[v] = 0;
        if (active) {
#pragma unroll 4
          for (Index p = lane; p < Index(a.chunks); p += kReduced) {
            const auto part0 = *reinterpret_cast<const Packed<float, 8>*>(a.partial0 + p * kept + k);
            for (int v = 0; v < 8; ++v) g0[v] = SumOf::combine(g0[v], part0.element[v]);
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

// square+sum
namespace part2 {

constexpr int kThreads = 256, kLanes = 256, N = 4, kSteps = 1;
using Index = int;

struct Arguments {
  long long rows;
  long long length;
  const float* p0;
  float* p1;
};

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
  const Index rows = Index(a.rows), length = Index(a.length);
  const Index lane = Index(threadIdx.x) % kLanes;
  for (Index first = Index(block) * (kThreads / kLanes); first < rows;
       first += Index(blocks) * (kThreads / kLanes)) {
    float g2 = 0;
    float x0[kSteps][N];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (j < length) {
        load_constant_row<4>(x0[s], a.p0 + j);
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
    if (lane == 0) {
      save(a.p1, t2);
    }
  }
}

}  // namespace part2

// square+sum
namespace part3 {

constexpr int kThreads = 256, kKept = 1, kReduced = 256;
using Index = int;
__device__ unsigned tickets[16384];

struct Arguments {
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
__device__ __forceinline__ Held<N> hold(const Arguments& a, Index c0) {
  Held<N> held;
  load_constant_row<4>(held.x0, a.p0 + c0);
  return held;
}

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, const Held<N>& held, bool inside, float (&g0)[kResults]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t1 = scalar::square(held.x0[i]);
    if (inside) g0[i % kResults] = SumOf::combine(g0[i % kResults], t1);
  }
}

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
  const Index kept = Index(a.kept), thread = Index(threadIdx.x);
  const Index result = thread / kReduced, lane = thread % kReduced;
  for (Index tile = Index(block); tile < Index(a.tiles) * Index(a.chunks);
       tile += Index(blocks)) {
    const Index part = quotient(tile, a.by_tiles, a.tiles);
    const Index column = tile - part * Index(a.tiles);
    const Index k_step = column * kKept + result, k = k_step;
    const bool active = k < kept;
    const Index place = k;
    const bool leads = active && lane == 0;
    float g0[1];
    for (int v = 0; v < 1; ++v) g0[v] = 0;
    if (active) {
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced)) / 4;
      for (Index first = start / 4 + lane; first < end; first += kReduced * 8) {
        Held<4> held[8];
#pragma unroll
        for (int u = 0; u < 8; ++u) {
          const Index at = first + u * kReduced, r = at < end ? at : end - 1;
          const Index c0 = r * 4;
          held[u] = hold<4>(a, c0);
        }
#pragma unroll
        for (int u = 0; u < 8; ++u) {
          const Index at = first + u * kReduced, r = at < end ? at : end - 1;
          const Index c0 = r * 4;
          elements<4, 1>(a, c0, held[u], at < end, g0);
        }
      }
    }
    const float sum0 = reduce_block<SumOf, kThreads>(g0[0]);
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
        const float total0 = reduce_block<SumOf, kThreads>(g0[0]);
        if (leads) {
          save(a.p1 + place, total0);
        }
      }
    }
  }
}

}  // namespace part3

// square+sum
namespace part4 {

constexpr int kThreads = 256, kLanes = 256, N = 2, kSteps = 1;
using Index = int;

struct Arguments {
  long long rows;
  long long length;
  const float* p0;
  float* p1;
};

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
  const Index rows = Index(a.rows), length = Index(a.length);
  const Index lane = Index(threadIdx.x) % kLanes;
  for (Index first = Index(block) * (kThreads / kLanes); first < rows;
       first += Index(blocks) * (kThreads / kLanes)) {
    float g2 = 0;
    float x0[kSteps][N];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (j < length) {
        load_constant_row<2>(x0[s], a.p0 + j);
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
    if (lane == 0) {
      save(a.p1, t2);
    }
  }
}

}  // namespace part4

// add+assign
namespace part5 {

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

__device__ __forceinline__ void nest(const Arguments& a, unsigned block, unsigned blocks) {
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

}  // namespace part5

struct Arguments {
  part0::Arguments part0[1];
  long long end0[1];
  part1::Arguments part1[1];
  long long end1[1];
  part2::Arguments part2[1];
  long long end2[1];
  part3::Arguments part3[1];
  long long end3[1];
  part4::Arguments part4[1];
  long long end4[1];
  part5::Arguments part5[1];
  long long end5[1];
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) together_6(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::await_kernels();
  unsigned start = 0;
#pragma unroll 1
  for (int k = 0; k < 1; ++k) {
    const unsigned end = static_cast<unsigned>(a.end0[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part0::nest(a.part0[k], blockIdx.x - start, end - start);
    start = end;
  }
#pragma unroll 1
  for (int k = 0; k < 1; ++k) {
    const unsigned end = static_cast<unsigned>(a.end1[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part1::nest(a.part1[k], blockIdx.x - start, end - start);
    start = end;
  }
#pragma unroll 1
  for (int k = 0; k < 1; ++k) {
    const unsigned end = static_cast<unsigned>(a.end2[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part2::nest(a.part2[k], blockIdx.x - start, end - start);
    start = end;
  }
#pragma unroll 1
  for (int k = 0; k < 1; ++k) {
    const unsigned end = static_cast<unsigned>(a.end3[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part3::nest(a.part3[k], blockIdx.x - start, end - start);
    start = end;
  }
#pragma unroll 1
  for (int k = 0; k < 1; ++k) {
    const unsigned end = static_cast<unsigned>(a.end4[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part4::nest(a.part4[k], blockIdx.x - start, end - start);
    start = end;
  }
#pragma unroll 1
  for (int k = 0; k < 1; ++k) {
    const unsigned end = static_cast<unsigned>(a.end5[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part5::nest(a.part5[k], blockIdx.x - start, end - start);
    start = end;
  }
}
