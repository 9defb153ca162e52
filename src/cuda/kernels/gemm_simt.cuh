// Large matrix products in float32 by fused multiply-adds, without tensor cores: C(m, n) = sum over
// k of A(m, k) * B(k, n), the result to the epilogue only.
//
// Operands: float32 matrices whose lines are contiguous along one axis and multiples of 16 bytes
// long and apart, addresses multiples of 16; any m, n, k that this leaves. Sums are in the order of
// k; where blocks share a tile's k, each leaves its sums in the workspace, and the last to finish
// adds them up in that order, so the bits depend on sizes alone.
//
// In shared memory both operands lie as [k][outer], so that a thread reads its rows and its columns
// of one k as 16-byte vectors. Lines that lie so in memory are copied asynchronously; those
// contiguous along k pass through registers as squares of 4 x 4. A thread has kThreadM x kThreadN
// sums, and the factors of the next k under way. Bound: issue slots and the register file's two
// ports, which a multiply-add takes both when it shares one factor with the one before. On an H200,
// whose measured peak is 62 TFLOP/s: see docs/performance.md.
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/gemm_simt_args.cuh"
#include "cuda/kernels/intrinsics.cuh"
#include "scalar/config.h"

namespace tenon::cuda {

template <int N>
struct alignas(4 * N) Floats {
  float v[N];
};

template <int N>
TENON_DEVICE Floats<N> floats(const float* from) {
  return *reinterpret_cast<const Floats<N>*>(from);
}

/// A block's tiles of an operand whose lines lie along the outer axis in memory too. Past the last
/// line's end the last elements are repeated: their results are nowhere stored.
template <int kOuter, int kDepth, int kThreads>
class LineStage {
 public:
  TENON_DEVICE LineStage(const SimtOperand& o, int outer0, int outer_end, int k0, int k_end)
      : left_(k_end - k0 - down()), pitch_(o.pitch) {
    const int outer = outer0 + across(), last = outer_end - 4;
    from_ = o.data + (outer < last ? outer : last) + (k0 + down()) * pitch_;
  }
  /// Starts the copies of the next tile.
  TENON_DEVICE void begin(float* tile) {
#pragma unroll
    for (int i = 0; i < kDepth / kStep; ++i)
      copy_async_16(tile + (down() + i * kStep) * kOuter + across(), from_ + i * kStep * pitch_,
                    left_ > i * kStep);
    from_ += kDepth * pitch_;
    left_ -= kDepth;
  }
  TENON_DEVICE void end(float*) {}

 private:
  static constexpr int kAcross = kOuter / 4, kStep = kThreads / kAcross;
  static_assert(kThreads % kAcross == 0 && kDepth % kStep == 0, "every thread copies as much");
  static TENON_DEVICE int across() { return static_cast<int>(threadIdx.x) % kAcross * 4; }
  static TENON_DEVICE int down() { return static_cast<int>(threadIdx.x) / kAcross; }

  const float* from_;
  int left_, pitch_;
};

/// Tiles of one whose lines lie along k in memory: begin() reads squares, end() stores them turned.
template <int kOuter, int kDepth, int kThreads>
class TurnStage {
 public:
  TENON_DEVICE TurnStage(const SimtOperand& o, int outer0, int outer_end, int k0, int k_end)
      : from_(o.data + k0 + first_k()), left_(k_end - k0 - first_k()) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int line = outer0 + row(i) + r, last = outer_end - 1;
        offset_[i][r] = (line < last ? line : last) * o.pitch;
      }
  }
  TENON_DEVICE void begin(float*) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        held_[i][r] = Floats<4>{};
        if (left_ > 0) held_[i][r] = floats<4>(from_ + offset_[i][r]);
      }
    from_ += kDepth;
    left_ -= kDepth;
  }
  TENON_DEVICE void end(float* tile) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
