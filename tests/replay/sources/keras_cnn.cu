#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d+add+relu
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  const float* p0;
  long long s1_0;
  long long s1_1;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row);
    const float t0 = acc;
    const float t2 = t0 + x1;
    const float t3 = scalar::relu(t2);
    save(p1 + batch * s1_0 + row * s1_1 + column, t3);
  }

  template <int N>
  struct Held {
    float x1;
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    held.x1 = load(p0 + row);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t2 = t0 + held.x1;
      const float t3 = scalar::relu(t2);
      y0[i] = t3;
    }
    save_row<4>(p1 + batch * s1_0 + row * s1_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 1, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 1, 3, 3, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 32;
  static constexpr int kN = 128;
  static constexpr int kK = 16;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 2;
  static constexpr bool kSwizzle = true;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 33536);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/pool.cuh"

using namespace tenon::cuda;

extern "C" __global__ void __launch_bounds__(256)
tenon_max_pool(const PoolArgs a) {
  tenon::cuda::await_kernels();
  max_pool<element::Float32, Window<2, 2, 2, 2, 0, 0, 1, 1, true, true>, false, 0>(a);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d+add+relu
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  const float* p0;
  long long s1_0;
  long long s1_1;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row);
    const float t0 = acc;
    const float t2 = t0 + x1;
    const float t3 = scalar::relu(t2);
    save(p1 + batch * s1_0 + row * s1_1 + column, t3);
  }

  template <int N>
  struct Held {
    float x1;
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    held.x1 = load(p0 + row);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t2 = t0 + held.x1;
      const float t3 = scalar::relu(t2);
      y0[i] = t3;
    }
    save_row<1>(p1 + batch * s1_0 + row * s1_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 1, 3, 3, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 32;
  static constexpr int kN = 64;
  static constexpr int kK = 32;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 1;
  static constexpr int kInnerAxis = 2;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 40960);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d+add+relu
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  const float* p0;
  long long s1_0;
  long long s1_1;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row);
    const float t0 = acc;
    const float t2 = t0 + x1;
    const float t3 = scalar::relu(t2);
    save(p1 + batch * s1_0 + row * s1_1 + column, t3);
  }

  template <int N>
  struct Held {
    float x1;
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    held.x1 = load(p0 + row);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t2 = t0 + held.x1;
      const float t3 = scalar::relu(t2);
      y0[i] = t3;
    }
    save_row<1>(p1 + batch * s1_0 + row * s1_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, true, 1, 3, 3, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 32;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 1;
  static constexpr int kInnerAxis = 2;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 39424);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// matmul+add+relu
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  const float* p0;
  long long s1_1;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + column);
    const float t0 = acc;
    const float t2 = t0 + x1;
    const float t3 = scalar::relu(t2);
    save(p1 + row * s1_1 + column, t3);
  }

  template <int N>
  struct Held {
    float x1[N];
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    load_row<8>(held.x1, p0 + column);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t2 = t0 + held.x1[i];
      const float t3 = scalar::relu(t2);
      y0[i] = t3;
    }
    save_row<8>(p1 + row * s1_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = true;
};
__device__ unsigned gemm_tickets[16384];
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 26112);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, gemm_tickets);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// matmul
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      y0[i] = t0;
    }
    save_row<2>(p0 + row * s0_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 1;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 26112);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

