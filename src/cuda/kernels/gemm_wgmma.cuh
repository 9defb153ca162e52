// Large matrix products on Hopper (sm_90a): C(m, n) = sum over k of A(m, k) * B(k, n), TMA and
// wgmma, the result to the epilogue only.
//
// Operands: bfloat16 or float16, each with k contiguous or with k across its lines, lines a
// multiple of 16 bytes apart, addresses multiples of 16; any m, n, k (outside counts as zero).
// Float32 sums. The bits of a result depend on sizes alone: one block sums a tile in the order of
// k. Bound: arithmetic; lab/matmul measures the same pipeline beside cuBLAS.
//
// One thread of the first warpgroup fills a ring of stages, tile after tile. The two others take
// tiles in turn: while one writes its sums, the other multiplies. Order comes from the ring alone:
// the stages of a tile follow those of the tile before. The two blocks of a cluster lie one above
// the other, need the same columns of B, and each brings half of them to both.
#pragma once

#include "cuda/kernels/gemm_wgmma_args.cuh"
#include "cuda/kernels/intrinsics_hopper.cuh"

namespace tenon::cuda {

/// C has kCluster (1 or 2), kHalf (float16), kAcrossA, kAcrossB, kStoreVector (4 or 1). E: the
/// epilogue.
template <class C, class E>
class WgmmaBlock {
  static constexpr int kTile = kWgmmaTile, kDepth = kWgmmaDepth, kStages = kWgmmaStages;
  static constexpr int kBox = 64 * 128, kTileBytes = kWgmmaStageBytes / 2;

 public:
  TENON_DEVICE WgmmaBlock(const WgmmaProblem& p, const E& epilogue, unsigned char* shared)
      : p_(p),
        epilogue_(epilogue),
        a_((shared_address(shared) + 1023) & ~1023u),
        b_(a_ + kStages * kTileBytes),
        full_(b_ + kStages * kTileBytes),
        empty_(full_ + 8 * kStages),
        staging_(
            reinterpret_cast<float*>(shared + (empty_ + 8 * kStages - shared_address(shared)))),
        rank_(C::kCluster > 1 ? static_cast<int>(cluster_rank()) : 0),
        first_(static_cast<int>(blockIdx.x) / C::kCluster),
        stride_(static_cast<int>(gridDim.x) / C::kCluster) {}

