// Step 5: TMA and wgmma, for sm_90a. Warpgroups have roles: one thread of the first requests tiles
// from TMA, the other two warpgroups multiply (each 64 x BN of a 128 x BN tile of C, sums in
// registers). They synchronise at pairs of barriers in shared memory, one pair per stage of the
// ring: `full` counts bytes that have arrived, `empty` counts warps that have finished reading.
//
// Blocks are persistent and take tile after tile, in an order that walks bands of rows, so that
// concurrent tiles share rows of A and columns of B in the L2 cache. The next tile's copies start
// while the last tile's sums are written. The blocks of a cluster are above one another and need
// the same columns of B; each loads its share and multicasts it to all.
//
// Row-major A[m, k] (or A stored [k, m]: kTransA), B[k, n] (or stored [n, k]: kTransB), C[m, n];
// bfloat16, float sums. Any m, n, k whose contiguous extents are multiples of 8: TMA fills elements
// outside with zeros and does not write them. Base addresses aligned to 16 bytes.
//
// Sources: NVIDIA, "PTX ISA" (wgmma layouts, 128-byte swizzle) and CUTLASS, "Efficient GEMM"
// (warp-specialised persistent kernels); P. Shah, "Fast matrix multiplication on the H100 from
// scratch" (fast.cu); DeepGEMM (per-warp release of stages).
#pragma once

#include <cuda.h>

#include "element.cuh"
#include "ptx.cuh"

namespace lab {

struct WgmmaProblem {
  CUtensorMap a, b, c;
  int m, n, k;
  int band;  // rows of clusters in a band of the tile order
};

template <int kBN, int kStageCount, int kClusterSize, bool kTransposeA, bool kTransposeB>
struct WgmmaTiles {
  static constexpr int kM = 128, kN = kBN, kK = 64, kStages = kStageCount, kCluster = kClusterSize;
  static constexpr bool kTransA = kTransposeA, kTransB = kTransposeB;
  static constexpr int kBytesA = kM * kK * 2, kBytesB = kN * kK * 2, kBox = 64 * 128;
  static constexpr int kStaging = 2 * kBox;  // a consumer's two pieces of C
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kShared = 1024 + kStages * kStageBytes + 2 * kStaging + 16 * kStages;
  static_assert(kShared <= 227 * 1024 && kN % (64 * kCluster) == 0);
};

/// The wgmma descriptor of a tile in shared memory whose rows are 128 bytes, swizzled in groups of
/// eight. k along the rows: groups of eight rows follow one another (1024 bytes). k across the
/// rows: a group is eight steps of k, and the next 64 rows of A or columns of B are one box
/// further.
template <bool kAcross>
__device__ __forceinline__ unsigned long long tile_descriptor(unsigned address) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62, kGroup = 1024 >> 4;
  constexpr unsigned long long kNextBox = kAcross ? 64 * 128 >> 4 : 1;
  return kSwizzle128 | kGroup << 32 | kNextBox << 16 | (address & 0x3FFFF) >> 4;
}
/// The step of a descriptor for 16 steps of k: 32 bytes along a row, or sixteen rows.
template <bool kAcross>
constexpr int kDescriptorStep = (kAcross ? 16 * 128 : 32) >> 4;