// ge+lt+logical_and+eq+add+amax+sub+exp+… (23)
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"
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
  long long s1_0;
  const float* p1;
  const float* p2;
  float* p3;
  float* p4;
};

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
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
    const long long x6 = !active ? 0ll : load(a.p0 + c0);
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
        load_row<2>(x9[s], a.p1 + c0 * Index(a.s1_0) + j);
        load_row<2>(x10[s], a.p2 + j);
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const Index j = (s * kLanes + lane) * N;
      if (active && j < length) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const long long t7 = static_cast<long long>(j + i);
          const int t8 = scalar::eq(x6, t7);
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
          const int t8 = scalar::eq(x6, t7);
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
        save_row<2>(a.p3 + c0 * Index(a.s1_0) + j, y1);
      }
    }
    g20 = reduce_lanes<SumOf, kLanes>(g20);
    const float t20 = g20;
    const float t21 = scalar::neg(t20);
    const float t23 = t5 != 0 ? t21 : a.n22.value;
    if (active && lane == 0) {
      save(a.p4 + c0, t23);
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

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
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
  tenon::cuda::part0::sweep(a.part0, 0, 1);
  __syncthreads();
  tenon::cuda::part1::sweep(a.part1, 0, 1);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// gt+matmul+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::gt(x1, 0.0f);
    const float t4 = t3 != 0 ? t0 : 0.0f;
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const int t3 = scalar::gt(held.x1[i], 0.0f);
      const float t4 = t3 != 0 ? t0 : 0.0f;
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
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 1, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 28416);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// gt+matmul+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::gt(x1, 0.0f);
    const float t4 = t3 != 0 ? t0 : 0.0f;
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const int t3 = scalar::gt(held.x1[i], 0.0f);
      const float t4 = t3 != 0 ? t0 : 0.0f;
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
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 28416);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// gt+conv2d_input_grad+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  long long s0_0;
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + batch * s0_0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::gt(x1, 0.0f);
    const float t4 = t3 != 0 ? t0 : 0.0f;
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const int t3 = scalar::gt(held.x1[i], 0.0f);
      const float t4 = t3 != 0 ? t0 : 0.0f;
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
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 1, 1, 3, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 1, 3, 3, 1>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 32;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 1;
  static constexpr int kInnerAxis = 2;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 43520);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/pool.cuh"

using namespace tenon::cuda;

extern "C" __global__ void __launch_bounds__(256)
tenon_max_pool_grad_staged(const PoolArgs a) {
  tenon::cuda::await_kernels();
  max_pool_grad_staged<element::Float32, Window<2, 2, 2, 2, 0, 0, 1, 1, true, true>>(a);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// gt+conv2d_input_grad+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  long long s0_0;
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + batch * s0_0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::gt(x1, 0.0f);
    const float t4 = t3 != 0 ? t0 : 0.0f;
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const int t3 = scalar::gt(held.x1[i], 0.0f);
      const float t4 = t3 != 0 ? t0 : 0.0f;
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
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 1, 1, 3, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 1, 3, 3, 1>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 32;
  static constexpr int kN = 64;
  static constexpr int kK = 32;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 1;
  static constexpr int kInnerAxis = 2;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 40960);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/pool.cuh"

using namespace tenon::cuda;

extern "C" __global__ void __launch_bounds__(256)
tenon_max_pool_grad_disjoint(const PoolArgs a) {
  tenon::cuda::await_kernels();
  max_pool_grad_disjoint<element::Float32, Window<2, 2, 2, 2, 0, 0, 1, 1, true, true>, false, true>(a);
}

// ---- next launch ----

// cast+add+pow+sub+div+cast+pow+sub+… (11)
#include "cuda/kernels/map.cuh"
#include "scalar/pow.h"

