// Large float32 matrix products by fused multiply-adds, without tensor cores: C(m, n) = sum over k
// of A(m, k) * B(k, n). The result goes to the epilogue only, which overwrites its outputs.
//
// Operands: float32 matrices that are contiguous along m and along n, as in a linear layer's weight
// gradient. Line lengths and pitches are multiples of 16 bytes, addresses are multiples of 16; any
// k, n a multiple of 4. Sums are in the order of k. Where blocks share a tile's k, each leaves its
// sums in the workspace, and the last to finish adds them in the order of k, so the bits depend on
// sizes alone.
//
// Lines are copied asynchronously, kStages deep, as [k][outer], so a thread reads its rows and its
// columns of one k as 16-byte vectors. A thread has 8 x 8 sums, which leaves registers for 16
// warps. Bound by issue slots, a tenth of which goes to loads, and by the register file's ports. On
// an H200: 48 TFLOP/s with a momentum update in the epilogue; cuBLASLt and a separate update kernel
// reach 45.
#pragma once

#include "cuda/kernels/gemm/gemm_simt_args.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "scalar/config.h"

namespace tenon::cuda {

template <int N>
struct alignas(4 * N) Floats {
  float v[N];
};
using Float4 = Floats<4>;

TENON_DEVICE Float4 four(const float* from) { return *reinterpret_cast<const Float4*>(from); }

/// A block's tiles of an operand. Beyond a line's end the line's last elements are repeated; their
/// results are not stored.
template <int kOuter, int kDepth, int kThreads>
class LineStage {
 public:
  TENON_DEVICE LineStage(const SimtOperand& o, int outer0, int k0, int k_end)
      : left_(k_end - k0 - down()), pitch_(o.pitch) {
    const int outer = outer0 + across(), last = o.line - 4;
    from_ = o.data + (outer < last ? outer : last) + (k0 + down()) * pitch_;
  }
  /// Starts the copies of the next tile.
  TENON_DEVICE void copy(float* tile) {
#pragma unroll
    for (int i = 0; i < kDepth / kStep; ++i)
      copy_async_16(tile + (down() + i * kStep) * kOuter + across(), from_ + i * kStep * pitch_,
                    left_ > i * kStep);
    from_ += kDepth * pitch_;
    left_ -= kDepth;
  }

 private:
  static constexpr int kAcross = kOuter / 4, kStep = kThreads / kAcross;
  static_assert(kThreads % kAcross == 0 && kDepth % kStep == 0, "every thread copies as much");
  static TENON_DEVICE int across() { return static_cast<int>(threadIdx.x) % kAcross * 4; }
  static TENON_DEVICE int down() { return static_cast<int>(threadIdx.x) / kAcross; }

  const float* from_;
  int left_, pitch_;
};

/// The sums of a block's tile.
template <class C>
class SimtTile {
  using StageA = LineStage<C::kM, C::kK, C::kThreads>;
  using StageB = LineStage<C::kN, C::kK, C::kThreads>;
  // Sides of the part of a thread and of a warp; 8 threads along m and 4 along n. A thread has four
  // rows and four columns in each half of its warp's part.
  static constexpr int kSide = 8, kWarpM = 8 * kSide, kWarpN = 4 * kSide, kWarps = C::kN / kWarpN;
  static constexpr int kTileA = C::kM * C::kK, kTile = kTileA + C::kN * C::kK;
  static_assert(C::kM * C::kN == C::kThreads * kSide * kSide && C::kM % kWarpM == 0 &&
                    C::kN % kWarpN == 0,
                "whole warps");

 public:
  static constexpr int kRingBytes = C::kStages * kTile * 4;
  static constexpr int kPitch = C::kN + 8;  // row pitch of write()

  TENON_DEVICE SimtTile() {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    m_ = warp / kWarps * kWarpM + lane / 4 * 4;
    n_ = warp % kWarps * kWarpN + lane % 4 * 4;
  }

  /// Accumulates k from k0 to k_end of the tile at (m0, n0).
  TENON_DEVICE void accumulate(const SimtProblem& p, int m0, int n0, int k0, int k_end,
                               float* ring) {
    StageA stage_a(p.a, m0, k0, k_end);
    StageB stage_b(p.b, n0, k0, k_end);
    const int tiles = k_end > k0 ? (k_end - k0 + C::kK - 1) / C::kK : 0;
    float* const end = ring + C::kStages * kTile;
    float *now = ring, *ahead = ring;
    const auto fill = [&](int tile) {
      if (tile < tiles) {
        stage_a.copy(ahead);
        stage_b.copy(ahead + kTileA);
        ahead = ahead + kTile == end ? ring : ahead + kTile;
      }
      copy_async_commit();
    };
#pragma unroll 1
    for (int tile = 0; tile < C::kStages - 1; ++tile) fill(tile);
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
      copy_async_wait<C::kStages - 2>();
      __syncthreads();  // also: no thread reads the stage that is filled next
      fill(tile + C::kStages - 1);
      const float *a = now + m_, *b = now + kTileA + n_;
#pragma unroll
      for (int k = 0; k < C::kK; ++k) multiply(a + k * C::kM, b + k * C::kN);
      now = now + kTile == end ? ring : now + kTile;
    }
    copy_async_wait<0>();
    __syncthreads();
  }

  /// Stores the sums as [m][kPitch].
  TENON_DEVICE void write(float* tile) const {
#pragma unroll
    for (int m = 0; m < kSide; ++m)
#pragma unroll
      for (int n = 0; n < kSide; n += 4)
        *reinterpret_cast<Float4*>(tile + (m_ + m / 4 * 32 + m % 4) * kPitch + n_ + n * 4) =
            Float4{{sums_[m][n], sums_[m][n + 1], sums_[m][n + 2], sums_[m][n + 3]}};
  }