  TENON_DEVICE void run() {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) {
        barrier_init(full_ + 8 * i, 1);
        barrier_init(empty_ + 8 * i, 4 * C::kCluster);  // every warp that reads the stage
      }
      barrier_init_fence();
      prefetch_map(&p_.a);
      prefetch_map(&p_.b);
    }
    __syncthreads();
    if constexpr (C::kCluster > 1) cluster_sync();
    if (threadIdx.x < 128) {
      registers_fewer<40>();
      if (threadIdx.x == 0) produce();
      __syncwarp();
    } else {
      registers_more<232>();
      consume(static_cast<int>(threadIdx.x) / 128 - 1);
    }
    // Nobody leaves while a neighbour may still write to its shared memory.
    if constexpr (C::kCluster > 1) cluster_sync();
  }

 private:
  /// A place in the ring; the parity flips each time round.
  struct Place {
    int stage = 0;
    unsigned parity = 0;
    TENON_DEVICE void advance(int steps) {
      stage += steps;
      const int rounds = stage / kStages;
      stage -= rounds * kStages;
      parity ^= rounds & 1;
    }
  };

  /// First row and column of the block's part of a cluster's tile.
  TENON_DEVICE void locate(int tile, int& m, int& n) const {
    const int top = tile / (p_.band * p_.columns) * p_.band;
    const int height = p_.rows - top < p_.band ? p_.rows - top : p_.band;
    const int rest = tile - top * p_.columns;
    m = ((top + rest % height) * C::kCluster + rank_) * kTile;
    n = rest / height * kTile;
  }

  TENON_DEVICE void produce() const {
    Place at;
    for (int tile = first_; tile < p_.rows * p_.columns; tile += stride_) {
      int m, n;
      locate(tile, m, n);
      for (int step = 0; step < p_.steps; ++step, at.advance(1)) {
        const unsigned full = full_ + 8 * at.stage;
        barrier_wait(empty_ + 8 * at.stage, at.parity ^ 1);
        barrier_expect(full, kWgmmaStageBytes);
        const int k = step * kDepth;
        const unsigned a = a_ + at.stage * kTileBytes, b = b_ + at.stage * kTileBytes;
        if constexpr (C::kAcrossA) {
          tma_load(a, &p_.a, m, k, full);
          tma_load(a + kBox, &p_.a, m + 64, k, full);
        } else {
          tma_load(a, &p_.a, k, m, full);
        }
        if constexpr (C::kCluster > 1) {
          const int share = n + rank_ * 64;
          tma_load_multicast(b + rank_ * kBox, &p_.b, C::kAcrossB ? share : k,
                             C::kAcrossB ? k : share, full, 3);
        } else if constexpr (C::kAcrossB) {
          tma_load(b, &p_.b, n, k, full);
          tma_load(b + kBox, &p_.b, n + 64, k, full);
        } else {
          tma_load(b, &p_.b, k, n, full);
        }
      }
    }
  }

  /// Every second tile, and of it 128 rows as two products of 64.
  TENON_DEVICE void consume(int group) {
    Place at;
    if (group == 1) at.advance(p_.steps);
    for (int tile = first_ + group * stride_; tile < p_.rows * p_.columns; tile += 2 * stride_) {
      float sums[2][64];
      int previous = 0;
      for (int step = 0; step < p_.steps; ++step, at.advance(1)) {
        barrier_wait(full_ + 8 * at.stage, at.parity);
        const auto a = tile_descriptor<C::kAcrossA>(a_ + at.stage * kTileBytes);
        const auto b = tile_descriptor<C::kAcrossB>(b_ + at.stage * kTileBytes);
        pin(sums[0]);
        pin(sums[1]);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < kDepth / 16; ++i)
#pragma unroll
          for (int half = 0; half < 2; ++half)
            wgmma_m64n128k16<C::kHalf, C::kAcrossA, C::kAcrossB>(
                sums[half], a + half * (kBox >> 4) + i * kDescriptorStep<C::kAcrossA>,
                b + i * kDescriptorStep<C::kAcrossB>, step + i);
        wgmma_commit();
        pin(sums[0]);
        pin(sums[1]);
        wgmma_wait<1>();  // of the stage before: it may be filled again
        if (step > 0) give_back(previous);
        previous = at.stage;
      }
      wgmma_wait<0>();
      pin(sums[0]);
      pin(sums[1]);
      give_back(previous);
      at.advance(p_.steps);  // over the other warpgroup's tile
      write(sums, tile);
    }
  }

  TENON_DEVICE void give_back(int stage) const {
    if (threadIdx.x % 32 < C::kCluster) barrier_arrive(empty_ + 8 * stage, threadIdx.x % 32);
  }

  /// Sixteen rows of the warp at a time go through shared memory, where they are placed so that
  /// neither the writes (four rows, two chunks of 16 bytes each) nor the reads (a row) collide.
  TENON_DEVICE void write(const float (&sums)[2][64], int tile) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    float* place = staging_ + (warp - 4) * (kWgmmaStagingBytes / 4);
    int m, n;
    locate(tile, m, n);
    const int column = n + lane * 4;
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      if (half == 0)
        stage(sums[0], place, lane);
      else
        stage(sums[1], place, lane);
      __syncwarp();
      const int row0 = m + half * 64 + warp % 4 * 16;
#pragma unroll 1
      for (int r = 0; r < 16 && row0 + r < p_.m; ++r) {
        const float* from = place + r * kTile + ((lane ^ (r & 3) << 1) << 2);
        float x[4];
        *reinterpret_cast<float4*>(x) = *reinterpret_cast<const float4*>(from);
        if constexpr (C::kStoreVector == 4) {
          if (column < p_.n) epilogue_.store_row(0, row0 + r, column, x);
        } else {
#pragma unroll 1
          for (int v = 0; v < 4; ++v)
            if (column + v < p_.n) epilogue_.store(0, row0 + r, column + v, from[v]);
        }
      }
      __syncwarp();
    }
  }

  static TENON_DEVICE void stage(const float (&sums)[64], float* place, int lane) {
    const int row = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      float* to = place + row * kTile + (((2 * j + t / 2) ^ (row & 3) << 1) << 2) + t % 2 * 2;
      *reinterpret_cast<float2*>(to) = make_float2(sums[4 * j], sums[4 * j + 1]);
      *reinterpret_cast<float2*>(to + 8 * kTile) = make_float2(sums[4 * j + 2], sums[4 * j + 3]);
    }
  }

  const WgmmaProblem& p_;
  const E& epilogue_;
  const unsigned a_, b_, full_, empty_;
  float* const staging_;
  const int rank_, first_, stride_;
};

}  // namespace tenon::cuda