namespace tenon::cuda {

namespace part0 {

constexpr int kThreads = 256;
using Index = int;

struct Arguments {
  Word<double> n3;
  Word<double> n5;
  Word<double> n10;
  const float* p0;
  double* p1;
  float* p2;
  float* p3;
  long long whole;
  long long rest;
};

template <int N>
__device__ __forceinline__ void elements(const Arguments& a, Index c0) {
  const float x0 = load(a.p0);
  const double x2 = load(a.p1);
  const double t1 = static_cast<double>(x0);
  const double t4 = x2 + a.n3.value;
  const double t6 = scalar::pow(a.n5.value, t4);
  const double t7 = a.n3.value - t6;
  const double t8 = t1 / t7;
  const float t9 = static_cast<float>(t8);
  const double t11 = scalar::pow(a.n10.value, t4);
  const double t12 = a.n3.value - t11;
  const double t13 = scalar::sqrt(t12);
  const float t14 = static_cast<float>(t13);
  float y0[N];
  float y1[N];
  double y2[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    y0[i] = t9;
    y1[i] = t14;
    y2[i] = t4;
  }
  save(a.p2, y0[N - 1]);
  save(a.p3, y1[N - 1]);
  save(a.p1, y2[N - 1]);
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

extern "C" __global__ void __launch_bounds__(256) map_cast_add_pow_sub_div(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::await_kernels();
  tenon::cuda::part0::sweep(a.part0, blockIdx.x, gridDim.x);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d_weight_grad+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
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

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 4, 1, 3, 0>;
  using B = Side<Kind::Float32, Kind::Float32, true, 1, 3, 3, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 32;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 1;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = true;
};
__device__ unsigned gemm_tickets[16384];
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 39424);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, gemm_tickets);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d_weight_grad+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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
    load_row<8>(held.x1, p0 + row * s0_1 + column);
    load_row<8>(held.x6, p1 + row * s0_1 + column);
    held.x14 = load(p2);
    held.x19 = load(p3);
    load_row<8>(held.x21, p4 + row * s0_1 + column);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
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
    save_row<8>(p0 + row * s0_1 + column, y0);
    save_row<8>(p1 + row * s0_1 + column, y1);
    save_row<8>(p4 + row * s0_1 + column, y2);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 1, 1, 3, 0>;
  using B = Side<Kind::Float32, Kind::Float32, true, 1, 3, 3, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 32;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = true;
};
__device__ unsigned gemm_tickets[16384];
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 39424);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, gemm_tickets);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d_weight_grad+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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
    load_row<8>(held.x1, p0 + row * s0_1 + column);
    load_row<8>(held.x6, p1 + row * s0_1 + column);
    held.x14 = load(p2);
    held.x19 = load(p3);
    load_row<8>(held.x21, p4 + row * s0_1 + column);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
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
    save_row<8>(p0 + row * s0_1 + column, y0);
    save_row<8>(p1 + row * s0_1 + column, y1);
    save_row<8>(p4 + row * s0_1 + column, y2);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 1, 1, 3, 0>;
  using B = Side<Kind::Float32, Kind::Float32, true, 1, 3, 3, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 32;
  static constexpr int kN = 64;
  static constexpr int kK = 32;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = true;
};
__device__ unsigned gemm_tickets[16384];
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 42496);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, gemm_tickets);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// matmul+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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
    load_row<8>(held.x1, p0 + row * s0_1 + column);
    load_row<8>(held.x6, p1 + row * s0_1 + column);
    held.x14 = load(p2);
    held.x19 = load(p3);
    load_row<8>(held.x21, p4 + row * s0_1 + column);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
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
    save_row<8>(p0 + row * s0_1 + column, y0);
    save_row<8>(p1 + row * s0_1 + column, y1);
    save_row<8>(p4 + row * s0_1 + column, y2);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 30720);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// matmul+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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
    load_row<8>(held.x1, p0 + row * s0_1 + column);
    load_row<8>(held.x6, p1 + row * s0_1 + column);
    held.x14 = load(p2);
    held.x19 = load(p3);
    load_row<8>(held.x21, p4 + row * s0_1 + column);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
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
    save_row<8>(p0 + row * s0_1 + column, y0);
    save_row<8>(p1 + row * s0_1 + column, y1);
    save_row<8>(p4 + row * s0_1 + column, y2);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, false, 1, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Fp32;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 64;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 30720);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

// Regions that do not depend on one another.
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"

