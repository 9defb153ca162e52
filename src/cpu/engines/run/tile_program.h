// TileProgram: a map program compiled to tile operations with registers, and how it runs. All
// decisions depend on sizes alone, never on the number of threads.
//
// The iteration space has its axes merged where every view allows, into `rows` rows of `length`
// elements. Where rows are short, a tile holds several whole rows ("whole rows": one pass).
// Otherwise a tile is a piece of one row; a row reduction then ends a pass over the row, and the
// next pass starts with its result. Values have three levels: one per run, one per row, one per
// element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cpu/kernels/contract.h"
#include "cpu/kernels/tile/tile_fused.h"
#include "cpu/kernels/tile/tile_table.h"
#include "plan/program/engine.h"

namespace tenon::cpu {

constexpr std::int64_t kTileElements = 1024;  // most elements of a tile of whole rows
constexpr std::int64_t kShortestFused = 16;   // elements of a row that a fused loop takes
constexpr std::int64_t kMaxFusedRows = kTileElements / kShortestFused;  // rows of a tile

/// A view over the merged iteration space.
struct TileView {
  ValueId value = kNoValue;
  std::int64_t offset = 0;
  std::vector<std::int64_t> stride;  // of the outer axes
  std::int64_t inner = 0;            // along the row
  std::int64_t row_stride = 0;       // between any two neighbouring rows, if linear
  bool linear = false;
  int item = 0;  // bytes of an element
};

/// Number of elements that an operation works on: one, one per row of the tile, or the whole tile.
enum class TileCount : std::uint8_t { One, Rows, All };

struct TileOp {
  enum class Kind : std::uint8_t {
    Compute,
    Fill,
    Expand,
    Load,
    Store,
    Iota,
    Random,
    RowReduce,
    ArgReduce,
    ColReduce,
    Fused
  };
  Kind kind = Kind::Compute;
  TileCount count = TileCount::One;
  int out = 0, a = 0, b = 0, c = 0;  // slots; 0 is none
  int view = -1;
  int column = -1;
  std::int64_t number = 0;  // Fill: elements (0: by count); Random: increment of the counter
  TileLoop compute = nullptr;
  TileExpand expand = nullptr;
  TileLoad load = nullptr;
  TileStore store = nullptr;
  TileIota iota = nullptr;
  TileRandom random = nullptr;
  TileRowReduce row = nullptr;
  TileColReduce col = nullptr;
  TileArgReduce arg = nullptr;
};

/// The location of an operand: an offset in the worker's scratch, a constant, or memory to which
/// each tile binds it.
struct TileSlot {
  enum class Kind : std::uint8_t { None, Register, Scratch, Constant, View, Accumulator, Buffer };
  Kind kind = Kind::None;
  TileType type = TileType::F32;
  int view = -1;
  std::int64_t offset = 0;  // bytes in scratch; Constant: its index
};

/// One pass along a row (for whole rows the only pass): the operations once per row, then those for
/// each tile.
struct TilePass {
  std::vector<int> row_binds, tile_binds;  // slots bound to memory
  std::vector<TileOp> row_ops, tile_ops;
};

/// A reduction over other axes than the row's: partial results per chunk, combined in the order of
/// the chunks.
struct TileColumn {
  Op reduction = Op::Sum;
  TileType type = TileType::F64;
  std::int64_t neutral = 0;  // bits of the neutral element
  TileView view;             // into the partial results
  std::int64_t count = 0;    // results
  ValueId value = kNoValue;
  DType dtype = DType::Float32;
  std::int64_t partial_offset = 0;  // in elements of 8 bytes, within one part
};

/// One loop for all operations on an element (tile_fused.h): the slots of its leaves.
struct TileFused {
  decltype(FusedLoop::run) loop = nullptr;
  std::vector<int> elements, scalars, outs;
  std::vector<bool> per_row;  // by scalar: true if each row of the tile has its own value
};

/// How the iteration space is cut: into blocks of rows, and of columns where that is allowed.
struct TileChunks {
  std::int64_t rows = 1, columns = 1;  // of a chunk
  std::int64_t row_blocks = 1, col_blocks = 1;
  std::int64_t parts = 1;       // arrays of partial results
  bool split_results = false;   // chunks own disjoint results: one part serves all
  bool part_per_chunk = false;  // else a part for each block of rows
  std::int64_t lead_rows = 1;   // split_results: rows for one step of the leading axes
  std::int64_t lead = 1;        // split_results: steps
};

/// The caller of the program. A map region runs it over the whole iteration space. A contraction
/// runs it as its epilogue, over rectangles of an unmerged space [batch, rows, columns]. Tiles of
/// an epilogue never span rows, unless the rectangles are whole rows without gaps.
enum class TileUse : std::uint8_t { LoopNest, Epilogue, RowsEpilogue };

class TileProgram {
 public:
  TileProgram(const MapProgram& map, std::span<const Value> values, TileUse use);

