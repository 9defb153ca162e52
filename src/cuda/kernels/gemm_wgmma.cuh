// Large matrix products on Hopper (sm_90a): C(m, n) = sum over k of A(m, k) * B(k, n), TMA and
// wgmma, the result to the epilogue only.
//
// Operands: bfloat16 or float16, each with k contiguous or with k across its lines, lines a
// multiple of 16 bytes apart, addresses multiples of 16; any m, n, k (outside counts as zero).
// Float32 sums. The bits of a result depend on sizes alone: one block sums a tile in the order of
// k. Bound: arithmetic; lab/matmul measures the same pipeline beside cuBLAS.
//
// One thread of the first warpgroup fills a ring of stages, tile after tile. The two others take
// tiles in turn: while one writes its sums, the other multiplies. Where every block has one tile
// only, they share it, 64 rows each. The two blocks of a cluster lie one above the other, need the
// same columns of B, and each brings half of them to both.
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/gemm_wgmma_args.cuh"
#include "cuda/kernels/intrinsics_hopper.cuh"

namespace tenon::cuda {

/// C has kTurns, kCluster (1 or 2), kHalf (float16), kAcrossA, kAcrossB, kBatches, kStoreVector (4
/// or 1). E: the epilogue (engines/print_map.h).
template <class C, class E>
class WgmmaBlock {
  static constexpr int kTile = kWgmmaTile, kDepth = kWgmmaDepth, kStages = kWgmmaStages;
  static constexpr int kBox = 64 * 128, kTileBytes = kWgmmaStageBytes / 2;
  static constexpr int kVector = C::kStoreVector;
  static constexpr int kHalves = C::kTurns ? 2 : 1;  // of a tile's rows, for one warpgroup

 public:
  TENON_DEVICE WgmmaBlock(const WgmmaProblem& p, const E& epilogue, unsigned char* shared)
      : p_(p),
        epilogue_(epilogue),
        a_((shared_address(shared) + 1023) & ~1023u),
        b_(a_ + kStages * kTileBytes),
        full_(b_ + kStages * kTileBytes),
        empty_(full_ + 8 * kStages),
        turn_(empty_ + 8 * kStages),
        staging_(reinterpret_cast<float*>(shared + (turn_ + 16 - shared_address(shared)))),
        rank_(C::kCluster > 1 ? static_cast<int>(cluster_rank()) : 0),
        first_(static_cast<int>(blockIdx.x) / C::kCluster),
        stride_(static_cast<int>(gridDim.x) / C::kCluster) {}

  TENON_DEVICE void run() {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) {
        barrier_init(full_ + 8 * i, 1);
        barrier_init(empty_ + 8 * i, 8 / kHalves * C::kCluster);  // every warp that reads it
      }
      barrier_init(turn_, 1);
      barrier_init(turn_ + 8, 1);
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

  /// A parity cannot tell a phase from the one after the next: the warpgroups hand each other the
  /// turn to wait for stages, when the last stage of a tile has come.
  TENON_DEVICE void consume(int group) {
    const int stride = C::kTurns ? 2 * stride_ : stride_;
    Place at;
    if (C::kTurns && group == 1) at.advance(p_.steps);
    unsigned turn = group ^ 1;  // parity of the other's last turn; its first one counts as taken
    for (int tile = C::kTurns ? first_ + group * stride_ : first_; tile < p_.rows * p_.columns;
         tile += stride) {
      if (C::kTurns) barrier_wait(turn_ + 8 * group, turn);
      turn ^= 1;
      float sums[kHalves][64];
      int previous = 0;
      for (int step = 0; step < p_.steps; ++step, at.advance(1)) {
        barrier_wait(full_ + 8 * at.stage, at.parity);
        const unsigned row = C::kTurns ? 0 : group * kBox;
        const auto a = tile_descriptor<C::kAcrossA>(a_ + at.stage * kTileBytes + row);
        const auto b = tile_descriptor<C::kAcrossB>(b_ + at.stage * kTileBytes);
        pin_all(sums);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < kDepth / 16; ++i)
#pragma unroll
          for (int half = 0; half < kHalves; ++half)
            wgmma_m64n128k16<C::kHalf, C::kAcrossA, C::kAcrossB>(
                sums[half], a + half * (kBox >> 4) + i * kDescriptorStep<C::kAcrossA>,
                b + i * kDescriptorStep<C::kAcrossB>, step + i);
        wgmma_commit();
        pin_all(sums);
        wgmma_wait<1>();  // of the stage before: it may be filled again
        if (step > 0) give_back(previous);
        previous = at.stage;
      }
      if (C::kTurns && threadIdx.x % 128 == 0) barrier_arrive(turn_ + 8 * (group ^ 1), rank_);
      wgmma_wait<0>();
      pin_all(sums);
      give_back(previous);
      if (C::kTurns) at.advance(p_.steps);  // over the other warpgroup's tile
      write(sums, tile, group);
    }
  }

  static TENON_DEVICE void pin_all(float (&sums)[kHalves][64]) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) pin(sums[half]);
  }

  TENON_DEVICE void give_back(int stage) const {
    if (threadIdx.x % 32 < C::kCluster) barrier_arrive(empty_ + 8 * stage, threadIdx.x % 32);
  }

  /// Sixteen rows of the warp at a time go through shared memory, where they are placed so that
  /// neither the writes (four rows, two chunks of 16 bytes each) nor the reads (a row) collide.
  TENON_DEVICE void write(const float (&sums)[kHalves][64], int tile, int group) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    float* place = staging_ + (warp - 4) * (kWgmmaStagingBytes / 4);
    int m, n;
    locate(tile, m, n);
    const int column = n + lane * 4;
#pragma unroll 1
    for (int half = 0; half < kHalves; ++half) {
      if (half == 0)
        stage(sums[0], place, lane);
      else
        stage(sums[kHalves - 1], place, lane);
      __syncwarp();
      const int row0 = m + (C::kTurns ? half : group) * 64 + warp % 4 * 16;
      const int rows = static_cast<int>(p_.m) - row0 < 16 ? static_cast<int>(p_.m) - row0 : 16;
#pragma unroll 1
      for (int r = 0; r < rows; r += kVector) apply(place, r, rows, row0, column);
      __syncwarp();
    }
  }

  /// The epilogue of four neighbours in each of four rows, or of four results of one row: what it
  /// reads for all of them is asked for before the first is computed.
  TENON_DEVICE void apply(const float* place, int r, int rows, int row0, int column) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    typename E::template Held<kVector> held[4];
    unsigned batch[4], row[4];
    bool inside[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int down = kVector == 4 ? u : 0, right = kVector == 4 ? 0 : u;
      inside[u] = r + down < rows && column + right < p_.n;
      row[u] = static_cast<unsigned>(row0 + r + down);
      batch[u] = C::kBatches ? split<false>(row[u], p_.batch_rows) : 0;
      if (inside[u]) held[u] = epilogue_.template hold<kVector>(batch[u], row[u], column + right);
    }
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int down = kVector == 4 ? u : 0, right = kVector == 4 ? 0 : u;
      const float* from =
          place + (r + down) * kTile + ((lane ^ ((r + down) & 3) << 1) << 2) + right;
      float x[kVector];
      if constexpr (kVector == 4)
        *reinterpret_cast<float4*>(x) = *reinterpret_cast<const float4*>(from);
      else
        x[0] = *from;
      if (inside[u])
        epilogue_.template finish<kVector>(batch[u], row[u], column + right, x, held[u]);
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
  const unsigned a_, b_, full_, empty_, turn_;
  float* const staging_;
  const int rank_, first_, stride_;
};

}  // namespace tenon::cuda