namespace tenon::cuda {

// sum
namespace part0 {

constexpr int kThreads = 256, kKept = 1, kReduced = 256;
using Index = int;
__device__ unsigned tickets[16384];

struct Arguments {
  long long s0_0;
  long long s0_1;
  const float* p0;
  long long kept;
  long long reduced;
  long long tiles;
  Divider by_tiles;
  long long chunk;
  long long chunks;
  long long first_ticket;
  long long size2;
  Divider by2;
  float* p1;
  float* partial0;
};

template <int N>
struct Held {
  float x0[N];
};
template <int N>
__device__ __forceinline__ Held<N> hold(const Arguments& a, Index c0, Index c1, Index c2) {
  Held<N> held;
  load_constant_row<1>(held.x0, a.p0 + c0 * Index(a.s0_0) + c1 * Index(a.s0_1) + c2);
  return held;
}

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, Index c2, const Held<N>& held, bool inside, float (&g0)[kResults]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (inside) g0[i % kResults] = SumOf::combine(g0[i % kResults], held.x0[i]);
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
    const bool active = k < kept;
    const Index place = k;
    const bool leads = active && lane == 0;
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
          const Index r_2 = quotient(r, a.by2, a.size2);
          const Index c2 = (r - r_2 * Index(a.size2));
          const Index c0 = r_2;
          held[u] = hold<1>(a, c0, c1, c2);
        }
#pragma unroll
        for (int u = 0; u < 8; ++u) {
          const Index at = first + u * kReduced, r = at < end ? at : end - 1;
          const Index r_2 = quotient(r, a.by2, a.size2);
          const Index c2 = (r - r_2 * Index(a.size2));
          const Index c0 = r_2;
          elements<1, 1>(a, c0, c1, c2, held[u], at < end, g0);
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

}  // namespace part0

// sum
namespace part1 {

constexpr int kThreads = 256, kKept = 32, kReduced = 8;
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
  load_constant_row<1>(held.x0, a.p0 + c0 * Index(a.s0_0) + c1);
  return held;
}

template <int N, int kResults>
__device__ __forceinline__ void elements(const Arguments& a, Index c0, Index c1, const Held<N>& held, bool inside, float (&g0)[kResults]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (inside) g0[i % kResults] = SumOf::combine(g0[i % kResults], held.x0[i]);
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
  part0::Arguments part0[3];
  long long end0[3];
  part1::Arguments part1[1];
  long long end1[1];
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256, 4) together_2(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::await_kernels();
  unsigned start = 0;
#pragma unroll 1
  for (int k = 0; k < 3; ++k) {
    const unsigned end = static_cast<unsigned>(a.end0[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part0::sweep(a.part0[k], blockIdx.x - start, end - start);
    start = end;
  }
#pragma unroll 1
  for (int k = 0; k < 1; ++k) {
    const unsigned end = static_cast<unsigned>(a.end1[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part1::sweep(a.part1[k], blockIdx.x - start, end - start);
    start = end;
  }
}

// ---- next launch ----

// Regions that do not depend on one another.
#include "cuda/kernels/map.cuh"
#include "cuda/kernels/map_reduce.cuh"

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

__device__ __forceinline__ void sweep(const Arguments& a, unsigned block, unsigned blocks) {
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

// sub+mul+add+assign+mul+square+mul+add+… (16)
namespace part1 {

constexpr int kThreads = 256;
using Index = int;

struct Arguments {
  Word<float> n3;
  Word<float> n7;
  Word<float> n10;
  Word<float> n16;
  const float* p0;
  float* p1;
  float* p2;
  const float* p3;
  const float* p4;
  float* p5;
  long long whole;
  long long rest;
};

template <int N>
__device__ __forceinline__ void elements(const Arguments& a, Index c0) {
  float x0[N];
  load_row<4>(x0, a.p0 + c0);
  float x1[N];
  load_row<4>(x1, a.p1 + c0);
  float x6[N];
  load_row<4>(x6, a.p2 + c0);
  const float x14 = load(a.p3);
  const float x19 = load(a.p4);
  float x21[N];
  load_row<4>(x21, a.p5 + c0);
  float y0[N];
  float y1[N];
  float y2[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float t2 = x0[i] - x1[i];
    const float t4 = t2 * a.n3.value;
    const float t5 = x1[i] + t4;
    const float t8 = x6[i] * a.n7.value;
    const float t9 = scalar::square(x0[i]);
    const float t11 = t9 * a.n10.value;
    const float t12 = t8 + t11;
    const float t13 = scalar::sqrt(t12);
    const float t15 = t13 / x14;
    const float t17 = t15 + a.n16.value;
    const float t18 = t5 / t17;
    const float t20 = x19 * t18;
    const float t22 = x21[i] - t20;
    y0[i] = t5;
    y1[i] = t12;
    y2[i] = t22;
  }
  save_row<4>(a.p1 + c0, y0);
  save_row<4>(a.p2 + c0, y1);
  save_row<4>(a.p5 + c0, y2);
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

}  // namespace part1

struct Arguments {
  part0::Arguments part0[1];
  long long end0[1];
  part1::Arguments part1[5];
  long long end1[5];
};

}  // namespace tenon::cuda

extern "C" __global__ void __launch_bounds__(256) together_2(const __grid_constant__ tenon::cuda::Arguments a) {
  tenon::cuda::await_kernels();
  unsigned start = 0;
#pragma unroll 1
  for (int k = 0; k < 1; ++k) {
    const unsigned end = static_cast<unsigned>(a.end0[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part0::sweep(a.part0[k], blockIdx.x - start, end - start);
    start = end;
  }
#pragma unroll 1
  for (int k = 0; k < 5; ++k) {
    const unsigned end = static_cast<unsigned>(a.end1[k]);
    if (blockIdx.x < end)
      return tenon::cuda::part1::sweep(a.part1[k], blockIdx.x - start, end - start);
    start = end;
  }
}

// ---- next launch ----

#include "cuda/kernels/conv_patch.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d+add+relu
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  const float* p0;
  long long s1_0;
  long long s1_1;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row);
    const float t0 = acc;
    const float t2 = t0 + x1;
    const float t3 = scalar::relu(t2);
    save(p1 + batch * s1_0 + row * s1_1 + column, t3);
  }

  template <int N>
  struct Held {
    float x1;
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    held.x1 = load(p0 + row);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t2 = t0 + held.x1;
      const float t3 = scalar::relu(t2);
      y0[i] = t3;
    }
    save_row<4>(p1 + batch * s1_0 + row * s1_1 + column, y0);
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
  static constexpr Kind kPicture = Kind::Float32;
  static constexpr bool kShifts = true, kWhole = false;
  static constexpr int kM = 32;
  static constexpr int kN = 256;
  static constexpr int kThreads = 256;
  static constexpr int kThreadM = 32;
  static constexpr int kThreadN = 32;
  static constexpr Kind kFilters = Kind::Float32;
  static constexpr bool kRowsFirst = false;
  static constexpr int kStoreVector = 4;
};

extern "C" __global__ void __launch_bounds__(256, 2)
conv_patch(const ConvProblem p, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  ConvBlock<Config, Epilogue>(p, epilogue, shared).await_and_run();
}

// ---- next launch ----

#include "cuda/kernels/conv_patch.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d+add+relu
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  const float* p0;
  long long s1_0;
  long long s1_1;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row);
    const float t0 = acc;
    const float t2 = t0 + x1;
    const float t3 = scalar::relu(t2);
    save(p1 + batch * s1_0 + row * s1_1 + column, t3);
  }

  template <int N>
  struct Held {
    float x1;
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    held.x1 = load(p0 + row);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t2 = t0 + held.x1;
      const float t3 = scalar::relu(t2);
      y0[i] = t3;
    }
    save_row<1>(p1 + batch * s1_0 + row * s1_1 + column, y0);
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
  static constexpr Kind kPicture = Kind::Float32;
  static constexpr bool kShifts = false, kWhole = true;
  static constexpr int kM = 32;
  static constexpr int kN = 256;
  static constexpr int kThreads = 512;
  static constexpr int kThreadM = 32;
  static constexpr int kThreadN = 32;
  static constexpr Kind kFilters = Kind::Float32;
  static constexpr bool kRowsFirst = false;
  static constexpr int kStoreVector = 1;
};

extern "C" __global__ void __launch_bounds__(512, 1)
conv_patch(const ConvProblem p, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  ConvBlock<Config, Epilogue>(p, epilogue, shared).await_and_run();
}

// ---- next launch ----

#include "cuda/kernels/conv_patch.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d+add+relu
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  const float* p0;
  long long s1_0;
  long long s1_1;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row);
    const float t0 = acc;
    const float t2 = t0 + x1;
    const float t3 = scalar::relu(t2);
    save(p1 + batch * s1_0 + row * s1_1 + column, t3);
  }

  template <int N>
  struct Held {
    float x1;
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    held.x1 = load(p0 + row);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t2 = t0 + held.x1;
      const float t3 = scalar::relu(t2);
      y0[i] = t3;
    }
    save_row<1>(p1 + batch * s1_0 + row * s1_1 + column, y0);
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
  static constexpr Kind kPicture = Kind::Float32;
  static constexpr bool kShifts = false, kWhole = true;
  static constexpr int kM = 16;
  static constexpr int kN = 64;
  static constexpr int kThreads = 512;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 32;
  static constexpr Kind kFilters = Kind::Float32;
  static constexpr bool kRowsFirst = false;
  static constexpr int kStoreVector = 1;
};