#pragma unroll
      for (int k = 0; k < 4; ++k)
        *reinterpret_cast<Floats<4>*>(tile + (first_k() + k) * kOuter + row(i)) =
            Floats<4>{{held_[i][0].v[k], held_[i][1].v[k], held_[i][2].v[k], held_[i][3].v[k]}};
  }

 private:
  // Eight threads store 32 neighbours of one k: no bank conflicts.
  static constexpr int kAlong = kDepth / 4, kCount = kOuter * kAlong / 4 / kThreads;
  static constexpr int kRows = kThreads / kAlong * 4;  // of all threads together
  static_assert(kCount * kRows == kOuter && kRows % 32 == 0, "every thread turns as much");
  static TENON_DEVICE int first_k() { return static_cast<int>(threadIdx.x) / 8 % kAlong * 4; }
  static TENON_DEVICE int row(int i) {
    const int t = static_cast<int>(threadIdx.x);
    return (t % 8 + t / (8 * kAlong) * 8) * 4 + i * kRows;
  }

  const float* from_;
  int left_, offset_[kCount][4];
  Floats<4> held_[kCount][4];
};

template <bool along_k, int kOuter, int kDepth, int kThreads>
struct StageOf {
  using type = LineStage<kOuter, kDepth, kThreads>;
};
template <int kOuter, int kDepth, int kThreads>
struct StageOf<true, kOuter, kDepth, kThreads> {
  using type = TurnStage<kOuter, kDepth, kThreads>;
};

/// The sums of a block's tile.
template <class C>
class SimtTile {
  using StageA = typename StageOf<C::kAlongA, C::kM, C::kK, C::kThreads>::type;
  using StageB = typename StageOf<C::kAlongB, C::kN, C::kK, C::kThreads>::type;
  static constexpr int kThreadM = C::kThreadM, kThreadN = C::kThreadN, kDepth = C::kK;
  // A warp's threads: 8 along m, 4 along n, ordered so that neighbours share addresses. A thread
  // has every eighth (fourth) group of four rows (columns) of its warp.
  static constexpr int kWarpM = 8 * kThreadM, kWarpN = 4 * kThreadN, kWarps = C::kN / kWarpN;
  // Steps of k written out: more gain nothing and take longer to compile.
  static constexpr int kTurn = 8;
  static constexpr int kTileA = C::kM * kDepth, kTile = kTileA + C::kN * kDepth;
  static_assert(kDepth % kTurn == 0 && C::kM / kThreadM * (C::kN / kThreadN) == C::kThreads &&
                    C::kM % kWarpM == 0 && C::kN % kWarpN == 0,
                "whole warps");

 public:
  static constexpr int kRingBytes = C::kStages * kTile * 4;
  static constexpr int kPitch = C::kN + 8;  // of write()

  TENON_DEVICE SimtTile() {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    m_ = warp / kWarps * kWarpM + lane / 2 % 8 * 4;
    n_ = warp % kWarps * kWarpN + (lane % 2 + lane / 16 * 2) * 4;
  }

