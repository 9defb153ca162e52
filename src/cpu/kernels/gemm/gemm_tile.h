// The inner loops of all contractions, chosen once per call by instruction set.
//
// A register tile is mr rows by nv vectors of results. It reads A as one broadcast scalar a row and
// B one vector at a time. Elements of packed operands are 32-bit words: a float, or
// (KernelSet::pairs, Math::Bf16) two neighbouring bfloat16 of the reduction. There is no policy
// here: gemm.cpp and conv2d.cpp decide what to pack, how to cut the work and which thread runs it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/kernels/contract.h"

namespace tenon::cpu {

constexpr int kMaxMr = 14;  // rows of a tile
constexpr int kMaxWindowRows = 8;
constexpr int kMaxWindowVectors = 2;
// Window tiles of this many rows and one column store any number of columns. All other window tiles
// store nv * lanes columns.
constexpr int kProductRows = 8;
constexpr int kMaxNr = 64;  // floats of a tile's row
constexpr int kSpreadTaps = 3;
constexpr int kMaxRowStreams = 8;

/// Memory that a column of tiles prefetches into the L2 cache while it computes: from `at` on,
/// `step` bytes further after every two steps of the reduction, and `next` bytes more after a tile.
struct Stream {
  const char* at = nullptr;
  std::int64_t step = 0, next = 0;

  /// Advances past `tiles` tiles of `steps` steps.
  void pass(std::int64_t tiles, std::int64_t steps) { at += tiles * (steps / 2 * step + next); }
};

/// Rows of a matrix, prefetched while a tile computes, one for each row of the tile: the first and
/// last of `bytes` at `at`, the next row `row` bytes further, the next tile's first row `next`
/// bytes further.
struct RowStream {
  const char* at = nullptr;
  std::int64_t bytes = 0, row = 0, next = 0;
};

struct TileArgs {
  std::int64_t steps = 0;  // of the reduction, in words
  const float* a = nullptr;
  const float* b = nullptr;
  std::int64_t a_step = 0;              // words from one step to the next (strided A)
  std::int64_t b_step = 0;              // the same for B (strided B)
  std::int64_t b_vector = 0;            // words from one vector of B to the next (table B)
  std::int64_t a_row = 0;               // words from one window row to the next (window A)
  const std::int32_t* table = nullptr;  // offset of each step (table B, window A)
  float* c = nullptr;
  std::int64_t ldc = 0;
  std::int64_t cols = 0;        // columns stored, table B: of each vector; nv * lanes are computed
  std::int64_t c_vector = 0;    // words of c from one vector to the next (table B)
  const float* sums = nullptr;  // added to the result where not null; may be c
  std::int64_t ld_sums = 0;
  // Strided: a column of `tiles` tiles; a_next, c_next and sums_next are words from one tile's A,
  // results and sums to the next one's.
  std::int64_t tiles = 1;
  std::int64_t a_next = 0, c_next = 0, sums_next = 0;
  Stream ahead_a, ahead_b;
  int reads = 0;
  const RowStream* read = nullptr;  // kMaxRowStreams at most
};

/// c (mr x cols) = sum over steps of A(i, step) * B(step, j), plus sums, with one of these ways to
/// reach an element:
///   strided A: a[step * a_step + i]                               strided B: b[step * b_step + j]
///   window A:  a[table[step] + (i / rq) * a_row + i % rq]         table B:   b[table[step] + v *
///   b_vector + lane]
using TileFn = void (*)(const TileArgs&);

// A spread tile has a whole row of q inputs and no outputs but those that it reaches: c row i (of
// q + kSpreadTaps - 1) = sum over steps and taps t of a[table[step * kSpreadTaps] + i - t] *
// B(step * kSpreadTaps + t, j) where 0 <= i - t < q. Nothing is multiplied with padding.

/// Sums of products of whole vectors: c[j * c_tap + i * lanes + lane] += sum over steps of
/// a[i * a_row + step * lanes + lane] * b[taps[j] + step * lanes + lane]. The lanes are added up by
/// the caller.
struct DotArgs {
  std::int64_t steps = 0;  // vectors
  const float* a = nullptr;
  std::int64_t a_row = 0;
  const float* b = nullptr;
  const std::int64_t* taps = nullptr;
  float* c = nullptr;
  std::int64_t c_tap = 0;
};
using DotFn = void (*)(const DotArgs&);

/// A block tile: c (rows x cols, at most kBlockEdge x kBlockEdge) = or += the sum over steps of
/// A(i, word) * B(word, j) for kBlockWords words a step (or as many as block_begin was told), pairs
/// of bfloat16:
///   a[a_table[step] + i * a_row + word]                 b[b_table[step] + word * b_row + j]
/// Where there is no table, steps are a_step or b_step words apart. Whole halves of the tile are
/// read, so elements beyond rows and cols must be readable; their values do not matter.
struct BlockArgs {
  std::int64_t steps = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  const std::int32_t* a_table = nullptr;
  const std::int32_t* b_table = nullptr;
  std::int64_t a_step = 0, b_step = 0;
  std::int64_t a_row = 0, b_row = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
  int rows = 0, cols = 0;
  bool accumulate = false;
};
using BlockFn = void (*)(const BlockArgs&);

constexpr int kBlockEdge = 32;
constexpr int kBlockHalf = 16;
constexpr int kBlockWords = 16;

constexpr int kMaxDotRows = 6;
constexpr int kMaxDotTaps = 3;

/// Row i of a matrix to pack is `rows[i]`, contiguous along the reduction.
struct RowSource {
  const void* const* rows = nullptr;
  int count = 0;
  DType dtype = DType::Float32;
};

/// `count` neighbouring columns of a tile and where they go in a row of the result.
struct Segment {
  int from = 0;
  int count = 0;
  std::int64_t to = 0;
};

struct KernelSet {
  int lanes = 4;       // floats of a vector
  bool pairs = false;  // Math::Bf16 packs two bfloat16 in a word and multiplies them natively
  int max_mr[5] = {};  // most rows of a tile of nv vectors; nv is 1, 2 or 4