extern "C" __global__ void __launch_bounds__(512, 1)
conv_patch(const ConvProblem p, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  ConvBlock<Config, Epilogue>(p, epilogue, shared).await_and_run();
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// matmul+add+relu
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  const float* p0;
  long long s1_1;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + column);
    const float t0 = acc;
    const float t2 = t0 + x1;
    const float t3 = scalar::relu(t2);
    save(p1 + row * s1_1 + column, t3);
  }

  template <int N>
  struct Held {
    float x1[N];
  };
  template <int N>
  __device__ __forceinline__ Held<N> hold(long long batch, long long row, long long column) const {
    Held<N> held;
    load_row<8>(held.x1, p0 + column);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const float t2 = t0 + held.x1[i];
      const float t3 = scalar::relu(t2);
      y0[i] = t3;
    }
    save_row<8>(p1 + row * s1_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Bf16;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 128;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 16;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 52224);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// matmul
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      y0[i] = t0;
    }
    save_row<2>(p0 + row * s0_1 + column, y0);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Bf16;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 128;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 16;
  static constexpr int kStoreVector = 1;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 52224);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// gt+matmul+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::gt(x1, 0.0f);
    const float t4 = t3 != 0 ? t0 : 0.0f;
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const int t3 = scalar::gt(held.x1[i], 0.0f);
      const float t4 = t3 != 0 ? t0 : 0.0f;
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
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 1, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Bf16;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 128;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 16;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 56832);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// gt+matmul+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::gt(x1, 0.0f);
    const float t4 = t3 != 0 ? t0 : 0.0f;
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const int t3 = scalar::gt(held.x1[i], 0.0f);
      const float t4 = t3 != 0 ? t0 : 0.0f;
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
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, true, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Bf16;
  static constexpr int kM = 32;
  static constexpr int kN = 32;
  static constexpr int kK = 64;
  static constexpr int kThreads = 128;
  static constexpr int kStages = 4;
  static constexpr int kThreadM = 32;
  static constexpr int kThreadN = 32;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 73728);