  /// Adds up k from k0 to k_end of the tile at (m0, n0).
  TENON_DEVICE void accumulate(const SimtProblem& p, int m0, int n0, int k0, int k_end,
                               float* ring) {
    StageA stage_a(p.a, m0, p.m, k0, k_end);
    StageB stage_b(p.b, n0, p.n, k0, k_end);
    const int tiles = k_end > k0 ? (k_end - k0 + kDepth - 1) / kDepth : 0;
    float* const end = ring + C::kStages * kTile;
    float *now = ring, *ahead = ring;
#pragma unroll 1
    for (int i = 0; i < C::kStages - 1; ++i, ahead += kTile) {
      if (i < tiles) {
        stage_a.begin(ahead);
        stage_b.begin(ahead + kTileA);
        stage_a.end(ahead);
        stage_b.end(ahead + kTileA);
      }
      copy_async_commit();
    }
    copy_async_wait<C::kStages - 2>();
    __syncthreads();
    float a[2][kThreadM], b[2][kThreadN];
    const float *from_a = now + m_, *from_b = now + kTileA + n_;
    fetch(a[0], b[0], from_a, from_b, 0);
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
      const bool more = tile + C::kStages - 1 < tiles;
      if (more) {
        stage_a.begin(ahead);
        stage_b.begin(ahead + kTileA);
      }
      copy_async_commit();
#pragma unroll 1
      for (int first = 0; first < kDepth; first += kTurn) {
#pragma unroll
        for (int k = 0; k < kTurn; ++k) {
          if (k + 1 == kTurn && first + kTurn == kDepth) {
            if (more) {
              stage_a.end(ahead);
              stage_b.end(ahead + kTileA);
            }
            now = now + kTile == end ? ring : now + kTile;
            from_a = now + m_ - kTurn * C::kM, from_b = now + kTileA + n_ - kTurn * C::kN;
            copy_async_wait<C::kStages - 2>();
            __syncthreads();  // also: everybody has read the tile that is overwritten next
          }
          fetch(a[(k + 1) % 2], b[(k + 1) % 2], from_a, from_b, k + 1);
          multiply(a[k % 2], b[k % 2]);
        }
        from_a += kTurn * C::kM, from_b += kTurn * C::kN;
      }
      ahead = ahead + kTile == end ? ring : ahead + kTile;
    }
    copy_async_wait<0>();
    __syncthreads();
  }

  /// The sums as [m][kPitch].
  TENON_DEVICE void write(float* tile) const {
#pragma unroll
    for (int m = 0; m < kThreadM; ++m)
#pragma unroll
      for (int n = 0; n < kThreadN; n += 4)
        *reinterpret_cast<Floats<4>*>(tile + (m_ + m / 4 * 32 + m % 4) * kPitch + n_ + n / 4 * 16) =
            Floats<4>{{sums_[m][n], sums_[m][n + 1], sums_[m][n + 2], sums_[m][n + 3]}};
  }

 private:
  /// The thread's factors of the k'th k from where these of the first stand.
  static TENON_DEVICE void fetch(float (&a)[kThreadM], float (&b)[kThreadN], const float* from_a,
                                 const float* from_b, int k) {
    fetch_side<32>(a, from_a + k * C::kM);
    fetch_side<16>(b, from_b + k * C::kN);
  }
  template <int step, int count>
  static TENON_DEVICE void fetch_side(float (&factors)[count], const float* from) {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const Floats<4> x = floats<4>(from + i / 4 * step);
#pragma unroll
      for (int e = 0; e < 4; ++e) factors[i + e] = x.v[e];
    }
  }

  /// To and fro along the rows, so that one factor is always the one before's, and sum and other
  /// factor come from either bank in turn.
  TENON_DEVICE void multiply(const float (&a)[kThreadM], const float (&b)[kThreadN]) {
#pragma unroll
    for (int i = 0; i < kThreadM * kThreadN; ++i) {
      const int m = i / kThreadN, step = i % kThreadN;
      const int n = m % 2 == 0 ? step : kThreadN - 1 - step;
      sums_[m][n] = scalar::fused(a[m], b[n], sums_[m][n]);
    }
  }

  int m_, n_;
  float sums_[kThreadM][kThreadN] = {};
};

/// C has kM, kN, kK (of a tile and a stage), kThreads, kStages, kThreadM, kThreadN, kAlongA and
/// kAlongB (k is contiguous), kStoreVector (4 or 1), kSplit, kBatches. E: the epilogue
/// (engines/print_map.h).
template <class C, class E>
class SimtBlock {
  using Tile = SimtTile<C>;
  static constexpr int kVector = C::kStoreVector, kRow = C::kN / kVector;
  static constexpr int kItems = C::kM * kRow;
  static constexpr int kAtOnce = 4;  // items of a thread whose epilogues overlap
  static constexpr int kSumBytes = C::kM * Tile::kPitch * 4;
  static_assert(kItems % (C::kThreads * kAtOnce) == 0, "every thread has as many");

