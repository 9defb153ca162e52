// Matrix products and implicit-GEMM convolutions: C(m, n) = sum over k of A(m, k) * B(k, n).
//
// Operands: any strides, float32, bfloat16 or float16 in memory, up to three digits per axis
// (gemm_args.cuh); float32 accumulation. The result goes to the epilogue only, which overwrites its
// outputs. Tiles: a block computes kM x kN results. Asynchronous copies stage the operands kStages
// deep. The accumulators pass through shared memory, so that the epilogue gets whole rows.
//
// Split k: where k is long and the result small, several blocks share a tile. Each block leaves its
// partial sums in the workspace, and the last block to finish adds them in the order of k. Where a
// tile has fewer items than a block has threads, the sums are added in runs, then run by run. The
// bits do not depend on which block finishes last. With kSerial (large partial sums) each block
// instead waits for the blocks of the earlier parts of k and adds its sums to theirs, in one
// float32 copy of the result or in the result itself. The wait makes kSerial slower where many
// blocks of a tile run at once.
//
// Compute-bound for large products, latency-bound for small ones. On an H200: 4096^3 at 302 TFLOP/s
// in bfloat16, 135 in tf32, 40 in float32 (cuBLASLt: 838, 434, 51); products and convolutions of
// LeNet-5 at batch 64 in 2.4 to 17 us (cuBLASLt and cuDNN: 3.4 to 41 us).
#pragma once

#include "cuda/kernels/gemm/gemm_math.cuh"

namespace tenon::cuda {

template <class C, class S>
struct Pad {
  static constexpr bool kShort = C::kMath == Math::Bf16 || C::kMath == Math::F16;
  static constexpr int value = S::kStored != Kind::Float32 ? 8
                               : C::kMath == Math::Fp32    ? 4
                                                           : (kShort == S::kAlongK ? 8 : 4);
};

template <bool fma, class C, int kPitchA, int kPitchB>
struct TileOf {
  using type = FmaTile<C, kPitchA, kPitchB>;
};
template <class C, int kPitchA, int kPitchB>
struct TileOf<false, C, kPitchA, kPitchB> {
  using type = MmaTile<C, kPitchA, kPitchB>;
};

/// C: the configuration (engines/products/native_source.cpp prints it). E: the epilogue.
template <class C, class E>
class GemmBlock {
  using Offset = typename C::Offset;
  using StageA =
      Stager<typename C::A, C::kM, C::kK, Pad<C, typename C::A>::value, C::kThreads, Offset>;
  using StageB =
      Stager<typename C::B, C::kN, C::kK, Pad<C, typename C::B>::value, C::kThreads, Offset>;
  using Tile = typename TileOf<C::kMath == Math::Fp32, C, StageA::kPitch, StageB::kPitch>::type;
  static constexpr int kGroups = C::kThreads / Tile::kGroupThreads;
  static constexpr int kPitch = C::kN + 8;  // row pitch of the accumulators in shared memory
  static constexpr int kVector = C::kStoreVector;
  static constexpr int kItems = C::kM * C::kN / kVector;
  // Number of a thread's items whose epilogues overlap.
  static constexpr int kAtOnce = kItems >= 4 * C::kThreads ? 4 : kItems >= 2 * C::kThreads ? 2 : 1;
  // True if the epilogue's loads are few enough to be in flight during the arithmetic.
  static constexpr bool kEarly =
      !C::kSplit && kItems <= C::kThreads * kAtOnce && kAtOnce * kVector <= 4;
  static constexpr int kTables = StageA::kTableBytes + StageB::kTableBytes;
  static constexpr int kStageBytes = StageA::kBytes + StageB::kBytes;
  static_assert(C::kK % (kGroups * Tile::kStep) == 0, "every group takes whole slices");
  static_assert(StageA::kBytes % 16 == 0 && StageB::kBytes % 16 == 0, "aligned stages");

 public:
  static constexpr int kAccumulatorBytes = kGroups * C::kM * kPitch * 4;
  static constexpr int kSharedBytes =
      kTables +
      (kStageBytes * C::kStages > kAccumulatorBytes ? kStageBytes * C::kStages : kAccumulatorBytes);

