// Large matrix products on Hopper (sm_90a) with TMA and wgmma: C(m, n) = sum over k of A(m, k) *
// B(k, n). The result goes to the epilogue only, which overwrites its outputs.
//
// Operands: bfloat16 or float16, each contiguous along k or across k; float32 contiguous along k,
// used as tf32 (the lower bits are ignored); or float32 in bfloat16 parts (bf16x6): A as stored, in
// either order, B as three planes of 16-bit parts. Line pitches are multiples of 16 bytes,
// addresses multiples of 16; any m, n, k (elements outside count as zero). Float32 sums. The bits
// of a result depend on sizes alone: a block sums in the order of k, and blocks of a cluster that
// share k add their sums in that order.
//
// Tiles: kRows (64 or 128) x 128. One thread of the first warpgroup fills a ring of stages, tile
// after tile. The other two warpgroups alternate between tiles: while one writes its sums, the
// other multiplies. If every block has only one tile, and in bf16x6, both warpgroups share the
// tile, 64 rows each. Blocks of a cluster that are above one another need the same columns of B;
// each loads half of them and multicasts them to both. Blocks that split k leave their sums in
// shared memory, and each block adds and writes its share of the rows.
//
// Compute-bound, or memory-bound where m, n or k is small; lab/matmul measures the same pipeline
// beside cuBLAS.
#pragma once

#include "cuda/kernels/counter.cuh"
#include "cuda/kernels/gemm/gemm_wgmma_args.cuh"
#include "cuda/kernels/gemm/gemm_wgmma_parts.cuh"
#include "cuda/kernels/intrinsics_hopper.cuh"

namespace tenon::cuda {

/// C has kRows (rows of a tile: 64 or 128), kStages, kTurns (warpgroups alternate between tiles),
/// kCluster (blocks above one another: 1 or 2), kSplits (of k: 1 to 8; more than 1 only without
/// kTurns), kType, kAcrossA, kAcrossB, kBatches, kStoreVector (4 or 1). E: the epilogue
/// (engines/maps/print_map.h).
template <class C, class E>
class WgmmaBlock {
  static constexpr int kColumns = kWgmmaColumns, kStages = C::kStages;
  static constexpr bool kInParts = C::kType == WgmmaType::Bf16x6;
  static constexpr int kDepth = kWgmmaLine / (C::kType == WgmmaType::Tf32 || kInParts ? 4 : 2);
  static constexpr int kBox = 64 * 128;
  static constexpr int kPlane = kColumns * kDepth * 2;  // bytes of one part of B
  static constexpr int kBytesA = C::kRows * kWgmmaLine,
                       kBytesB = kInParts ? 3 * kPlane : kColumns * kWgmmaLine;
  static constexpr int kVector = C::kStoreVector;
  // 64-row halves of a tile per warpgroup.
  static constexpr int kHalves = C::kTurns ? C::kRows / 64 : 1;
  static constexpr int kSharing = C::kTurns ? 1 : C::kRows / 64;  // warpgroups that share a tile
  // The epilogue in steps of a warp: four neighbours in several rows, or several results of one
  // row.
  static constexpr int kStepRows = kVector == 4 ? 4 : 1;
  static_assert(!kInParts || (!C::kTurns && C::kRows == 128), "a warpgroup has 64 rows");
  static_assert(C::kSplits == 1 || (!C::kTurns && !E::kColumnSums),
                "blocks that split k have one tile, and no results that are theirs alone");

 public:
  TENON_DEVICE WgmmaBlock(const WgmmaProblem& p, const E& epilogue, unsigned char* shared)
      : p_(p),
        epilogue_(epilogue),
        a_((shared_address(shared) + 1023) & ~1023u),
        b_(a_ + kStages * kBytesA),
        full_(b_ + kStages * kBytesB),
        empty_(full_ + 8 * kStages),
        turn_(empty_ + 8 * kStages),
        staging_(reinterpret_cast<float*>(shared + (turn_ + 16 - shared_address(shared)))),
        rank_(C::kCluster * C::kSplits > 1 ? static_cast<int>(cluster_rank()) : 0),
        first_(static_cast<int>(blockIdx.x) / (C::kCluster * C::kSplits)),
        stride_(static_cast<int>(gridDim.x) / (C::kCluster * C::kSplits)),
        first_step_(p.steps * (rank_ / C::kCluster) / C::kSplits),
        steps_(p.steps * (rank_ / C::kCluster + 1) / C::kSplits - first_step_) {}