 public:
  static constexpr int kSharedBytes =
      16 + (Tile::kRingBytes > kSumBytes ? Tile::kRingBytes : kSumBytes);

  TENON_DEVICE SimtBlock(const SimtProblem& p, const E& epilogue, unsigned char* shared)
      : p_(p),
        epilogue_(epilogue),
        flag_(reinterpret_cast<unsigned*>(shared)),
        sums_(reinterpret_cast<float*>(shared + 16)) {
    // Blocks that run together share rows of A and columns of B in the second-level cache.
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
  }

 private:
  /// Neighbours of the result and what the epilogue has read there.
  struct Spot {
    bool inside;
    unsigned batch, row;
    int column;
    typename E::template Held<kVector> held;
  };

  TENON_DEVICE Spot spot(int item) const {
    Spot s;
    s.batch = 0;
    s.row = static_cast<unsigned>(m0_ + item / kRow);
    s.column = n0_ + item % kRow * kVector;
    s.inside = s.row < static_cast<unsigned>(p_.m) && s.column < p_.n;
    if constexpr (C::kBatches) s.batch = split<false>(s.row, p_.batch_rows);
    if (s.inside) s.held = epilogue_.template hold<kVector>(s.batch, s.row, s.column);
    return s;
  }

  TENON_DEVICE void finish() const {
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x); first < kItems;
         first += C::kThreads * kAtOnce) {
      Spot spots[kAtOnce];
      float x[kAtOnce][kVector];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) spots[u] = spot(first + u * C::kThreads);
      if constexpr (C::kSplit) {
        add_partials(spots, first, x);
      } else {
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) copy(x[u], place(first + u * C::kThreads));
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        if (spots[u].inside)
          epilogue_.template finish<kVector>(spots[u].batch, spots[u].row, spots[u].column, x[u],
                                             spots[u].held);
    }
  }

  TENON_DEVICE float* place(int item) const {
    return sums_ + item / kRow * Tile::kPitch + item % kRow * kVector;
  }
  static TENON_DEVICE void copy(float (&x)[kVector], const float* from) {
    const Floats<kVector> all = floats<kVector>(from);
#pragma unroll
    for (int v = 0; v < kVector; ++v) x[v] = all.v[v];
  }

  TENON_DEVICE float* partial(int index) const {
    return p_.partials + (static_cast<long long>(blockIdx.x) * p_.splits + index) * (C::kM * C::kN);
  }
  TENON_DEVICE void leave_partial() const {
    float* to = partial(static_cast<int>(blockIdx.y));
    for (int i = static_cast<int>(threadIdx.x); i < kItems; i += C::kThreads)
      *reinterpret_cast<Floats<kVector>*>(to + i * kVector) = floats<kVector>(place(i));
  }
  /// In the order of k.
  TENON_DEVICE void add_partials(const Spot (&spots)[kAtOnce], int first,
                                 float (&x)[kAtOnce][kVector]) const {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
#pragma unroll
      for (int v = 0; v < kVector; ++v) x[u][v] = 0;
#pragma unroll 2
    for (int s = 0; s < p_.splits; ++s)
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (!spots[u].inside) continue;
        float more[kVector];
        copy(more, partial(s) + (first + u * C::kThreads) * kVector);
#pragma unroll
        for (int v = 0; v < kVector; ++v) x[u][v] += more[v];
      }
  }

  /// Whether all other blocks of this tile have left their sums.
  TENON_DEVICE bool is_last(unsigned* tickets) const {
    unsigned* counter = tickets + p_.ticket + blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
      *flag_ = take_ticket(counter);
      if (*flag_ + 1 == static_cast<unsigned>(p_.splits)) *counter = 0;  // for the next launch
    }
    __syncthreads();
    return *flag_ + 1 == static_cast<unsigned>(p_.splits);
  }

  const SimtProblem& p_;
  const E& epilogue_;
  unsigned* flag_;
  float* sums_;
  int m0_, n0_;
};

}  // namespace tenon::cuda
