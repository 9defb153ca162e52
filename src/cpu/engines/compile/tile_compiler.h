// The compiler from map programs to tile operations: its state, shared by its files.
//
// tile_layout.cpp merges axes and chooses tiles. tile_emit.cpp orders passes and turns instructions
// into operations, tile_reduce.cpp does so for reductions. tile_registers.cpp assigns registers.
// tile_chunks.cpp cuts the work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/index.h"
#include "cpu/engines/run/tile_program.h"

namespace tenon::cpu {

inline int code(TileType type) { return static_cast<int>(type); }
inline int code(DType dtype) { return static_cast<int>(dtype); }
inline int code(Op op) { return static_cast<int>(op); }

/// One value per run, per row, or per element.
enum class Level { Run, Row, Element };

/// Approximate cost of an element, in units of 10 ps.
std::int64_t cost_of(const MapInstr& instr);

/// The loop of an element-wise op over arguments of this type; null if there is none.
TileLoop loop_of(const TileTable& table, const MapInstr& instr, TileType type);

class TileCompiler {
 public:
  TileCompiler(TileProgram& program, const MapProgram& map, std::span<const Value> values,
               TileUse use)
      : p_(program),
        map_(map),
        values_(values),
        epilogue_(use != TileUse::LoopNest),
        whole_rows_(use != TileUse::Epilogue) {}
  void compile();

 private:
  bool has_view(const MapInstr& instr) const;
  /// The views in order: of the instructions (empty if they have none), of the stores, of the
  /// reductions.
  void merge_axes();
  bool merges(int outer, int inner) const;
  void make_views();
  void set_linear(TileView& view) const;
  int instr_view(int i) const { return i; }
  int store_view(std::size_t s) const { return static_cast<int>(map_.instrs.size() + s); }
  const TileView& view(int v) const { return p_.views_[at(v)]; }
  Level view_level(const TileView& v) const;
  void find_levels();
  bool is_loaded(ValueId value) const;
  bool is_stored(ValueId value) const;
  void choose_tile(std::int64_t elements);
  /// True if memory is read in another order than it is stored (a transposition). A tile then holds
  /// several rows or, where rows may be cut, pieces of several rows.
  bool reads_across() const;
  bool may_block() const;
  bool has_whole_rows() const { return p_.tile_length_ == p_.length_; }
  bool row_is_scalar() const { return p_.tile_rows_ == 1; }
  /// Number of elements in a tile of a value of this level.
  TileCount count_of(Level level) const;
  void emit();
  TilePass& pass() { return p_.passes_[at(pass_)]; }
  std::vector<TileOp>& ops_of(Level level);
  std::vector<int>& binds_of(Level level);
  int new_slot(TileSlot::Kind kind, TileType type);
  /// A slot with a fixed place in scratch, for values that outlive a tile.
  int scratch_slot(TileType type, std::int64_t elements);
  int result_slot(Level level, TileType type);
  int view_slot(Level level, TileType type, int v);
  /// Elements that one pass over a row computes and a later pass uses are kept for the row if they
  /// fit; otherwise they are recomputed.
  void place_crossing(int passes);
  /// True for a single cheap operation on a loaded value: recomputing it costs less than keeping
  /// it.
  bool is_cheap(int i) const;
  bool crosses(int i) const;
  /// A store to memory that the region also loads waits for the last pass.
  int store_pass(std::size_t s) const;
  void emit_pass();
  /// Emits one loop for all element operations of the program, if such a loop exists.
  bool emit_fused();
  bool may_fuse() const;
  /// False if a store to the same value uses another offset or other strides. True if no store
  /// overwrites the view.
  bool is_overwritten_in_place(const TileView& v) const;
  /// A view as memory that a fused loop accesses directly.
  int memory_slot(int v);
  /// Stores of one element per row come after the last pass, because a tile of the row may still
  /// read the memory that they overwrite.
  void emit_row_stores();
  Level stored_level(std::size_t s) const;
  TileOp make_store(std::size_t s, Level level);
  /// The value of instruction i with exactly `count` elements per tile.
  int operand(int i, TileCount count);
  int native(int i);
  int emit_number(const MapInstr& instr);
  int emit_accumulator(const MapInstr& instr);
  /// True if a tile's elements are contiguous in memory.
  bool is_contiguous(const TileView& v, TileCount count) const;
  bool is_store_source(int i) const;
  int emit_load(int i);
  /// True if the value is the same in every tile of whole rows, so that it is computed once per
  /// chunk.
  bool repeats_in_tiles(const TileView& v, Level level) const;
  int emit_affine(int i);
  int emit_random(int i);
  TileOp unary(TileLoop fn, TileCount count, int a, Level level, TileType type);
  /// Rounds or wraps the result of `last` in place to a dtype of lower precision than its compute
  /// type.
  void round_result(const TileOp& last, DType dtype, std::vector<TileOp>& ops) const;
  int emit_compute(int i);
  int element_slot(int i, Level level);
  /// For a cast to a 16-bit type: true if only stores use its result, because stores round too.
  bool rounds_in_store(int i) const;
  int emit_cast(int i);
  void emit_row_reduce(int i);
  /// The slot of a running result, which starts as `bits`. For tiles of whole rows it is a register
  /// of the tile, otherwise it lives until the end of the row.
  int running_slot(TileType type, std::int64_t bits);
  int emit_sum(const MapInstr& instr, int x, TileType source);
  int emit_arg(const MapInstr& instr, int x, TileType source);
  TileColumn column_of(std::size_t r) const;
  void emit_column(std::size_t r);
  bool reads_value(const TileOp& op, ValueId value) const;
  /// True if the contraction's result may use the memory of one of the stores.
  bool reads_accumulator(const TileOp& op) const;
  /// A result whose store needs no conversion is computed in the store's memory, unless a later
  /// operation of the tile still reads the old contents.
  void elide_stores(TilePass& pass);
  /// One loop for two consecutive operations if nothing else reads the value between them.
  void pair_loops(TilePass& pass) const;
  TileLoop paired(const TileOp& first, const TileOp& second) const;
  /// Linear scan over the operations of a tile. Returns the bytes of all registers.
  std::int64_t give_registers(TilePass& pass, std::int64_t base);
  void choose_chunks();
  bool view_is_flat(const TileView& v) const;
  /// Leading axes that every reduction keeps: chunks along these axes own their results.
  void find_lead(std::int64_t elements);
  /// Uses fewer and larger chunks if partial results would cost more than they gain.
  void limit_parts(std::int64_t results, bool inner_kept);

  TileProgram& p_;
  const MapProgram& map_;
  const std::span<const Value> values_;
  const bool epilogue_, whole_rows_;  // tiles may hold several rows
  std::int64_t least_rows_ = 1;       // of a tile, if its rows are whole
  bool tall_ = false;                 // extra rows, because memory is read transposed
  std::vector<View> raw_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::vector<std::int64_t>> merged_;
  std::vector<Level> level_;
  std::vector<int> depth_;  // number of row reductions before the value
  int last_depth_ = 0;
  std::int64_t cost_ = 0;
  std::vector<ValueId> loaded_, stored_;
  std::vector<int> native_, filled_, expanded_, buffer_;  // slots of each instruction
  std::vector<int> buffered_in_;                          // pass that fills the buffer, or -1
  int pass_ = 0;
  std::int64_t capacity_ = 0, scratch_ = 0, register_bytes_ = 0;
};

}  // namespace tenon::cpu