extern "C" __global__ void __launch_bounds__(128, 1)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/conv_patch.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// gt+conv2d_input_grad+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  long long s0_0;
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + batch * s0_0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::gt(x1, 0.0f);
    const float t4 = t3 != 0 ? t0 : 0.0f;
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const int t3 = scalar::gt(held.x1[i], 0.0f);
      const float t4 = t3 != 0 ? t0 : 0.0f;
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
  static constexpr Kind kPicture = Kind::Float32;
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

// ---- next launch ----

#include "cuda/kernels/conv_patch.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// gt+conv2d_input_grad+where
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
  long long s0_0;
  long long s0_1;
  const float* p0;
  float* p1;

  __device__ __forceinline__ void store(long long batch, long long row, long long column, float acc, Sums& sums) const {
    const float x1 = load(p0 + batch * s0_0 + row * s0_1 + column);
    const float t0 = acc;
    const int t3 = scalar::gt(x1, 0.0f);
    const float t4 = t3 != 0 ? t0 : 0.0f;
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
    float y0[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float t0 = acc[i];
      const int t3 = scalar::gt(held.x1[i], 0.0f);
      const float t4 = t3 != 0 ? t0 : 0.0f;
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
  static constexpr Kind kPicture = Kind::Float32;
  static constexpr bool kShifts = false, kWhole = true;
  static constexpr int kM = 32;
  static constexpr int kN = 192;
  static constexpr int kThreads = 512;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 48;
  static constexpr Kind kFilters = Kind::Float32;
  static constexpr bool kRowsFirst = true;
  static constexpr int kStoreVector = 1;
};

extern "C" __global__ void __launch_bounds__(512, 1)
conv_patch(const ConvProblem p, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  ConvBlock<Config, Epilogue>(p, epilogue, shared).await_and_run();
}

// ---- next launch ----

#include "cuda/kernels/conv_gradient.cuh"

using namespace tenon::cuda;

struct Config {
  static constexpr Math kMath = Math::Bf16;
  static constexpr Kind kPicture = Kind::Float32;
  static constexpr bool kShifts = true, kWhole = false;
  static constexpr int kM = 32;
  static constexpr int kN = 32;
  static constexpr int kThreads = 256;
  static constexpr int kThreadM = 32;
  static constexpr int kThreadN = 32;
  static constexpr Kind kGradient = Kind::Float32;
  static constexpr int kAligned = 2;
};

extern "C" __global__ void __launch_bounds__(256, 2)
conv_gradient(const ConvGradient p) {
  TENON_DYNAMIC_SHARED(shared);
  ConvGradientBlock<Config>(p, shared).await_and_run();
}

// ---- next launch ----

#include "cuda/kernels/conv_sum.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d_weight_grad+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
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

// ---- next launch ----

#include "cuda/kernels/conv_gradient.cuh"

using namespace tenon::cuda;

struct Config {
  static constexpr Math kMath = Math::Bf16;
  static constexpr Kind kPicture = Kind::Float32;
  static constexpr bool kShifts = false, kWhole = true;
  static constexpr int kM = 32;
  static constexpr int kN = 144;
  static constexpr int kThreads = 384;
  static constexpr int kThreadM = 32;
  static constexpr int kThreadN = 48;
  static constexpr Kind kGradient = Kind::Float32;
  static constexpr int kAligned = 1;
};

extern "C" __global__ void __launch_bounds__(384, 1)
conv_gradient(const ConvGradient p) {
  TENON_DYNAMIC_SHARED(shared);
  ConvGradientBlock<Config>(p, shared).await_and_run();
}

// ---- next launch ----

#include "cuda/kernels/conv_sum.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// conv2d_weight_grad+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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
    load_row<8>(held.x1, p0 + row * s0_1 + column);
    load_row<8>(held.x6, p1 + row * s0_1 + column);
    held.x14 = load(p2);
    held.x19 = load(p3);
    load_row<8>(held.x21, p4 + row * s0_1 + column);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
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
    save_row<8>(p0 + row * s0_1 + column, y0);
    save_row<8>(p1 + row * s0_1 + column, y1);
    save_row<8>(p4 + row * s0_1 + column, y2);
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
  __shared__ Floats<4> shared[256];
  sum_partials<4, 256>(s, epilogue, shared);
}

