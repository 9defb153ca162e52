// Tables of vectorised loops over tiles: short contiguous arrays that stay in the L1 cache.
//
// Tiles hold one of four compute types. Bool, uint8 and int8 are computed in int32 and wrapped to
// their width after each op. Float16 and bfloat16 are computed in float and rounded where they are
// stored or cast. Loops may run in place (out == an argument of the same width); otherwise
// arguments and results must not overlap. No loop reads or writes outside [0, n).
#pragma once

#include <cstdint>

#include <tenon/dtype.h>

#include "graph/op.h"

namespace tenon::cpu {

enum class TileType : std::uint8_t { F32, F64, I32, I64 };
inline constexpr int kTileTypes = 4;

constexpr TileType tile_type(DType dtype) {
  switch (dtype) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return TileType::F32;
    case DType::Float64:
      return TileType::F64;
    case DType::Int64:
      return TileType::I64;
    default:
      return TileType::I32;
  }
}
constexpr int tile_size(TileType type) {
  return type == TileType::F32 || type == TileType::I32 ? 4 : 8;
}
/// True if a tile of the dtype has the same layout as its memory.
constexpr bool is_tile_dtype(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Int32 ||
         dtype == DType::Int64;
}

/// The accumulator of a compute type for sums, products and extrema: double or int64.
constexpr TileType sum_type(TileType type) {
  return type == TileType::F32 || type == TileType::F64 ? TileType::F64 : TileType::I64;
}

/// out[i] = f(a[i], b[i], c[i]); in the variants for scalars, a or b is one element. Predicates and
/// Where's condition are int32.
using TileLoop = void (*)(std::int64_t n, void* out, const void* a, const void* b, const void* c);
/// dst, contiguous rows x len of the compute type, from src[r * row_stride + j * stride] of the
/// memory type.
using TileLoad = void (*)(std::int64_t rows, std::int64_t len, void* dst, const void* src,
                          std::int64_t row_stride, std::int64_t stride);
/// The reverse.
using TileStore = void (*)(std::int64_t rows, std::int64_t len, void* dst, const void* src,
                           std::int64_t row_stride, std::int64_t stride);
/// out[r * len + j] = values[r].
using TileExpand = void (*)(std::int64_t rows, std::int64_t len, void* out, const void* values);
/// sums[r * stride] = sums[r * stride] (op) x[r * len] (op) … (op) x[r * len + len - 1].
using TileRowReduce = void (*)(std::int64_t rows, std::int64_t len, void* sums, std::int64_t stride,
                               const void* x);
/// sums[r * row_stride + j] = sums[…] (op) x[r * len + j].
using TileColReduce = void (*)(std::int64_t rows, std::int64_t len, void* sums,
                               std::int64_t row_stride, const void* x);
/// Index of the first extremum of each row, counted from `start`; continues from index[r] and
/// best[r] unless start is 0.
using TileArgReduce = void (*)(std::int64_t rows, std::int64_t len, std::int64_t* index, void* best,
                               const void* x, std::int64_t start);
/// out[r * len + j] = base + r * row_stride + j * stride, converted.
using TileIota = void (*)(std::int64_t rows, std::int64_t len, void* out, std::int64_t base,
                          std::int64_t row_stride, std::int64_t stride);
/// Elements first … first + n - 1 of the stream (key, draw): float, or int64 for bits.
using TileRandom = void (*)(std::int64_t n, void* out, std::uint64_t key, std::uint64_t draw,
                            std::int64_t first);

/// Two loops, of which the second takes the first's result as its first argument, and the loop that
/// does both: out[i] = second(first(a[i], b[i]), c[i]).
struct TilePair {
  TileLoop first = nullptr, second = nullptr, both = nullptr;
};
inline constexpr int kTilePairs = 6;

struct TileTable {
  TileLoop op[kOpCount][kTileTypes] =
      {};  // by the type of the arguments (Where: of the second); null: no such op
  TileLoop op_vs[kOpCount][kTileTypes] = {};   // second argument a scalar; null: expand it
  TileLoop op_sv[kOpCount][kTileTypes] = {};   // first argument a scalar; null: expand it
  TileLoop cast[kTileTypes][kTileTypes] = {};  // from, to; null where they are equal
  TileLoop to_bool[kTileTypes] = {};           // a != 0
  TileLoop rounded[kDTypeCount] =
      {};  // rounds or wraps a tile to the dtype; null if the dtype needs no rounding
  TileLoad load[kDTypeCount] = {};
  TileStore store[kDTypeCount] = {};
  TileExpand expand4 = nullptr, expand8 = nullptr;  // by bytes of an element
  TileRowReduce row[kOpCount][kTileTypes] = {};
  TileColReduce col[kOpCount][kTileTypes] = {};
  TileArgReduce arg_max[kTileTypes] = {}, arg_min[kTileTypes] = {};
  TileIota iota[kTileTypes] = {};
  TileRandom random[3] = {};  // by RandomKind
  TilePair pairs[kTilePairs] = {};
};

const TileTable& tile_table_base();
const TileTable& tile_table_avx2();
const TileTable& tile_table_avx512();
/// The table for best_isa().
const TileTable& tile_table();

}  // namespace tenon::cpu