/// Position in the ring of stages; the parity flips after each round.
template <int kStages>
struct RingPlace {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

template <class Tiles>
struct TileOrder {
  int rows, columns, tiles, band;  // in clusters
  __device__ explicit TileOrder(const WgmmaProblem& p)
      : rows((p.m + Tiles::kM * Tiles::kCluster - 1) / (Tiles::kM * Tiles::kCluster)),
        columns((p.n + Tiles::kN - 1) / Tiles::kN),
        tiles(rows * columns),
        band(p.band) {}
  __device__ __forceinline__ void place(int tile, int& row, int& column) const {
    const int first = tile / (band * columns) * band;
    const int height = min(band, rows - first), rest = tile - first * columns;
    row = first + rest % height;
    column = rest / height;
  }
};

template <class Tiles>
struct SharedPlaces {
  unsigned a, b, c, full, empty;
  __device__ explicit SharedPlaces(void* shared)
      : a((shared_address(shared) + 1023) & ~1023u),
        b(a + Tiles::kStages * Tiles::kBytesA),
        c(b + Tiles::kStages * Tiles::kBytesB),
        full(c + 2 * Tiles::kStaging),
        empty(full + 8 * Tiles::kStages) {}
};

/// One thread: keeps the ring full, tile after tile.
template <class Tiles>
__device__ __forceinline__ void produce(const WgmmaProblem& p, const SharedPlaces<Tiles>& at,
                                        int first, int stride) {
  const TileOrder<Tiles> order(p);
  const int rank = Tiles::kCluster > 1 ? cluster_rank() : 0, steps = (p.k + 63) / 64;
  RingPlace<Tiles::kStages> ring;
  for (int tile = first; tile < order.tiles; tile += stride) {
    int row, column;
    order.place(tile, row, column);
    row = (row * Tiles::kCluster + rank) * Tiles::kM;
    column *= Tiles::kN;
    for (int step = 0; step < steps; ++step, ring.advance()) {
      const unsigned full = at.full + 8 * ring.stage;
      barrier_wait(at.empty + 8 * ring.stage, ring.parity ^ 1);
      barrier_expect(full, Tiles::kStageBytes);
      const unsigned to_a = at.a + ring.stage * Tiles::kBytesA;
      if constexpr (Tiles::kTransA) {
        tma_load(to_a, &p.a, row, step * 64, full);
        tma_load(to_a + Tiles::kBox, &p.a, row + 64, step * 64, full);
      } else {
        tma_load(to_a, &p.a, step * 64, row, full);
      }
      constexpr int kShare = Tiles::kN / Tiles::kCluster, kBoxes = kShare / 64;
      const unsigned to_b = at.b + ring.stage * Tiles::kBytesB + rank * kShare * 128;
      const int share = column + rank * kShare;
#pragma unroll
      for (int box = 0; box < (Tiles::kTransB ? 1 : kBoxes); ++box) {
        const int x = Tiles::kTransB ? step * 64 : share + box * 64;
        const int y = Tiles::kTransB ? share : step * 64;
        if constexpr (Tiles::kCluster > 1) {
          constexpr unsigned short kAll = (1 << Tiles::kCluster) - 1;
          tma_load_multicast(to_b + box * Tiles::kBox, &p.b, x, y, full, kAll);
        } else {
          tma_load(to_b + box * Tiles::kBox, &p.b, x, y, full);
        }
      }
    }
  }
}

/// Writes a warpgroup's 64 x BN sums. stmatrix stores 64 columns at a time to shared memory,
/// swizzled as TMA expects, without bank conflicts. TMA writes one piece while the next is stored.
template <class Tiles>
__device__ __forceinline__ void store_tile(const WgmmaProblem& p, const float (&sum)[Tiles::kN / 2],
                                           unsigned staging, int row, int column, int group,
                                           int& pieces) {
  const int thread = threadIdx.x % 128, lane = thread % 32;
  const unsigned line = thread / 32 * 16 + lane % 16;
#pragma unroll
  for (int piece = 0; piece < Tiles::kN / 64; ++piece, ++pieces) {
    const unsigned to = staging + (pieces & 1) * Tiles::kBox;
    if (thread == 0) tma_store_wait<1>();
    named_barrier(1 + group, 128);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      unsigned packed[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = piece * 32 + i * 8 + j * 2;
        const __nv_bfloat162 pair = __floats2bfloat162_rn(sum[at], sum[at + 1]);
        packed[j] = *reinterpret_cast<const unsigned*>(&pair);
      }
      const unsigned chunk = (i * 2 + lane / 16) ^ (line & 7);
      stmatrix_x4(to + line * 128 + chunk * 16, packed[0], packed[1], packed[2], packed[3]);
    }
    async_proxy_fence();
    named_barrier(1 + group, 128);
    if (thread == 0) {
      tma_store(&p.c, to, column + piece * 64, row);
      tma_store_commit();
    }
  }
}