// ---- next launch ----

#include "cuda/kernels/conv_gradient.cuh"

using namespace tenon::cuda;

struct Config {
  static constexpr Math kMath = Math::Bf16;
  static constexpr Kind kPicture = Kind::Float32;
  static constexpr bool kShifts = false, kWhole = true;
  static constexpr int kM = 32;
  static constexpr int kN = 96;
  static constexpr int kThreads = 384;
  static constexpr int kThreadM = 32;
  static constexpr int kThreadN = 48;
  static constexpr Kind kGradient = Kind::Float32;
  static constexpr int kAligned = 1;
};

extern "C" __global__ void __launch_bounds__(384, 1)
conv_gradient(const ConvGradient p) {
  TENON_DYNAMIC_SHARED(shared);
  ConvGradientBlock<Config>(p, shared).await_and_run();
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// matmul+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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
    load_row<8>(held.x1, p0 + row * s0_1 + column);
    load_row<8>(held.x6, p1 + row * s0_1 + column);
    held.x14 = load(p2);
    held.x19 = load(p3);
    load_row<8>(held.x21, p4 + row * s0_1 + column);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
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
    save_row<8>(p0 + row * s0_1 + column, y0);
    save_row<8>(p1 + row * s0_1 + column, y1);
    save_row<8>(p4 + row * s0_1 + column, y2);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Bf16;
  static constexpr int kM = 16;
  static constexpr int kN = 32;
  static constexpr int kK = 128;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 32;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 86016);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/map.cuh"