  // Indexed by [pairs words][nv][mr]; window by [pairs words][nv][rp][rq] for nv up to
  // kMaxWindowVectors. Null where there is no such tile.
  TileFn strided[2][5][kMaxMr + 1] = {};
  TileFn table_b[2][5][kMaxMr + 1] = {};
  DotFn dot[2][kMaxDotRows + 1][kMaxDotTaps + 1] = {};  // by [pairs words][mk][number of taps]
  int max_dot_rows = 1;
  TileFn window[2][kMaxWindowVectors + 1][kMaxWindowRows + 1][kMaxMr + 1] = {};
  TileFn spread[2][5][kMaxMr + 1] = {};  // by [pairs words][nv][q]

  /// Matrix registers for pairs, where there are any: between begin and end on the same thread.
  BlockFn block_tile = nullptr;
  void (*block_begin)(int words) = nullptr;
  void (*block_end)() = nullptr;

  /// dst[step * width + i] = word of row i for i < count, zero up to width. k elements of the
  /// reduction.
  void (*pack_transposed)(const RowSource& source, std::int64_t k, Math math, float* dst,
                          int width) = nullptr;
  /// dst[step * width + i] = word of row i of `lo` and of `hi` (null: zero) for i < lo.count, zero
  /// up to width. Only with pairs.
  void (*zip_transposed)(const RowSource& lo, const void* const* hi, std::int64_t k, float* dst,
                         int width) = nullptr;
  /// dst[step * width + j] = word of element (step, j) for j < cols, zero up to width; src is
  /// contiguous along j.
  void (*pack_rows)(const void* src, DType dtype, std::int64_t row_stride, std::int64_t k, int cols,
                    Math math, float* dst, std::int64_t width) = nullptr;
  /// dst[i] = the word of src[2 i] and src[2 i + 1], zero beyond count; count <= 2 * lanes, lanes
  /// words are written. Only with pairs.
  void (*pair_row)(const void* src, DType dtype, int count, float* dst) = nullptr;
  /// dst[i] = word of (lo[i], hi[i]); without pairs, or with hi null, of lo[i] alone.
  void (*convert)(const void* lo, const void* hi, DType dtype, std::int64_t count, Math math,
                  float* dst) = nullptr;
  /// The same for rows of `count` words: sources are src_pitch elements apart, results dst_pitch.
  void (*convert_rows)(const void* lo, const void* hi, DType dtype, std::int64_t rows,
                       std::int64_t src_pitch, std::int64_t count, Math math, float* dst,
                       std::int64_t dst_pitch) = nullptr;
  /// dst[row * dst_pitch + i] = src[row * src_pitch + i * step] for i < count.
  void (*take_rows)(const float* src, std::int64_t rows, std::int64_t src_pitch, std::int64_t step,
                    std::int64_t count, float* dst, std::int64_t dst_pitch) = nullptr;
  /// dst[j * dst_stride + i] = tile[i * ld + j] for i < rows, j < cols.
  void (*store_transposed)(const float* tile, std::int64_t ld, int rows, int cols, float* dst,
                           std::int64_t dst_stride) = nullptr;
  /// dst[i * dst_stride + segment.to + j] = tile[i * ld + segment.from + j] for all rows i and
  /// segments.
  void (*store_segments)(const float* tile, std::int64_t ld, int rows, const Segment* segments,
                         int count, float* dst, std::int64_t dst_stride) = nullptr;
  /// sum += part, element by element.
  void (*add)(float* sum, const float* part, std::int64_t count) = nullptr;
  /// FLOP of `rounds` rounds of independent multiply-adds in registers, for measuring the peak.
  double (*burn)(std::int64_t rounds, bool pair_words) = nullptr;
};

/// The kernels of best_isa() for vectors; Math::Bf16 on pairs only where those are fast.
const KernelSet& kernel_set();
/// The kernels with block tiles, or null where best_isa() has none.
const KernelSet* block_kernel_set();

const KernelSet& base_kernels();
const KernelSet& avx2_kernels();
const KernelSet& avx512_kernels();  // without native bfloat16
const KernelSet& avx512bf16_kernels();
const KernelSet& amx_kernels();
const KernelSet& neon_kernels();

}  // namespace tenon::cpu
