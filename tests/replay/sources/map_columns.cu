// square+sub+mul+sum
#include "cuda/kernels/maps/map.cuh"
#include "cuda/kernels/maps/map_reduce.cuh"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256, kKept = 1, kReduced = 256;
using Index = int;
__device__ unsigned tickets[16384];

struct Arguments {
  Word<float> n2;
  long long s0_0;
  long long s0_1;
  const float* p0;
  const float* p1;
  float* p2;
  long long kept;
  long long reduced;
  long long tiles;
  Divider by_tiles;
  long long chunk;
  long long chunks;
  long long first_ticket;
  long long size2;
  Divider by2;
  float* p3;
  float* partial0;
};

template <int N>
struct Held {
  float x0[N];
  float x4[N];
};
template <int N>
__device__ __forceinline__ Held<N> hold(const Arguments& a, Index c0, Index c1, Index c2) {
  Held<N> held;
  load_constant_row<4>(held.x0, a.p0 + c0 * Index(a.s0_0) + c1 * Index(a.s0_1) + c2);
  load_constant_row<4>(held.x4, a.p1 + c0 * Index(a.s0_0) + c1 * Index(a.s0_1) + c2);
  return held;
}

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, Index c2, const Held<N>& held, bool inside, float (&g0)[kResults]) {
  float y0[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t1 = scalar::square(held.x0[i]);
    const float t3 = a.n2.value - t1;
    const float t5 = held.x4[i] * t3;
    y0[i] = t5;
    if (inside) g0[i % kResults] = SumOf::combine(g0[i % kResults], t5);
  }
  if (inside) {
    save_row<4>(a.p2 + c0 * Index(a.s0_0) + c1 * Index(a.s0_1) + c2, y0);
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
      const Index c1 = k_step;
      const Index start = part * Index(a.chunk), stop = start + Index(a.chunk);
      const Index end = (stop < Index(a.reduced) ? stop : Index(a.reduced)) / 4;
      for (Index first = start / 4 + lane; first < end; first += kReduced * 4) {
        Held<4> held[4];
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          const Index at = first + u * kReduced, r = at < end ? at : end - 1;
          const Index r_2 = quotient(r, a.by2, a.size2);
          const Index c2 = (r - r_2 * Index(a.size2)) * 4;
          const Index c0 = r_2;
          held[u] = hold<4>(a, c0, c1, c2);
        }
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          const Index at = first + u * kReduced, r = at < end ? at : end - 1;
          const Index r_2 = quotient(r, a.by2, a.size2);
          const Index c2 = (r - r_2 * Index(a.size2)) * 4;
          const Index c0 = r_2;
          elements<4, 1>(a, c0, c1, c2, held[u], at < end, g0);
        }
      }
    }
    const float sum0 = reduce_block<SumOf, kThreads>(g0[0]);
    if (Index(a.chunks) == 1) {
      if (leads) {
        save(a.p3 + place, sum0);
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
          save(a.p3 + place, total0);
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

extern "C" __global__ void __launch_bounds__(256, 4) columns_square_sub_mul_sum(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::await_kernels();
  tenon::cuda::part0::nest(a.part0, blockIdx.x, gridDim.x);
}