/// One warpgroup: multiplies the stages of the ring. The products of one stage always run while
/// those of the next are queued; a stage is released when the products after it are queued.
template <class Tiles>
__device__ __forceinline__ void consume(const WgmmaProblem& p, const SharedPlaces<Tiles>& at,
                                        int first, int stride, int group) {
  const TileOrder<Tiles> order(p);
  const int rank = Tiles::kCluster > 1 ? cluster_rank() : 0, steps = (p.k + 63) / 64;
  const int lane = threadIdx.x % 32;
  const unsigned staging = at.c + group * Tiles::kStaging;
  const auto give_back = [&](int stage) {
    if (lane < Tiles::kCluster) barrier_arrive_cluster(at.empty + 8 * stage, lane);
  };
  RingPlace<Tiles::kStages> ring;
  int pieces = 0;
  for (int tile = first; tile < order.tiles; tile += stride) {
    int row, column;
    order.place(tile, row, column);
    float sum[Tiles::kN / 2];
    int previous = 0;
    for (int step = 0; step < steps; ++step, ring.advance()) {
      barrier_wait(at.full + 8 * ring.stage, ring.parity);
      const auto a =
          tile_descriptor<Tiles::kTransA>(at.a + ring.stage * Tiles::kBytesA + group * Tiles::kBox);
      const auto b = tile_descriptor<!Tiles::kTransB>(at.b + ring.stage * Tiles::kBytesB);
      pin(sum);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        Wgmma<Tiles::kN>::template run<Tiles::kTransA, !Tiles::kTransB>(
            sum, a + i * kDescriptorStep<Tiles::kTransA>, b + i * kDescriptorStep<!Tiles::kTransB>,
            step + i > 0);
      }
      wgmma_commit();
      pin(sum);
      wgmma_wait<1>();
      if (step > 0) give_back(previous);
      previous = ring.stage;
    }
    wgmma_wait<0>();
    pin(sum);
    give_back(previous);
    row = (row * Tiles::kCluster + rank) * Tiles::kM + group * 64;
    store_tile<Tiles>(p, sum, staging, row, column * Tiles::kN, group, pieces);
  }
  if (threadIdx.x % 128 == 0) tma_store_wait<0>();
}

template <class Tiles>
__global__ void __launch_bounds__(384, 1) __cluster_dims__(Tiles::kCluster, 1, 1)
    wgmma_kernel(const __grid_constant__ WgmmaProblem p) {
  extern __shared__ unsigned char shared[];
  const SharedPlaces<Tiles> at(shared);
  const int warpgroup = threadIdx.x / 128;
  const int first = blockIdx.x / Tiles::kCluster, stride = gridDim.x / Tiles::kCluster;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Tiles::kStages; ++i) {
      barrier_init(at.full + 8 * i, 1);
      barrier_init(at.empty + 8 * i, 8 * Tiles::kCluster);  // every multiplying warp, once
    }
    barrier_init_fence();
    prefetch_map(&p.a);
    prefetch_map(&p.b);
    prefetch_map(&p.c);
  }
  __syncthreads();
  if constexpr (Tiles::kCluster > 1) cluster_sync();

  if (warpgroup == 0) {
    registers_fewer<40>();
    if (threadIdx.x == 0) produce<Tiles>(p, at, first, stride);
    __syncwarp();
  } else {
    registers_more<232>();
    consume<Tiles>(p, at, first, stride, warpgroup - 1);
  }
  // No block may end while another block of the cluster may still write to its shared memory.
  if constexpr (Tiles::kCluster > 1) cluster_sync();
}

}  // namespace lab