  /// Initialises barriers and descriptors; reads and writes no tensor.
  TENON_DEVICE void set_up() const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) {
        barrier_init(full_ + 8 * i, 1);
        // One arrival of each warp that reads the stage.
        barrier_init(empty_ + 8 * i, 4 * kSharing * C::kCluster);
      }
      barrier_init(turn_, 1);
      barrier_init(turn_ + 8, 1);
      barrier_init_fence();
      prefetch_map(&p_.a);
      prefetch_map(&p_.b);
    }
    __syncthreads();
    if constexpr (C::kCluster > 1) cluster_sync();
  }

  /// Computes the block's tiles. Called once, after set_up().
  TENON_DEVICE void run() {
    if (threadIdx.x < 128) {
      registers_fewer<40>();
      if (threadIdx.x == 0) produce();
      __syncwarp();
      if constexpr (C::kSplits > 1) cluster_sync();
    } else {
      registers_more<232>();
      const int group = static_cast<int>(threadIdx.x) / 128 - 1;
      if (C::kTurns || group < kSharing) consume(group);
      if constexpr (C::kSplits > 1) {
        cluster_sync();  // the sums of all blocks are visible
        add_up();
      }
      if constexpr (E::kSums) combine(static_cast<int>(threadIdx.x) - 128);
    }
    // No block may end while another block of the cluster still reads or writes its shared memory.
    if constexpr (C::kCluster * C::kSplits > 1) cluster_sync();
  }

 private:
  /// A position in the ring; the parity flips after each round.
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
    m = ((top + rest % height) * C::kCluster + rank_ % C::kCluster) * C::kRows;
    n = rest / height * kColumns;
  }

  TENON_DEVICE void produce() const {
    Place at;
    for (int tile = first_; tile < p_.rows * p_.columns; tile += stride_) {
      int m, n;
      locate(tile, m, n);
      for (int step = 0; step < steps_; ++step, at.advance(1))
        fill(at, m, n, (first_step_ + step) * kDepth);
    }
  }

  TENON_DEVICE void fill(const Place& at, int m, int n, int k) const {
    const unsigned full = full_ + 8 * at.stage;
    barrier_wait(empty_ + 8 * at.stage, at.parity ^ 1);
    barrier_expect(full, kBytesA + kBytesB);
    const unsigned a = a_ + at.stage * kBytesA, b = b_ + at.stage * kBytesB;
    if constexpr (kInParts) {
      fill_parts(a, b, m, n, k, full);
      return;
    }
    if constexpr (C::kAcrossA) {
#pragma unroll
      for (int i = 0; i < C::kRows / 64; ++i) tma_load(a + i * kBox, &p_.a, m + i * 64, k, full);
    } else {
      tma_load(a, &p_.a, k, m, full);
    }
    if constexpr (C::kCluster > 1) {
      const int half = rank_ % 2, share = n + half * 64;
      tma_load_multicast(b + half * kBox, &p_.b, C::kAcrossB ? share : k, C::kAcrossB ? k : share,
                         full, static_cast<unsigned short>(3 << (rank_ - half)));
    } else if constexpr (C::kAcrossB) {
      tma_load(b, &p_.b, n, k, full);
      tma_load(b + kBox, &p_.b, n + 64, k, full);
    } else {
      tma_load(b, &p_.b, k, n, full);
    }
  }

  /// Loads A as stored and three planes of B: 64-byte lines along k, or boxes of 64 columns.
  TENON_DEVICE void fill_parts(unsigned a, unsigned b, int m, int n, int k, unsigned full) const {
    constexpr int kLine = kWgmmaLine / 4;
    if constexpr (C::kAcrossA) {
#pragma unroll
      for (int i = 0; i < C::kRows / kLine; ++i)
        tma_load(a + i * kDepth * kWgmmaLine, &p_.a, m + i * kLine, k, full);
    } else {
      tma_load(a, &p_.a, k, m, full);
    }
#pragma unroll
    for (int part = 0; part < 3; ++part, b += kPlane) {
      const auto load = [&](int half) {
        const int share = n + half * 64, x = C::kAcrossB ? share : k, y = C::kAcrossB ? k : share;
        const unsigned to = b + half * (kPlane / 2);
        if constexpr (C::kCluster > 1)
          tma_load_multicast(to, &p_.b, x, y, part, full,
                             static_cast<unsigned short>(3 << (rank_ - half)));
        else
          tma_load(to, &p_.b, x, y, part, full);
      };
      if constexpr (C::kCluster > 1) {
        load(rank_ % 2);
      } else {
        load(0);
        if constexpr (C::kAcrossB) load(1);
      }
    }
  }

  /// A parity cannot distinguish a phase from the one two later. A warpgroup therefore passes the
  /// turn to wait for stages to the other warpgroup only when the last stage of its tile has
  /// arrived.
  TENON_DEVICE void consume(int group) {
    const int stride = C::kTurns ? 2 * stride_ : stride_;
    const int tiles = p_.rows * p_.columns,
              last = first_ + (tiles - 1 - first_) / stride_ * stride_;
    const bool helps = kHalves == 2 && (last - first_) / stride_ % 2 != group;
    Place at;
    if (C::kTurns && group == 1) at.advance(steps_);
    // Parity of the other warpgroup's last turn; group 0 starts as if that turn were complete.
    unsigned turn = group ^ 1;
    for (int tile = C::kTurns ? first_ + group * stride_ : first_; tile < tiles || helps;
         tile += stride) {
      const bool mine = tile < tiles, both = kHalves == 2 && (!mine || tile == last);
      int m, n;
      locate(mine ? tile : last, m, n);
      if constexpr (kInParts) n += p_.first_column;
      m += row_of_warp() + (C::kTurns ? (mine ? 0 : 64) : group * 64);
      const bool inside = m + (both ? 0 : 64 * (kHalves - 1)) + 16 <= p_.m &&
                          (kVector == 4 || n + kColumns <= p_.n);
      Held held[kAhead];
      if (C::kSplits == 1 && inside && !kInParts) look(held, m, n);
      float sums[kHalves][64];
      if (mine) {
        if (C::kTurns) barrier_wait(turn_ + 8 * group, turn);
        turn ^= 1;
        if constexpr (kInParts)
          multiply_parts(sums[0], at, group);
        else
          multiply(sums, at, group);
      }
      if (C::kSplits == 1 && inside && kInParts) look(held, m, n);
      if constexpr (C::kSplits > 1)
        stage(sums[0], place_of_warp(group));
      else
        write(sums, m, n, held, inside, group, mine, both);
      if (!mine) break;
    }
  }

  TENON_DEVICE void multiply(float (&sums)[kHalves][64], Place& at, int group) const {
    int previous = 0;
    for (int step = 0; step < steps_; ++step, at.advance(1)) {
      barrier_wait(full_ + 8 * at.stage, at.parity);
      const unsigned row = C::kTurns ? 0 : group * kBox;
      const auto a = tile_descriptor<C::kAcrossA>(a_ + at.stage * kBytesA + row);
      const auto b = tile_descriptor<C::kAcrossB>(b_ + at.stage * kBytesB);
      pin_all(sums);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < kWgmmaLine / 32; ++i)
#pragma unroll
        for (int half = 0; half < kHalves; ++half)
          wgmma_m64n128<C::kType, C::kAcrossA, C::kAcrossB>(
              sums[half], a + half * (kBox >> 4) + i * kDescriptorStep<C::kAcrossA>,
              b + i * kDescriptorStep<C::kAcrossB>, step + i);
      wgmma_commit();
      pin_all(sums);
      // The previous stage's products have ended, so the stage may be filled again.
      wgmma_wait<1>();
      if (step > 0) give_back(previous);
      previous = at.stage;
    }
    if (C::kTurns && threadIdx.x % 128 == 0) barrier_arrive(turn_ + 8 * (group ^ 1), rank_);
    wgmma_wait<0>();
    pin_all(sums);
    give_back(previous);
    if (C::kTurns) at.advance(steps_);  // skip the other warpgroup's tile
  }

  /// Tensor cores truncate the bits that do not fit a sum, so long sums shrink. The sums of each
  /// stage therefore start at zero, with the smallest products, and are added to the total with
  /// rounding.
  TENON_DEVICE void multiply_parts(float (&sums)[64], Place& at, int group) const {
    const RowReader<C::kAcrossA> reader(group * 64 + row_of_warp());
    PartsOfRows rows;
#pragma unroll
    for (int i = 0; i < 64; ++i) sums[i] = 0.0f;
    barrier_wait(full_ + 8 * at.stage, at.parity);
    reader.read(rows, a_ + at.stage * kBytesA);
#pragma unroll 2
    for (int step = 0; step < steps_; ++step) {
      float stage[64];
      pin(stage);
      rows.pin_all();
      wgmma_fence();
      multiply_stage(stage, rows, b_ + at.stage * kBytesB);
      wgmma_commit();
      Place next = at;
      next.advance(1);
      PartsOfRows ahead = rows;
      if (step + 1 < steps_) {
        barrier_wait(full_ + 8 * next.stage, next.parity);
        reader.read(ahead, a_ + next.stage * kBytesA);
      }
      wgmma_wait<0>();
      pin(stage);
      rows.pin_all();
      give_back(at.stage);
#pragma unroll
      for (int i = 0; i < 64; ++i) sums[i] += stage[i];
      rows = ahead;
      at = next;
    }
  }

  static TENON_DEVICE void multiply_stage(float (&stage)[64], const PartsOfRows& rows, unsigned b) {
    // Parts of A and of B, small products first; docs/numerics.md says which products are left out.
    constexpr int kPairs[][2] = {{0, 2}, {2, 0}, {1, 1}, {0, 1}, {1, 0}, {0, 0}};
    bool add = false;
#pragma unroll
    for (const auto& pair : kPairs) {
      const unsigned plane = b + pair[1] * kPlane;
      const auto tile =
          C::kAcrossB ? tile_descriptor<true, kDepth>(plane) : short_line_descriptor(plane);
#pragma unroll
      for (int i = 0; i < PartsOfRows::kProducts; ++i, add = true)
        wgmma_m64n128_held<C::kAcrossB>(stage, rows.of[i][pair[0]],
                                        tile + i * kDescriptorStep<C::kAcrossB>, add);
    }
  }

  static TENON_DEVICE void pin_all(float (&sums)[kHalves][64]) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) pin(sums[half]);
  }

  TENON_DEVICE void give_back(int stage) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < C::kCluster)
      barrier_arrive(empty_ + 8 * stage, rank_ / C::kCluster * C::kCluster + lane);
  }

  /// The values that the epilogue loads for one step, prefetched as many steps ahead as registers
  /// allow. A load waits behind all requests of the TMA unit.
  struct Held {
    typename E::template Held<kVector> of[4];
  };
  static constexpr int kAhead = kVector != 4                            ? 1
                                : kHalves == 1 && E::kVaryingBytes <= 6 ? 4
                                : E::kVaryingBytes <= 2                 ? 2
                                                                        : 1;
  struct Spot {
    unsigned batch, row;
    int column;
    bool inside;
  };

  TENON_DEVICE Spot spot(int row, int column) const {
    Spot s;
    s.row = static_cast<unsigned>(row);
    s.column = column;
    s.inside = s.row < p_.m && s.column < p_.n;
    s.batch = C::kBatches ? split<false>(s.row, p_.batch_rows) : 0;
    return s;
  }
  /// The u'th of a step's four positions; the step's first row is `row`, the tile's first column n.
  TENON_DEVICE Spot place_of_step(int row, int n, int u) const {
    return spot(row + (kVector == 4 ? u : 0), n + column_of(u));
  }

  /// Stores the values that the warp gathered in its sixteen rows as a partial result. A partial
  /// result always covers the same rows, whichever warp computes it.
  TENON_DEVICE void leave(long long partial) {
    gathered_.over_lanes();
    if (threadIdx.x % 32 == 0) epilogue_.partials[partial] = gathered_;
    gathered_ = E::no_sums();
  }
  TENON_DEVICE static long long count_of_rows(const WgmmaProblem& p) {
    return static_cast<long long>(p.rows) * (C::kCluster * C::kRows / 16);
  }
  /// The epilogue's part for both writing warpgroups.
  TENON_DEVICE void combine(int thread) const {
    const auto sync = [] { threads_sync(3, 256); };
    sync();
    const long long count = C::kSplits > 1 ? 8ll * gridDim.x : count_of_rows(p_) * p_.columns;
    epilogue_.template combine_partials<256>(thread, gridDim.x, static_cast<unsigned>(count), sync);
  }

  /// Writes sixteen rows of the warp at a time through shared memory. Both warpgroups write the
  /// block's last tile; the one that did not multiply it (`mine` is false) writes the lower half.
  TENON_DEVICE void write(float (&sums)[kHalves][64], int m, int n, Held (&held)[kAhead],
                          bool inside, int group, bool mine, bool both) {
    float* place = place_of_warp(group);
    if (both) threads_sync(1, 256);  // all threads have read their sums
    if (both && mine) stage(sums[kHalves - 1], place_of_warp(group ^ 1));
#pragma unroll 1
    for (int halves = both ? 1 : kHalves; halves > 0; --halves, m += 64) {
      __syncwarp();
      if (mine) stage(sums[0], place);
      __syncwarp();
      if (both) threads_sync(2, 256);
      if (inside)
        write_inside(place, m, n, held, halves > 1);
      else
        write_edge(place, m, n);
      if constexpr (E::kSums) leave(m / 16 + n / kColumns * count_of_rows(p_));
      if constexpr (E::kColumnSums) leave_columns(place, m - row_of_warp(), n, group);
#pragma unroll
      for (int i = 0; i < 64; ++i) sums[0][i] = sums[kHalves - 1][i];
    }
  }

  /// Stores the column reductions that a warpgroup has gathered in its 64 rows from row m on. The
  /// rows are all inside or all outside.
  TENON_DEVICE void leave_columns(float* place, int m, int n, int group) {
    static_assert(kVector == 4, "four columns a lane");
    constexpr int kRows = 16;  // rows of a warp
    static_assert(E::kNumbers <= kRows, "a warp's place has a line for each of its rows");
    const int lane = static_cast<int>(threadIdx.x) % 32,
              column = static_cast<int>(threadIdx.x) % 128;
    __syncwarp();  // all lanes have read the sums
    gathered_.template put<kRows>(place, lane);
    gathered_ = E::no_sums();
    threads_sync(4 + group, 128);
    if (m < p_.m && n + column < p_.n)
      epilogue_.template save_columns<kRows, kRows * kColumns>(
          staging_ + group * 64 * kColumns + column, m / 64, n + column);
    threads_sync(4 + group, 128);
  }

  /// True if the lane's columns of the tile at n are inside. Either all or none are inside.
  TENON_DEVICE bool has_columns(int n) const {
    return kVector == 1 || n + static_cast<int>(threadIdx.x) % 32 * 4 < p_.n;
  }

  TENON_DEVICE void look(Held (&held)[kAhead], int row, int n) const {
    if (!has_columns(n)) return;
#pragma unroll
    for (int a = 0; a < kAhead; ++a)
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const Spot s = place_of_step(row + a * kStepRows, n, u);
        held[a].of[u] = epilogue_.template hold<kVector>(s.batch, s.row, s.column);
      }
  }

  /// Writes the warp's sixteen rows of sums from row m on, where all rows are inside: no branches.
  /// `held` has the prefetched values of these rows and then, if there are more rows, of the first
  /// rows 64 below. The sums of a step are loaded from shared memory while the previous step is
  /// computed: products keep shared memory busy, so a load takes long.
  TENON_DEVICE void write_inside(const float* place, int m, int n, Held (&held)[kAhead],
                                 bool more) {
    if (!has_columns(n)) return;
    constexpr int kUnrolled = kAhead;  // so that `held` stays in registers
    float x[4][kVector];
    read_step(x, place, 0);
#pragma unroll kUnrolled
    for (int r = 0; r < 16; r += kStepRows) {
      Held& next = held[r / kStepRows % kAhead];
      const Held now = next;
      float sums[4][kVector];
#pragma unroll
      for (int u = 0; u < 4; ++u)
#pragma unroll
        for (int i = 0; i < kVector; ++i) sums[u][i] = x[u][i];
      if (r + kStepRows < 16) read_step(x, place, r + kStepRows);
      const int ahead = r + kAhead * kStepRows;
      if (ahead < 16 || more)
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          const Spot s = place_of_step(ahead < 16 ? m + ahead : m + 64 + ahead - 16, n, u);
          epilogue_.template hold_again<kVector>(next.of[u], s.batch, s.row, s.column);
        }
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const Spot s = place_of_step(m + r, n, u);
        epilogue_.template finish<kVector>(s.batch, s.row, s.column, sums[u], now.of[u], gathered_);
      }
    }
  }
  static TENON_DEVICE void read_step(float (&x)[4][kVector], const float* place, int r) {
#pragma unroll
    for (int u = 0; u < 4; ++u) read(x[u], place + (kVector == 4 ? offset(r + u) : offset(r, u)));
  }

  TENON_DEVICE void write_edge(const float* place, int m, int n) {
#pragma unroll 1
    for (int i = 0; i < 64 / kVector; ++i) {
      const int r = kVector == 4 ? i : i / 4, u = kVector == 4 ? 0 : i % 4;
      const Spot s = place_of_step(m + r, n, u);
      float x[kVector];
      read(x, place + offset(r, u));
      if (s.inside)
        epilogue_.template finish<kVector>(
            s.batch, s.row, s.column, x, epilogue_.template hold<kVector>(s.batch, s.row, s.column),
            gathered_);
    }
  }

  /// The lane's column of a tile at a step's u'th position: four neighbours, or every 32nd, so that
  /// a warp reads and writes 32 neighbours of a row at once.
  static TENON_DEVICE int column_of(int u) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return kVector == 4 ? 4 * lane : lane + 32 * u;
  }
  /// The offset of the lane's four columns in row r of the sums in shared memory. Neither the
  /// writes (eight rows, two chunks of 16 bytes each) nor the reads (one row) have bank conflicts.
  static TENON_DEVICE int offset(int r) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return r * kColumns + ((lane ^ ((r & 3) << 1)) << 2);
  }
  /// The offset of the column of position u.
  static TENON_DEVICE int offset(int r, int u) {
    return r * kColumns + (column_of(u) ^ ((r & 3) << 3));
  }
  static TENON_DEVICE void read(float (&x)[kVector], const float* from) {
    if constexpr (kVector == 4)
      *reinterpret_cast<float4*>(x) = *reinterpret_cast<const float4*>(from);
    else
      x[0] = *from;
  }
  /// The warp's first row among its warpgroup's 64.
  static TENON_DEVICE int row_of_warp() { return static_cast<int>(threadIdx.x) % 128 / 32 * 16; }
  /// The sums of the corresponding warp of warpgroup `group`.
  TENON_DEVICE float* place_of_warp(int group) const {
    return staging_ + (group * 64 + row_of_warp()) * kColumns;
  }

  static TENON_DEVICE void stage(const float (&sums)[64], float* place) {
    const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      float* to = place + row * kColumns + (((2 * j + t / 2) ^ (row & 3) << 1) << 2) + t % 2 * 2;
      *reinterpret_cast<float2*>(to) = make_float2(sums[4 * j], sums[4 * j + 1]);
      *reinterpret_cast<float2*>(to + 8 * kColumns) = make_float2(sums[4 * j + 2], sums[4 * j + 3]);
    }
  }

  /// The first row of a tile that block `split` of the blocks sharing the tile adds and writes.
  static TENON_DEVICE int row_of_split(int split) { return C::kRows * split / C::kSplits; }

  /// Adds and writes the block's share of the tile's rows: a warp takes row after row, four results
  /// a lane.
  TENON_DEVICE void add_up() {
    int m, n;
    locate(first_, m, n);
    if constexpr (kInParts) n += p_.first_column;
    const int end = row_of_split(rank_ / C::kCluster + 1);
#pragma unroll 1
    for (int r = row_of_split(rank_ / C::kCluster) + static_cast<int>(threadIdx.x) / 32 - 4;
         r < end; r += 8) {
      typename E::template Held<kVector> held[4 / kVector];
      Spot spots[4 / kVector];
#pragma unroll
      for (int u = 0; u < 4 / kVector; ++u) {
        spots[u] = spot(m + r, n + static_cast<int>(threadIdx.x) % 32 * 4 + u);
        if (spots[u].inside)
          held[u] = epilogue_.template hold<kVector>(spots[u].batch, spots[u].row, spots[u].column);
      }
      float x[4 / kVector][kVector] = {};
      const unsigned from = shared_address(staging_ + offset(r));
#pragma unroll
      for (int s = 0; s < C::kSplits; ++s) {
        float part[4];
        cluster_load(part, from, s * C::kCluster + rank_ % C::kCluster);
#pragma unroll
        for (int u = 0; u < 4; ++u) x[u / kVector][u % kVector] += part[u];
      }
#pragma unroll
      for (int u = 0; u < 4 / kVector; ++u)
        if (spots[u].inside)
          epilogue_.template finish<kVector>(spots[u].batch, spots[u].row, spots[u].column, x[u],
                                             held[u], gathered_);
    }
    if constexpr (E::kSums) leave(blockIdx.x * 8ll + threadIdx.x / 32 - 4);
  }

  const WgmmaProblem& p_;
  const E& epilogue_;
  const unsigned a_, b_, full_, empty_, turn_;
  float* const staging_;
  const int rank_, first_, stride_, first_step_, steps_;
  typename E::Sums gathered_ = E::no_sums();
};

}  // namespace tenon::cuda