  void run(const Binding& binding) const;
  std::size_t workspace_bytes(int threads) const;
  /// Prefetches the parts of the program that run() reads. In a plan of thousands of steps the
  /// program is not in cache when its step starts, and the address of each part is read from the
  /// part before it.
  void prefetch() const;

  /// Runs a rectangle of an epilogue's space. `scratch`: scratch_bytes() of this worker, 64-byte
  /// aligned. `part`: part_elements() partial results; results of other rows are not changed.
  void run_rectangle(const Binding& binding, std::byte* scratch, std::int64_t* part,
                     const Rectangle& place, const void* block, std::int64_t ld) const;
  /// Runs whole rows of a RowsEpilogue's space; their accumulators are contiguous.
  void run_rows(const Binding& binding, std::byte* scratch, std::int64_t* part, std::int64_t batch,
                std::int64_t row0, std::int64_t row1, const void* block) const;
  /// Adds an epilogue's partial results in order and stores the results.
  void combine(const Binding& binding, std::byte* scratch, std::int64_t* partials,
               std::int64_t parts) const;
  std::int64_t part_elements() const { return part_elements_; }
  std::size_t scratch_bytes() const { return static_cast<std::size_t>(scratch_bytes_); }
  int accumulator_bytes() const { return accumulator_bytes_; }
  /// True if all operations on an element are one loop.
  bool is_fused() const { return fused_.loop != nullptr; }
  /// True if, in addition, nothing else is computed for a row of an epilogue's rectangle.
  bool fuses_rows() const { return is_fused() && passes_[0].row_ops.empty(); }

 private:
  friend class TileCompiler;
  friend class TileRun;

  void clear_rows(std::int64_t* part, std::int64_t row0, std::int64_t row1) const;

  const TileTable* table_ = nullptr;
  std::vector<std::int64_t> outer_;  // sizes of the outer axes
  std::int64_t rows_ = 1, length_ = 1;
  std::int64_t tile_rows_ = 1, tile_length_ = 1;  // most rows and elements of a tile
  bool single_pass_ = true, needs_coordinates_ = false;
  std::vector<TileView> views_;
  std::vector<int> fetched_;  // views whose memory is prefetched before their tile
  std::vector<TileSlot> slots_;
  std::vector<std::int64_t> constants_;
  std::vector<int> chunk_binds_;
  std::vector<TileOp> chunk_ops_;
  std::vector<TilePass> passes_;
  std::vector<TileColumn> columns_;
  TileFused fused_;
  std::int64_t part_elements_ = 0;
  TileChunks chunks_;
  int accumulator_slot_ = 0;
  int accumulator_bytes_ = 4;
  std::int64_t scratch_bytes_ = 0;
};

/// The bits of a number as an element of the dtype's compute type: truncated and wrapped, or
/// rounded.
std::int64_t tile_number(DType dtype, Scalar number);

/// True if TileProgram can run the map program; otherwise *why has the reason.
bool tile_program_claims(const MapProgram& map, bool epilogue, std::string* why);

}  // namespace tenon::cpu