 private:
  TENON_DEVICE void multiply(const float* from_a, const float* from_b) {
    const Float4 a[2] = {four(from_a), four(from_a + 32)};
    const Float4 b[2] = {four(from_b), four(from_b + 16)};
#pragma unroll
    for (int m = 0; m < kSide; ++m)
#pragma unroll
      for (int n = 0; n < kSide; ++n)
        sums_[m][n] = scalar::fused(a[m / 4].v[m % 4], b[n / 4].v[n % 4], sums_[m][n]);
  }

  int m_, n_;
  float sums_[kSide][kSide] = {};
};

/// C has kM, kN, kK (of a tile and a stage), kThreads, kStages, kSplit. E: the epilogue
/// (engines/maps/print_map.h).
template <class C, class E>
class SimtBlock {
  using Tile = SimtTile<C>;
  static constexpr int kRow = C::kN / 4, kItems = C::kM * kRow;  // an item: four neighbours
  static constexpr int kAtOnce = 4;  // number of a thread's items whose epilogues overlap
  static_assert(kItems % (C::kThreads * kAtOnce) == 0, "every thread has as many");
  static constexpr int kSumBytes = C::kM * Tile::kPitch * 4;
  static constexpr int kFloatBytes = Tile::kRingBytes > kSumBytes ? Tile::kRingBytes : kSumBytes;

 public:
  static constexpr int kSharedBytes = kFloatBytes + 16;

  TENON_DEVICE SimtBlock(const SimtProblem& p, const E& epilogue, unsigned char* shared)
      : p_(p),
        epilogue_(epilogue),
        sums_(reinterpret_cast<float*>(shared)),
        flag_(reinterpret_cast<unsigned*>(shared + kFloatBytes)) {
    // Blocks that run at the same time share rows of A and columns of B in the L2 cache.
    const int width = 8 * p.tiles_n, tile = static_cast<int>(blockIdx.x), first = tile / width * 8;
    const int rows = p.tiles_m - first < 8 ? p.tiles_m - first : 8;
    m0_ = (first + tile % width % rows) * C::kM;
    n0_ = tile % width / rows * C::kN;
  }

  TENON_DEVICE void run(unsigned* tickets) {
    const int k0 = C::kSplit ? static_cast<int>(blockIdx.y) * p_.k_per_split : 0;
    const int k_end = !C::kSplit || p_.k - k0 < p_.k_per_split ? p_.k : k0 + p_.k_per_split;
    Tile tile;
    tile.accumulate(p_, m0_, n0_, k0, k_end, sums_);
    tile.write(sums_);
    __syncthreads();
    if constexpr (C::kSplit) {
      leave_partial();
      if (!is_last(tickets)) return;
    }
    finish();
    if constexpr (E::kSums) epilogue_.template end_block<C::kThreads>(gathered_);
  }

 private:
  /// The position of an item and the values that the epilogue has loaded there.
  struct Spot {
    bool inside;
    int row, column;
    typename E::template Held<4> held;
  };

  TENON_DEVICE Spot spot(int item) const {
    Spot s;
    s.row = m0_ + item / kRow;
    s.column = n0_ + item % kRow * 4;
    s.inside = s.row < p_.m && s.column < p_.n;
    if (s.inside) s.held = epilogue_.template hold<4>(0, s.row, s.column);
    return s;
  }

  TENON_DEVICE void finish() {
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x); first < kItems;
         first += C::kThreads * kAtOnce) {
      Spot spots[kAtOnce];
      Float4 x[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) spots[u] = spot(first + u * C::kThreads);
      if constexpr (C::kSplit) {
        add_partials(spots, first, x);
      } else {
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) x[u] = four(place(first + u * C::kThreads));
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        if (spots[u].inside)
          epilogue_.template finish<4>(0, spots[u].row, spots[u].column, x[u].v, spots[u].held,
                                       gathered_);
    }
  }

  TENON_DEVICE float* place(int item) const {
    return sums_ + item / kRow * Tile::kPitch + item % kRow * 4;
  }
  TENON_DEVICE float* partial(int index) const {
    return p_.partials + (static_cast<long long>(blockIdx.x) * p_.splits + index) * (C::kM * C::kN);
  }

  TENON_DEVICE void leave_partial() const {
    float* to = partial(static_cast<int>(blockIdx.y));
    for (int i = static_cast<int>(threadIdx.x); i < kItems; i += C::kThreads)
      *reinterpret_cast<Float4*>(to + i * 4) = four(place(i));
  }
  /// Adds the partial sums in the order of k.
  TENON_DEVICE void add_partials(const Spot (&spots)[kAtOnce], int first,
                                 Float4 (&x)[kAtOnce]) const {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) x[u] = Float4{};
#pragma unroll 2
    for (int s = 0; s < p_.splits; ++s)
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (!spots[u].inside) continue;
        const Float4 more = four(partial(s) + (first + u * C::kThreads) * 4);
#pragma unroll
        for (int v = 0; v < 4; ++v) x[u].v[v] += more.v[v];
      }
  }

  /// True if all other blocks of this tile have left their sums.
  TENON_DEVICE bool is_last(unsigned* tickets) const {
    unsigned* counter = tickets + p_.ticket + blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
      *flag_ = take_ticket(counter);
      // Reset for the next launch.
      if (*flag_ + 1 == static_cast<unsigned>(p_.splits)) *counter = 0;
    }
    __syncthreads();
    return *flag_ + 1 == static_cast<unsigned>(p_.splits);
  }

  const SimtProblem& p_;
  const E& epilogue_;
  float* sums_;
  unsigned* flag_;
  typename E::Sums gathered_ = E::no_sums();
  int m0_, n0_;
};

}  // namespace tenon::cuda