  TENON_DEVICE GemmBlock(const GemmProblem& p, const E& epilogue, unsigned char* shared)
      : p_(p), epilogue_(epilogue), shared_(shared + kTables), tables_(shared) {
    unsigned tile = blockIdx.x;
    batch_ = split<false>(tile, p.tiles);
    int tile_m = 0, tile_n = 0;
    if constexpr (C::kSwizzle) {
      // Blocks that run at the same time share rows of A and columns of B in the L2 cache.
      const int width = 8 * p.tiles_n, t = static_cast<int>(tile), first = t / width * 8;
      const int rows = p.tiles_m - first < 8 ? p.tiles_m - first : 8;
      tile_m = first + t % width % rows;
      tile_n = t % width / rows;
    } else {
      tile_n = static_cast<int>(tile) / p.tiles_m;
      tile_m = static_cast<int>(tile) - tile_n * p.tiles_m;
    }
    m0_ = tile_m * C::kM;
    n0_ = tile_n * C::kN;
  }

  /// Sets up the tables, waits for earlier kernels (intrinsics.cuh), and computes.
  TENON_DEVICE void await_and_run(const GemmOperand& a, const GemmOperand& b, unsigned* tickets,
                                  const typename C::A::Prologue& prologue_a = {},
                                  const typename C::B::Prologue& prologue_b = {}) {
    Spot spots[kAtOnce];
    accumulate(a, b, prologue_a, prologue_b, spots);
    float* sums = reinterpret_cast<float*>(shared_);
    if constexpr (C::kSerial) {
      if (!add_in_turn(sums, tickets + p_.ticket + blockIdx.x)) return;
    } else if constexpr (C::kSplit) {
      leave_partial(sums);
      if (!last_of_tile(tickets)) return;
      add_partials(sums);
    } else {
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x); i < kItems; i += C::kThreads * kAtOnce) {
        if constexpr (!kEarly) look(spots, i);
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) {
          float x[kVector];
          group_sum(sums, i + u * C::kThreads, x);
          finish(spots[u], x);
        }
      }
    }
    if constexpr (E::kSums) epilogue_.template end_block<C::kThreads>(gathered_);
  }

 private:
  /// The position of neighbouring results.
  struct Place {
    bool inside;
    long long batch, row, column;
  };
  /// A position and the values that the epilogue has loaded there.
  struct Spot : Place {
    typename E::template Held<kVector> held;
  };

  /// The batch's digits times the strides of a prologue's layouts.
  template <class P>
  TENON_DEVICE LayoutBases<P::kLayouts> bases_of(const P& prologue) const {
    LayoutBases<P::kLayouts> bases{};
    if constexpr (P::kLayouts > 0) {
      for (int j = 0; j < P::kLayouts; ++j) {
        const GemmLayout& layout = prologue.layouts[j];
        bases.of[j] = layout.offset;
        unsigned z = batch_;
        for (int d = p_.batch_axes - 1; d >= 0; --d) {
          const unsigned rest = divide<false>(z, p_.batch_size[d]);
          bases.of[j] +=
              (z - rest * static_cast<unsigned>(p_.batch_size[d].value)) * layout.batch[d];
          z = rest;
        }
      }
    }
    return bases;
  }

  TENON_DEVICE void accumulate(const GemmOperand& a, const GemmOperand& b,
                               const typename C::A::Prologue& prologue_a,
                               const typename C::B::Prologue& prologue_b, Spot (&spots)[kAtOnce]) {
    long long offset_a = 0, offset_b = 0;
    unsigned z = batch_;
    for (int d = p_.batch_axes - 1; d >= 0; --d) {
      const unsigned rest = divide<false>(z, p_.batch_size[d]);
      const long long digit = z - rest * static_cast<unsigned>(p_.batch_size[d].value);
      offset_a += digit * p_.batch_stride_a[d];
      offset_b += digit * p_.batch_stride_b[d];
      z = rest;
    }
    const int k0 = C::kSplit ? static_cast<int>(blockIdx.y) * p_.k_per_split : 0;
    const int k_all = static_cast<int>(p_.k);
    const int k_end = !C::kSplit || k_all - k0 < p_.k_per_split ? k_all : k0 + p_.k_per_split;
    StageA stage_a(a, prologue_a, static_cast<const typename C::A::Memory*>(a.data) + offset_a,
                   bases_of(prologue_a), m0_, static_cast<int>(p_.m), k_end, tables_);
    StageB stage_b(b, prologue_b, static_cast<const typename C::B::Memory*>(b.data) + offset_b,
                   bases_of(prologue_b), n0_, static_cast<int>(p_.n), k_end,
                   tables_ + StageA::kTableBytes);

    const int tiles = k_end > k0 ? (k_end - k0 + C::kK - 1) / C::kK : 0;
    stage_a.prepare(0, k0);
    stage_b.prepare(0, k0);
    constexpr bool every_turn = StageA::kInnerTable || StageB::kInnerTable;
    if constexpr (kTables > 0 && !every_turn) __syncthreads();

    await_kernels();
    if constexpr (kEarly) look(spots, static_cast<int>(threadIdx.x));
    Tile tile;
    const int group = static_cast<int>(threadIdx.x) / Tile::kGroupThreads;
    int now = 0, ahead = 0;
#pragma unroll 1
    for (int t = 1 - C::kStages; t < tiles; ++t) {  // for t < 0 only stages are filled
      if (t >= 0) copy_async_wait<C::kStages - 2>();
      // The barrier also guarantees that no thread still reads the stage that is filled next.
      if (t >= 0 || every_turn) __syncthreads();
      const int next = t + C::kStages - 1, k = k0 + next * C::kK;
      const bool more = next < tiles;
      if (more) {
        stage_a.turn_to(next);
        stage_b.turn_to(next);
        stage_a.prepare(next + 1, k + C::kK);
        stage_b.prepare(next + 1, k + C::kK);
        stage_a.copy(tile_a(ahead), k);
        stage_b.copy(tile_b(ahead), k);
        stage_a.fetch(k);
        stage_b.fetch(k);
      }
      copy_async_commit();
      if (t >= 0) {
#pragma unroll
        for (int slice = 0; slice < C::kK / Tile::kStep / kGroups; ++slice)
          tile.multiply(tile_a(now), tile_b(now), (slice * kGroups + group) * Tile::kStep);
        now = now + 1 == C::kStages ? 0 : now + 1;
      }
      if (more) {
        stage_a.put(tile_a(ahead));
        stage_b.put(tile_b(ahead));
      }
      ahead = ahead + 1 == C::kStages ? 0 : ahead + 1;
    }
    copy_async_wait<0>();
    __syncthreads();
    tile.write(reinterpret_cast<float*>(shared_) + group * C::kM * kPitch);
    __syncthreads();
  }

  TENON_DEVICE typename StageA::Stored* tile_a(int stage) const {
    return reinterpret_cast<typename StageA::Stored*>(shared_ + stage * kStageBytes);
  }
  TENON_DEVICE typename StageB::Stored* tile_b(int stage) const {
    return reinterpret_cast<typename StageB::Stored*>(shared_ + stage * kStageBytes +
                                                      StageA::kBytes);
  }

  /// The sums of all thread groups for the item'th kVector neighbours of the tile, added in order.
  static TENON_DEVICE void group_sum(const float* sums, int item, float (&x)[kVector]) {
    constexpr int kRow = C::kN / kVector;
    const float* from = sums + item / kRow * kPitch + item % kRow * kVector;
    load(from, x);
#pragma unroll
    for (int g = 1; g < kGroups; ++g) add(from + g * C::kM * kPitch, x);
  }

  static TENON_DEVICE void load(const float* from, float (&x)[kVector]) {
    const auto all = *reinterpret_cast<const Floats<kVector>*>(from);
#pragma unroll
    for (int v = 0; v < kVector; ++v) x[v] = all.v[v];
  }
  static TENON_DEVICE void add(const float* from, float (&x)[kVector]) {
    const auto all = *reinterpret_cast<const Floats<kVector>*>(from);
#pragma unroll
    for (int v = 0; v < kVector; ++v) x[v] += all.v[v];
  }
  static TENON_DEVICE void save(float* to, const float (&x)[kVector]) {
    Floats<kVector> all;
#pragma unroll
    for (int v = 0; v < kVector; ++v) all.v[v] = x[v];
    *reinterpret_cast<Floats<kVector>*>(to) = all;
  }

  TENON_DEVICE void look(Spot (&spots)[kAtOnce], int first) const {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) spots[u] = spot(first + u * C::kThreads, kItems);
  }
  TENON_DEVICE Spot spot(int item, int items) const {
    Spot s;
    static_cast<Place&>(s) = place(item, items);
    if (s.inside) s.held = epilogue_.template hold<kVector>(s.batch, s.row, s.column);
    return s;
  }
  TENON_DEVICE Place place(int item, int items) const {
    constexpr int kRow = C::kN / kVector;
    const int m = m0_ + item / kRow, n = n0_ + item % kRow * kVector;
    Place s;
    s.inside = item < items && m < p_.m && n < p_.n;
    s.batch = batch_ * p_.batch_step;
    s.row = m + batch_ * p_.row_step;
    s.column = n + batch_ * p_.column_step;
    if constexpr (C::kInnerAxis == 1) {  // m holds (batch, row)
      unsigned rest = static_cast<unsigned>(m);
      s.batch = split<false>(rest, p_.inner_size);
      s.row = rest;
    } else if constexpr (C::kInnerAxis == 2) {  // n holds (batch, column)
      unsigned rest = static_cast<unsigned>(n);
      s.batch = split<false>(rest, p_.inner_size);
      s.column = rest;
    }
    return s;
  }
  TENON_DEVICE void finish(const Spot& s, const float (&x)[kVector]) {
    if (s.inside)
      epilogue_.template finish<kVector>(s.batch, s.row, s.column, x, s.held, gathered_);
  }

  TENON_DEVICE float* partial(int split_index) const {
    return p_.partials +
           (static_cast<long long>(blockIdx.x) * p_.splits + split_index) * (C::kM * C::kN);
  }

  TENON_DEVICE void leave_partial(const float* sums) const {
    float* to = partial(static_cast<int>(blockIdx.y));
    for (int i = static_cast<int>(threadIdx.x); i < kItems; i += C::kThreads) {
      constexpr int kRow = C::kN / kVector;
      if (m0_ + i / kRow >= p_.m || n0_ + i % kRow * kVector >= p_.n) continue;
      float x[kVector];
      group_sum(sums, i, x);
      save(to + i * kVector, x);
    }
  }

  /// True if all other blocks of this tile have left their partial sums.
  TENON_DEVICE bool last_of_tile(unsigned* tickets) const {
    unsigned* counter = tickets + p_.ticket + blockIdx.x;
    auto* flag = reinterpret_cast<unsigned*>(tables_);
    __syncthreads();
    if (threadIdx.x == 0) {
      *flag = take_ticket(counter);
      if (*flag + 1 == static_cast<unsigned>(p_.splits)) *counter = 0;  // ready for the next launch
    }
    __syncthreads();
    const bool last = *flag + 1 == static_cast<unsigned>(p_.splits);
    __syncthreads();
    return last;
  }

  /// Adds the partial sums. With fewer items than threads, several threads share an item: each adds
  /// a run of the splits, and the runs are added in order.
  TENON_DEVICE void add_partials(float* sums) {
    constexpr int kRow = C::kN / kVector;
    const int rows_left = static_cast<int>(p_.m) - m0_, columns_left = static_cast<int>(p_.n) - n0_;
    const int rows = rows_left < C::kM ? rows_left : C::kM;
    const int columns = ((columns_left < C::kN ? columns_left : C::kN) + kVector - 1) / kVector;
    const int items = rows * columns, t = static_cast<int>(threadIdx.x);
    const int runs = items >= C::kThreads ? 1 : C::kThreads / items;
    const int run = runs == 1 ? 0 : t / items;
    const int from = run * p_.splits / runs, to = (run + 1) * p_.splits / runs;
#pragma unroll 1
    for (int first = 0; first < items; first += C::kThreads * kAtOnce) {
      float x[kAtOnce][kVector] = {};
      Spot spots[kAtOnce];
      int item[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int i = runs == 1 ? first + u * C::kThreads + t : u == 0 ? t % items : items;
        item[u] = i < items && run < runs ? i / columns * kRow + i % columns : kItems;
        spots[u] = spot(run == 0 ? item[u] : kItems, kItems);
      }
#pragma unroll 4
      for (int s = from; s < to; ++s)
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u)
          if (item[u] < kItems) add(partial(s) + item[u] * kVector, x[u]);
      if (runs > 1) {
        if (run < runs) save(sums + t * kVector, x[0]);
        __syncthreads();
        if (run == 0)
          for (int r = 1; r < runs; ++r) add(sums + (r * items + t) * kVector, x[0]);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) finish(spots[u], x[u]);
    }
  }

  // ---- In turn -------------------------------------------------------------------------------

  /// Maximum number of a thread's items whose loads overlap. Loads overlap because the blocks of
  /// later parts of k wait for this block.
  static constexpr int kMostInTurn = kVector == 1 ? 16 : 32 / kVector;
  static constexpr int kOfThread = (kItems + C::kThreads - 1) / C::kThreads;
  static constexpr int kInTurn = kOfThread < kMostInTurn ? kOfThread : kMostInTurn;

  TENON_DEVICE float* sum_at(const Place& at) const {
    return p_.partials + ((at.batch * p_.result_rows + at.row) * p_.result_columns + at.column);
  }

  /// Adds this block's sums to the sums of the earlier parts of k in memory. Returns true if the
  /// sums are complete and were given to the epilogue. Blocks of later parts have higher numbers.
  /// The hardware starts blocks in the order of their numbers, so the blocks that this one waits
  /// for are running or have ended. CUDA does not promise that order; CUTLASS relies on it too.
  TENON_DEVICE bool add_in_turn(const float* sums, unsigned* counter) {
    const bool last = static_cast<int>(blockIdx.y) + 1 == p_.splits;
    if (blockIdx.y > 0 && threadIdx.x == 0) await_counter(counter, blockIdx.y);
    __syncthreads();
    if (last)
      finish_sums(sums);
    else
      pass_sums(sums);
    __syncthreads();
    if (threadIdx.x == 0) {
      if (last)
        *counter = 0;  // reset for the next launch
      else
        raise_counter(counter);
    }
    return last;
  }

  TENON_DEVICE void pass_sums(const float* sums) const {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kItems; i += C::kThreads * kInTurn) {
      float* to[kInTurn];
      float x[kInTurn][kVector] = {};
#pragma unroll
      for (int u = 0; u < kInTurn; ++u) {
        const Place at = place(i + u * C::kThreads, kItems);
        to[u] = at.inside ? sum_at(at) : nullptr;
        if (blockIdx.y > 0 && at.inside) load(to[u], x[u]);
      }
#pragma unroll
      for (int u = 0; u < kInTurn; ++u) {
        if (to[u] == nullptr) continue;
        float own[kVector];
        group_sum(sums, i + u * C::kThreads, own);
#pragma unroll
        for (int v = 0; v < kVector; ++v) x[u][v] += own[v];
        save(to[u], x[u]);
      }
    }
  }

  TENON_DEVICE void finish_sums(const float* sums) {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kItems; i += C::kThreads * kAtOnce) {
      Spot spots[kAtOnce];
      float x[kAtOnce][kVector] = {};
      look(spots, i);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        if (blockIdx.y > 0 && spots[u].inside) load(sum_at(spots[u]), x[u]);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (!spots[u].inside) continue;
        float own[kVector];
        group_sum(sums, i + u * C::kThreads, own);
#pragma unroll
        for (int v = 0; v < kVector; ++v) x[u][v] += own[v];
        finish(spots[u], x[u]);
      }
    }
  }

  const GemmProblem& p_;
  const E& epilogue_;
  unsigned char* shared_;
  unsigned char* tables_;
  typename E::Sums gathered_ = E::no_sums();
  unsigned batch_ = 0;
  int m0_ = 0, n0_ = 0;
};

}  // namespace tenon::cuda