namespace tenon::cuda {

// matmul+sub+mul+add+assign+mul+square+mul+… (17)
struct Epilogue {
  struct Sums {};
  static constexpr bool kSums = false;
  static __device__ __forceinline__ Sums no_sums() { return {}; }
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
    load_row<8>(held.x1, p0 + row * s0_1 + column);
    load_row<8>(held.x6, p1 + row * s0_1 + column);
    held.x14 = load(p2);
    held.x19 = load(p3);
    load_row<8>(held.x21, p4 + row * s0_1 + column);
    return held;
  }

  template <int N>
  __device__ __forceinline__ void finish(long long batch, long long row, long long column, const float (&acc)[N], const Held<N>& held, Sums& sums) const {
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
    save_row<8>(p0 + row * s0_1 + column, y0);
    save_row<8>(p1 + row * s0_1 + column, y1);
    save_row<8>(p4 + row * s0_1 + column, y2);
  }

  template <int N>
  __device__ __forceinline__ void store_row(long long batch, long long row, long long column, const float (&acc)[N], Sums& sums) const {
    finish(batch, row, column, acc, hold<N>(batch, row, column), sums);
  }
};

}  // namespace tenon::cuda

using namespace tenon::cuda;

struct Config {
  using Offset = int;
  using A = Side<Kind::Float32, Kind::Float32, false, 1, 1, 1, 0>;
  using B = Side<Kind::Float32, Kind::Float32, false, 4, 1, 1, 0>;
  static constexpr Math kMath = Math::Bf16;
  static constexpr int kM = 16;
  static constexpr int kN = 16;
  static constexpr int kK = 128;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 3;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 16;
  static constexpr int kStoreVector = 4;
  static constexpr int kInnerAxis = 0;
  static constexpr bool kSwizzle = false;
  static constexpr bool kSplit = false;
};
using Block = GemmBlock<Config, Epilogue>;
static_assert(Block::kSharedBytes == 61440);

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const GemmProblem p, const GemmOperand a, const GemmOperand b, const Epilogue epilogue) {
  TENON_DYNAMIC_SHARED(shared);
  Block block(p, epilogue, shared);
  block.await_and_run(a, b, nullptr);
}

// ---- next launch ----

