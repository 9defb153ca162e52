// The compiler from map programs to tile operations: its state, and what its files share.
//
// tile_layout.cpp merges axes and chooses tiles; tile_emit.cpp orders passes and turns instructions
// into operations, tile_reduce.cpp reductions; tile_registers.cpp places results; tile_chunks.cpp
// cuts the work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/index.h"
#include "cpu/engines/tile_program.h"

namespace tenon::cpu {

inline int code(TileType type) { return static_cast<int>(type); }
inline int code(DType dtype) { return static_cast<int>(dtype); }
inline int code(Op op) { return static_cast<int>(op); }

/// One value for the run, one a row, one an element.
enum class Level { Run, Row, Element };

/// Rough cost of an element, in units of 10 ps.
std::int64_t cost_of(const MapInstr& instr);

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
  /// Views in order: of the instructions (those that have none: empty), of the stores, of the
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
  /// Whether memory is crossed against its order (a transposition): tiles hold several rows then,
  /// blocks of pieces of them where these may stand alone.
  bool reads_across() const;
  bool may_block() const;
  bool has_whole_rows() const { return p_.tile_length_ == p_.length_; }
  bool row_is_scalar() const { return p_.tile_rows_ == 1; }
  /// How many elements of a tile a value of this level has.
  TileCount count_of(Level level) const;
  void emit();
  TilePass& pass() { return p_.passes_[at(pass_)]; }
  std::vector<TileOp>& ops_of(Level level);
  std::vector<int>& binds_of(Level level);
  int new_slot(TileSlot::Kind kind, TileType type);
  /// A slot that keeps its place in scratch: for values that outlive a tile.
  int scratch_slot(TileType type, std::int64_t elements);
  int result_slot(Level level, TileType type);
  int view_slot(Level level, TileType type, int v);
  /// Elements computed in one pass over a row and used in a later one are kept for the row where
  /// that fits; else they are computed again.
  void place_crossing(int passes);
  /// One cheap operation on what is loaded: computing it again costs less than keeping it.
  bool is_cheap(int i) const;
  bool crosses(int i) const;
  /// Stores of what the region also loads wait for the last pass.
  int store_pass(std::size_t s) const;
  void emit_pass();
  /// A loop of its own for all that the program does to elements, where there is one.
  bool emit_fused();
  bool may_fuse() const;
  /// Or not at all.
  bool is_overwritten_in_place(const TileView& v) const;
  /// A view as memory that a fused loop reads or writes itself.
  int memory_slot(int v);
  /// Stores of one element a row: after the last kernel, since a tile of the row may still read
  /// what they overwrite.
  void emit_row_stores();
  Level stored_level(std::size_t s) const;
  TileOp make_store(std::size_t s, Level level);
  /// The value of instruction i with exactly `count` elements a tile.
  int operand(int i, TileCount count);
  int native(int i);
  int emit_number(const MapInstr& instr);
  int emit_accumulator(const MapInstr& instr);
  /// Whether a tile's elements lie side by side in memory.
  bool is_contiguous(const TileView& v, TileCount count) const;
  bool is_store_source(int i) const;
  int emit_load(int i);
  /// The same in every tile of whole rows: made once for a chunk.
  bool repeats_in_tiles(const TileView& v, Level level) const;
  int emit_affine(int i);
  int emit_random(int i);
  TileOp unary(TileLoop fn, TileCount count, int a, Level level, TileType type);
  /// Rounds or wraps the result of `last` to a dtype of lower precision than its compute type, in
  /// place.
  void narrow(const TileOp& last, DType dtype, std::vector<TileOp>& ops) const;
  int emit_compute(int i);
  int element_slot(int i, Level level);
  /// Of a cast to a 16-bit type: nobody but stores, which round too, has its result.
  bool rounds_in_store(int i) const;
  int emit_cast(int i);
  void emit_row_reduce(int i);
  /// The slot of a running result: in whole rows a register of the tile, else kept along the row.
  /// Set to `bits` at its start.
  int running_slot(TileType type, std::int64_t bits);
  int emit_sum(const MapInstr& instr, int x, TileType source);
  int emit_arg(const MapInstr& instr, int x, TileType source);
  TileColumn column_of(std::size_t r) const;
  void emit_column(std::size_t r);
  bool reads_value(const TileOp& op, ValueId value) const;
  /// The contraction's result may stand where one of the stores goes.
  bool reads_accumulator(const TileOp& op) const;
  /// A result whose store needs no conversion is computed where it is stored, unless a later
  /// operation of the tile still reads what stood there.
  void elide_stores(TilePass& pass);
  /// One loop for two operations that follow one another, where nobody else reads what is between.
  void pair_loops(TilePass& pass) const;
  TileLoop paired(const TileOp& first, const TileOp& second) const;
  /// Linear scan over the operations of a tile. Returns the bytes of all registers.
  std::int64_t give_registers(TilePass& pass, std::int64_t base);
  void choose_chunks();
  bool view_is_flat(const TileView& v) const;
  /// Leading axes that every reduction keeps: chunks cut along them own their results.
  void find_lead(std::int64_t elements);
  /// Fewer and larger chunks where partial results would cost more than they gain.
  void limit_parts(std::int64_t results, bool inner_kept);

  TileProgram& p_;
  const MapProgram& map_;
  const std::span<const Value> values_;
  const bool epilogue_, whole_rows_;  // tiles may hold several rows
  bool tall_ = false;  // tiles hold more rows than their size asks for, as they are read across
  std::vector<View> raw_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::vector<std::int64_t>> merged_;
  std::vector<Level> level_;
  std::vector<int> depth_;  // row reductions that a value waits for
  int last_depth_ = 0;
  std::int64_t cost_ = 0;
  std::vector<ValueId> loaded_, stored_;
  std::vector<int> native_, filled_, expanded_, buffer_;  // slots of each instruction
  std::vector<int> buffered_in_;                          // pass that fills the buffer, or -1
  int pass_ = 0;
  std::int64_t capacity_ = 0, scratch_ = 0, register_bytes_ = 0;
};

}  // namespace tenon::cpu
