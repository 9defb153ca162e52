// Compiling a map program into tile operations: merging axes, choosing tiles, ordering passes,
// giving out registers.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/str.h"
#include "cpu/engines/tile_program.h"

#include <tenon/error.h>

namespace tenon::cpu {

namespace {

constexpr std::int64_t kBlockRows = 32;       // of a tile that is a block
constexpr std::int64_t kTileElements = 1024;  // most elements of a tile
constexpr std::int64_t kTileBytes =
    32 << 10;  // wanted for all registers: the first-level cache, with room for the streams
constexpr std::int64_t kBufferBytes =
    512 << 10;  // for values kept between passes over a row: the second-level cache
constexpr std::int64_t kChunkCost =
    1500000;  // of a chunk, in units of 10 ps: 15 us, against some 1 us to hand it out
constexpr std::int64_t kPartialBytes = 2 << 20;  // for partial results of reductions

std::size_t at(int i) { return static_cast<std::size_t>(i); }
int code(TileType type) { return static_cast<int>(type); }
int code(DType dtype) { return static_cast<int>(dtype); }
int code(Op op) { return static_cast<int>(op); }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}
constexpr std::int64_t divide_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit;
}

bool is_reduction(Op op) { return op >= Op::Sum && op <= Op::Min; }
bool is_arg(Op op) { return op == Op::ArgMax || op == Op::ArgMin; }

/// Kinds 0 and 1 are float32, 2 is int64.
bool is_random(const MapInstr& instr) {
  const std::int64_t kind = instr.attrs.i[0];
  return kind >= 0 && kind <= 2 && instr.dtype == (kind == 2 ? DType::Int64 : DType::Float32);
}

/// One value for the run, one a row, one an element.
enum class Level { Run, Row, Element };

/// Rough cost of an element, in units of 10 ps.
std::int64_t cost_of(const MapInstr& instr) {
  const bool wide = tile_type(instr.dtype) == TileType::F64;
  switch (instr.code) {
    case MapCode::Random:
      return instr.attrs.i[0] == 0 ? 150 : 400;
    case MapCode::RowReduce:
      return is_arg(instr.op) ? 20 : 6;
    case MapCode::Compute:
      break;
    default:
      return 10;
  }
  switch (instr.op) {
    case Op::Exp:
    case Op::Expm1:
    case Op::Log:
    case Op::Log1p:
    case Op::Tanh:
    case Op::Sigmoid:
    case Op::Erf:
      return wide ? 1500 : 60;
    case Op::Sin:
    case Op::Cos:
    case Op::Pow:
      return wide ? 2000 : 200;
    case Op::Remainder:
      return 1000;
    case Op::Div:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Reciprocal:
      return wide ? 60 : 20;
    default:
      return wide ? 10 : 5;
  }
}

}  // namespace

std::int64_t tile_number(DType dtype, double number) {
  const std::int64_t whole = number != number   ? 0
                             : number >= 0x1p63 ? INT64_MAX
                             : number < -0x1p63 ? INT64_MIN
                                                : static_cast<std::int64_t>(number);
  switch (dtype) {
    case DType::Bool:
      return number != 0;
    case DType::UInt8:
      return static_cast<std::uint8_t>(whole);
    case DType::Int8:
      return static_cast<std::uint32_t>(static_cast<std::int8_t>(whole));
    case DType::Int32:
      return static_cast<std::uint32_t>(whole);
    case DType::Int64:
      return whole;
    case DType::Float16:
      return std::bit_cast<std::uint32_t>(static_cast<float>(float16(static_cast<float>(number))));
    case DType::BFloat16:
      return std::bit_cast<std::uint32_t>(static_cast<float>(bfloat16(static_cast<float>(number))));
    case DType::Float32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(number));
    default:
      return std::bit_cast<std::int64_t>(number);
  }
}

class TileCompiler {
 public:
  TileCompiler(TileProgram& program, const MapProgram& map, std::span<const Value> values,
               bool epilogue)
      : p_(program), map_(map), values_(values), epilogue_(epilogue) {}

  void compile() {
    p_.table_ = &tile_table();
    merge_axes();
    make_views();
    find_levels();
    for (std::int64_t elements = kTileElements;; elements /= 2) {
      choose_tile(elements);
      emit();
      if (register_bytes_ <= kTileBytes || elements <= 256) break;
    }
    choose_chunks();
  }

 private:
  // ---- The space
  // ------------------------------------------------------------------------------------------------------------

  bool has_view(const MapInstr& instr) const {
    return instr.code == MapCode::Load || instr.code == MapCode::Affine;
  }

  /// Views in order: of the instructions (those that have none: empty), of the stores, of the
  /// reductions.
  void merge_axes() {
    const int rank = map_.space.rank();
    const int row_axis = rank - 1;
    for (const MapInstr& instr : map_.instrs) {
      raw_.push_back(has_view(instr) || instr.code == MapCode::Random ? instr.view : View());
      if (instr.code == MapCode::Random)
        std::fill(raw_.back().stride, raw_.back().stride + kMaxRank, 0);
      if (instr.per_row && rank > 0) raw_.back().stride[row_axis] = 0;
    }
    for (const MapStore& store : map_.stores) {
      raw_.push_back(store.view);
      if (map_.instrs[at(store.source)].per_row && rank > 0) raw_.back().stride[row_axis] = 0;
    }
    for (const MapReduce& reduce : map_.reduces) {
      View view;
      std::int64_t stride = 1;
      for (int d = rank - 1; d >= 0; --d) {
        if ((reduce.axes >> d) & 1u) continue;
        view.stride[d] = map_.space[d] == 1 ? 0 : stride;
        stride *= map_.space[d];
      }
      raw_.push_back(view);
    }
    const bool rows_matter = map_.has_rows || epilogue_;
    std::vector<int> axes;  // kept, outermost first
    for (int d = 0; d < rank; ++d)
      if (map_.space[d] != 1 || epilogue_ || (rows_matter && d == row_axis)) axes.push_back(d);
    sizes_.clear();
    merged_.assign(raw_.size(), {});
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const int d = axes[k];
      const bool keep_apart =
          epilogue_ || (map_.has_rows && d == row_axis) || !merges(k == 0 ? -1 : axes[k - 1], d);
      if (keep_apart || sizes_.empty()) {
        sizes_.push_back(map_.space[d]);
        for (std::size_t v = 0; v < raw_.size(); ++v) merged_[v].push_back(raw_[v].stride[d]);
      } else {
        sizes_.back() *= map_.space[d];
        for (std::size_t v = 0; v < raw_.size(); ++v) merged_[v].back() = raw_[v].stride[d];
      }
    }
    if (sizes_.empty()) {
      sizes_.push_back(1);
      for (auto& strides : merged_) strides.push_back(0);
    }
    p_.length_ = sizes_.back();
    p_.outer_.assign(sizes_.begin(), sizes_.end() - 1);
    p_.rows_ = 1;
    for (const std::int64_t size : p_.outer_) p_.rows_ *= size;
  }

  bool merges(int outer, int inner) const {
    if (outer < 0) return false;
    for (const View& view : raw_)
      if (view.stride[outer] != view.stride[inner] * map_.space[inner]) return false;
    return true;
  }

  void make_views() {
    for (std::size_t v = 0; v < raw_.size(); ++v) {
      TileView view;
      view.value = raw_[v].value;
      view.offset = raw_[v].offset;
      view.stride.assign(merged_[v].begin(), merged_[v].end() - 1);
      view.inner = p_.length_ == 1 && !epilogue_ ? 0 : merged_[v].back();
      set_linear(view);
      const bool memory = view.value != kNoValue;
      view.item = memory ? static_cast<int>(item_size(values_[at(view.value)].dtype)) : 1;
      p_.views_.push_back(view);
      p_.needs_coordinates_ = p_.needs_coordinates_ || !view.linear;
    }
  }

  void set_linear(TileView& view) const {
    view.linear = true;
    std::int64_t count = 1;  // rows inside one step of the axis
    view.row_stride = 0;
    bool known = false;
    for (std::size_t d = p_.outer_.size(); d-- > 0;) {
      if (p_.outer_[d] != 1) {
        if (!known) view.row_stride = view.stride[d];
        view.linear = view.linear && view.stride[d] == view.row_stride * count;
        known = true;
      }
      count *= p_.outer_[d];
    }
  }

  int instr_view(int i) const { return i; }
  int store_view(std::size_t s) const { return static_cast<int>(map_.instrs.size() + s); }
  const TileView& view(int v) const { return p_.views_[at(v)]; }

  Level view_level(const TileView& v) const {
    if (v.inner != 0) return Level::Element;
    for (std::size_t d = 0; d < v.stride.size(); ++d)
      if (v.stride[d] != 0 && p_.outer_[d] != 1) return Level::Row;
    return Level::Run;
  }

  void find_levels() {
    level_.resize(map_.instrs.size());
    depth_.resize(map_.instrs.size());
    for (std::size_t i = 0; i < map_.instrs.size(); ++i) {
      const MapInstr& instr = map_.instrs[i];
      Level level = Level::Run;
      int depth = 0;
      for (const int arg : instr.args) {
        if (arg < 0) continue;
        level = std::max(level, level_[at(arg)]);
        depth = std::max(depth, depth_[at(arg)]);
      }
      if (has_view(instr)) level = view_level(view(instr_view(static_cast<int>(i))));
      if (instr.code == MapCode::Accumulator) level = Level::Element;
      if (instr.code == MapCode::Random) level = instr.per_row ? Level::Row : Level::Element;
      if (instr.code == MapCode::RowReduce) {
        level = Level::Row;
        ++depth;
      }
      level_[i] = level;
      depth_[i] = depth;
      last_depth_ = std::max(last_depth_, depth);
      cost_ += cost_of(instr);
    }
    for (const MapInstr& instr : map_.instrs)
      if (instr.code == MapCode::Load) loaded_.push_back(instr.view.value);
    for (const MapStore& store : map_.stores) stored_.push_back(store.view.value);
  }

  bool is_loaded(ValueId value) const {
    return std::find(loaded_.begin(), loaded_.end(), value) != loaded_.end();
  }
  bool is_stored(ValueId value) const {
    return std::find(stored_.begin(), stored_.end(), value) != stored_.end();
  }

  // ---- Tiles
  // ----------------------------------------------------------------------------------------------------------------

  void choose_tile(std::int64_t elements) {
    const bool blocks = reads_across();
    p_.single_pass_ = !epilogue_ && (blocks || p_.length_ <= elements);
    if (blocks) {
      p_.tile_rows_ = std::min(kBlockRows, p_.rows_);
      p_.tile_length_ = std::min(elements / 32, p_.length_);
    } else if (p_.single_pass_) {
      p_.tile_length_ = p_.length_;
      const std::int64_t rows = elements / std::max<std::int64_t>(p_.length_, 1);
      p_.tile_rows_ = std::clamp<std::int64_t>(rows, 1, std::max<std::int64_t>(p_.rows_, 1));
    } else {
      p_.tile_rows_ = 1;
      p_.tile_length_ = std::min(elements, std::max<std::int64_t>(p_.length_, 1));
    }
    capacity_ = round_up(p_.tile_rows_ * std::max<std::int64_t>(p_.tile_length_, 1), 16);
  }

  /// Whether memory is crossed against its order (a transposition), so that tiles should be blocks
  /// of pieces of rows.
  bool reads_across() const {
    if (epilogue_ || map_.has_rows || p_.outer_.empty() || p_.outer_.back() < 8 ||
        p_.length_ <= kBlockRows)
      return false;
    bool across = false;
    for (std::size_t v = 0; v < p_.views_.size(); ++v) {
      const TileView& view = p_.views_[v];
      const bool stored = v >= map_.instrs.size() && v < map_.instrs.size() + map_.stores.size();
      if (stored && view.inner == 0) return false;
      const std::int64_t inner = std::abs(view.inner);
      if (view.value != kNoValue && inner * view.item >= 64 && std::abs(view.stride.back()) < inner)
        across = true;
    }
    for (const MapInstr& instr : map_.instrs)
      if (instr.code == MapCode::Random) return false;
    return across;
  }

  bool has_whole_rows() const { return p_.tile_length_ == p_.length_; }
  bool row_is_scalar() const { return p_.tile_rows_ == 1; }
  /// How many elements of a tile a value of this level has.
  TileCount count_of(Level level) const {
    if (level == Level::Element) return TileCount::All;
    return level == Level::Row && !row_is_scalar() ? TileCount::Rows : TileCount::One;
  }

  // ---- Emission
  // -------------------------------------------------------------------------------------------------------------

  void emit() {
    p_.slots_.assign(1, TileSlot());
    p_.constants_.clear();
    p_.chunk_binds_.clear();
    p_.chunk_ops_.clear();
    p_.columns_.clear();
    p_.accumulator_slot_ = 0;
    native_.assign(map_.instrs.size(), 0);
    filled_.assign(map_.instrs.size(), 0);
    scratch_ = 0;
    const int passes = p_.single_pass_ ? 1 : last_depth_ + 1;
    p_.passes_.assign(at(passes), TilePass());
    place_crossing(passes);
    for (pass_ = 0; pass_ < passes; ++pass_) emit_pass();
    pass_ = passes - 1;
    emit_row_stores();
    for (TilePass& pass : p_.passes_) elide_stores(pass);
    // The table of pointers stands first, then what lives for a chunk or a row, then the registers.
    const std::int64_t table_bytes =
        round_up(static_cast<std::int64_t>(p_.slots_.size() * sizeof(void*)), 64);
    for (TileSlot& slot : p_.slots_)
      if (slot.kind == TileSlot::Kind::Scratch || slot.kind == TileSlot::Kind::Buffer)
        slot.offset += table_bytes;
    const std::int64_t base = table_bytes + scratch_;
    register_bytes_ = 0;
    for (TilePass& pass : p_.passes_)
      register_bytes_ = std::max(register_bytes_, give_registers(pass, base));
    p_.scratch_bytes_ = round_up(std::max<std::int64_t>(base + register_bytes_, 4096), 64) + 64;
  }

  TilePass& pass() { return p_.passes_[at(pass_)]; }
  std::vector<TileOp>& ops_of(Level level) {
    if (level == Level::Run) return p_.chunk_ops_;
    return level == Level::Element || p_.single_pass_ ? pass().tile_ops : pass().row_ops;
  }
  std::vector<int>& binds_of(Level level) {
    if (level == Level::Run) return p_.chunk_binds_;
    return level == Level::Element || p_.single_pass_ ? pass().tile_binds : pass().row_binds;
  }

  int new_slot(TileSlot::Kind kind, TileType type) {
    TileSlot slot;
    slot.kind = kind;
    slot.type = type;
    p_.slots_.push_back(slot);
    return static_cast<int>(p_.slots_.size()) - 1;
  }
  /// A slot that keeps its place in scratch: for values that outlive a tile.
  int scratch_slot(TileType type, std::int64_t elements) {
    const int s = new_slot(TileSlot::Kind::Scratch, type);
    p_.slots_[at(s)].offset = scratch_;
    scratch_ += round_up(elements * tile_size(type), elements > 8 ? 64 : 8);
    scratch_ = round_up(scratch_, elements > 8 ? 64 : 8);
    return s;
  }
  int result_slot(Level level, TileType type) {
    if (level == Level::Element || (level == Level::Row && p_.single_pass_))
      return new_slot(TileSlot::Kind::Register, type);
    return scratch_slot(type, 1);
  }
  int view_slot(Level level, TileType type, int v) {
    const int s = new_slot(TileSlot::Kind::View, type);
    p_.slots_[at(s)].view = v;
    binds_of(level).push_back(s);
    return s;
  }

  /// Elements computed in one pass over a row and used in a later one are kept for the row where
  /// that fits; else they are computed again.
  void place_crossing(int passes) {
    buffer_.assign(map_.instrs.size(), 0);
    buffered_in_.assign(map_.instrs.size(), -1);
    if (passes == 1) return;
    std::int64_t budget = kBufferBytes;
    for (std::size_t i = 0; i < map_.instrs.size(); ++i) {
      const MapInstr& instr = map_.instrs[i];
      if (level_[i] != Level::Element || instr.code != MapCode::Compute ||
          !crosses(static_cast<int>(i)) || is_cheap(static_cast<int>(i)))
        continue;
      const TileType type = tile_type(instr.dtype);
      const std::int64_t bytes = round_up(p_.length_ * tile_size(type), 64);
      if (bytes > budget) continue;
      budget -= bytes;
      scratch_ = round_up(scratch_, 64);
      buffer_[i] = new_slot(TileSlot::Kind::Buffer, type);
      p_.slots_[at(buffer_[i])].offset = scratch_;
      scratch_ += bytes;
    }
  }

  /// One cheap operation on what is loaded: computing it again costs less than keeping it.
  bool is_cheap(int i) const {
    const MapInstr& instr = map_.instrs[at(i)];
    if (cost_of(instr) > 5) return false;
    for (const int arg : instr.args)
      if (arg >= 0 && level_[at(arg)] == Level::Element &&
          map_.instrs[at(arg)].code != MapCode::Load)
        return false;
    return true;
  }

  bool crosses(int i) const {
    const int depth = depth_[at(i)];
    for (std::size_t j = 0; j < map_.instrs.size(); ++j) {
      const MapInstr& user = map_.instrs[j];
      const bool uses = user.args[0] == i || user.args[1] == i || user.args[2] == i;
      if (uses && user.code == MapCode::Compute && depth_[j] > depth) return true;
    }
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      if (map_.stores[s].source == i && store_pass(s) > depth) return true;
    return false;
  }

  /// Stores of what the region also loads wait for the last pass.
  int store_pass(std::size_t s) const {
    if (p_.single_pass_) return 0;
    const MapStore& store = map_.stores[s];
    return is_loaded(store.view.value) ? last_depth_ : depth_[at(store.source)];
  }

  void emit_pass() {
    for (std::size_t i = 0; i < map_.instrs.size(); ++i)
      if (level_[i] == Level::Element) native_[i] = 0;
    expanded_.assign(map_.instrs.size(), 0);
    for (std::size_t i = 0; !p_.single_pass_ && i < map_.instrs.size(); ++i) {
      const MapInstr& instr = map_.instrs[i];
      if (instr.code == MapCode::RowReduce && depth_[at(instr.args[0])] == pass_)
        emit_row_reduce(static_cast<int>(i));
    }
    for (std::size_t r = 0; r < map_.reduces.size(); ++r)
      if (p_.single_pass_ || depth_[at(map_.reduces[r].source)] == pass_) emit_column(r);
    // Everything that stores need is computed before the first store.
    std::vector<TileOp> stores;
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      if (store_pass(s) == pass_ && stored_level(s) == Level::Element)
        stores.push_back(make_store(s, Level::Element));
    if (p_.single_pass_)
      for (std::size_t s = 0; s < map_.stores.size(); ++s)
        if (stored_level(s) != Level::Element) stores.push_back(make_store(s, Level::Row));
    std::stable_partition(stores.begin(), stores.end(),
                          [this](const TileOp& op) { return reads_accumulator(op); });
    pass().tile_ops.insert(pass().tile_ops.end(), stores.begin(), stores.end());
  }

  /// Stores of one element a row: after the last sweep, since a tile of the row may still read what
  /// they overwrite.
  void emit_row_stores() {
    if (p_.single_pass_) return;
    std::vector<TileOp> stores;
    bool any = false;
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      any = any || stored_level(s) != Level::Element;
    if (!any) return;
    if (!pass().tile_ops.empty()) {
      p_.passes_.push_back(TilePass());
      ++pass_;
    }
    for (std::size_t s = 0; s < map_.stores.size(); ++s)
      if (stored_level(s) != Level::Element) stores.push_back(make_store(s, Level::Row));
    pass().row_ops.insert(pass().row_ops.end(), stores.begin(), stores.end());
  }

  Level stored_level(std::size_t s) const {
    return epilogue_ || view(store_view(s)).inner != 0 ? Level::Element : Level::Row;
  }

  TileOp make_store(std::size_t s, Level level) {
    const MapStore& store = map_.stores[s];
    TileOp op;
    op.kind = TileOp::Kind::Store;
    op.view = store_view(s);
    op.store = p_.table_->store[code(values_[at(store.view.value)].dtype)];
    op.count = count_of(level);
    op.a = operand(store.source, op.count);
    return op;
  }

  /// The value of instruction i with exactly `count` elements a tile.
  int operand(int i, TileCount count) {
    const Level level = level_[at(i)];
    if (count_of(level) == count) return native(i);
    const TileType type = tile_type(map_.instrs[at(i)].dtype);
    const TileExpand expand = tile_size(type) == 4 ? p_.table_->expand4 : p_.table_->expand8;
    if (level == Level::Run) {
      if (filled_[at(i)] != 0) return filled_[at(i)];
      TileOp op;
      op.kind = TileOp::Kind::Fill;
      op.a = native(i);
      op.out = scratch_slot(type, capacity_);
      op.number = capacity_;
      op.expand = expand;
      p_.chunk_ops_.push_back(op);
      return filled_[at(i)] = op.out;
    }
    if (expanded_[at(i)] != 0) return expanded_[at(i)];
    TileOp op;
    op.kind = TileOp::Kind::Expand;
    op.count = TileCount::All;
    op.a = native(i);
    op.out = new_slot(TileSlot::Kind::Register, type);
    op.expand = expand;
    pass().tile_ops.push_back(op);
    return expanded_[at(i)] = op.out;
  }

  int native(int i) {
    int& slot = native_[at(i)];
    if (slot != 0) return slot;
    const MapInstr& instr = map_.instrs[at(i)];
    if (buffer_[at(i)] != 0 && buffered_in_[at(i)] >= 0) {
      pass().tile_binds.push_back(buffer_[at(i)]);
      return slot = buffer_[at(i)];
    }
    switch (instr.code) {
      case MapCode::Load:
        return slot = emit_load(i);
      case MapCode::Accumulator:
        return slot = emit_accumulator(instr);
      case MapCode::Affine:
        return slot = emit_affine(i);
      case MapCode::Number:
        return slot = emit_number(instr);
      case MapCode::Random:
        return slot = emit_random(i);
      case MapCode::Compute:
        return slot = emit_compute(i);
      case MapCode::RowReduce:
        break;
    }
    emit_row_reduce(i);
    return native_[at(i)];
  }

  int emit_number(const MapInstr& instr) {
    const int s = new_slot(TileSlot::Kind::Constant, tile_type(instr.dtype));
    p_.slots_[at(s)].offset = static_cast<std::int64_t>(p_.constants_.size());
    p_.constants_.push_back(tile_number(instr.dtype, instr.attrs.f));
    return s;
  }

  int emit_accumulator(const MapInstr& instr) {
    const int s = new_slot(TileSlot::Kind::Accumulator, tile_type(instr.dtype));
    p_.accumulator_slot_ = s;
    p_.accumulator_bytes_ = tile_size(tile_type(instr.dtype));
    pass().tile_binds.push_back(s);
    return s;
  }

  /// Whether a tile's elements lie side by side in memory.
  bool is_contiguous(const TileView& v, TileCount count) const {
    if (count == TileCount::One) return true;
    if (count == TileCount::Rows) return v.linear && v.row_stride == 1;
    return v.inner == 1 &&
           (row_is_scalar() || (has_whole_rows() && v.linear && v.row_stride == p_.length_));
  }

  bool is_store_source(int i) const {
    for (const MapStore& store : map_.stores)
      if (store.source == i) return true;
    return false;
  }

  int emit_load(int i) {
    const TileView& v = view(instr_view(i));
    const DType memory = values_[at(v.value)].dtype;
    const Level level = level_[at(i)];
    const TileCount count = count_of(level);
    const TileType type = tile_type(memory);
    const bool overwritten = is_stored(v.value);
    // What another store might overwrite before this one reads it is copied first.
    const bool copied = overwritten && is_store_source(i);
    if (is_tile_dtype(memory) && is_contiguous(v, count) && !copied)
      return view_slot(level, type, instr_view(i));
    TileOp op;
    op.kind = TileOp::Kind::Load;
    op.count = count;
    op.view = instr_view(i);
    op.load = p_.table_->load[code(memory)];
    const bool repeats = !overwritten && repeats_in_tiles(v, level);
    op.out = repeats ? scratch_slot(type, capacity_) : result_slot(level, type);
    (repeats ? p_.chunk_ops_ : ops_of(level)).push_back(op);
    return op.out;
  }

  /// The same in every tile of whole rows: made once for a chunk.
  bool repeats_in_tiles(const TileView& v, Level level) const {
    return level == Level::Element && p_.single_pass_ && has_whole_rows() && v.linear &&
           v.row_stride == 0;
  }

  int emit_affine(int i) {
    const MapInstr& instr = map_.instrs[at(i)];
    TileOp op;
    op.kind = TileOp::Kind::Iota;
    op.count = count_of(level_[at(i)]);
    op.view = instr_view(i);
    op.iota = p_.table_->iota[code(tile_type(instr.dtype))];
    const TileType type = tile_type(instr.dtype);
    const bool repeats = repeats_in_tiles(view(op.view), level_[at(i)]);
    op.out = repeats ? scratch_slot(type, capacity_) : result_slot(level_[at(i)], type);
    std::vector<TileOp>& ops = repeats ? p_.chunk_ops_ : ops_of(level_[at(i)]);
    ops.push_back(op);
    narrow(op, instr.dtype, ops);
    return op.out;
  }

  int emit_random(int i) {
    const MapInstr& instr = map_.instrs[at(i)];
    const Level level = level_[at(i)];
    TileOp op;
    op.kind = TileOp::Kind::Random;
    op.count = count_of(level);
    op.view = instr_view(i);
    op.number = instr.attrs.i[1];
    op.random = p_.table_->random[instr.attrs.i[0]];
    op.out = result_slot(level, tile_type(instr.dtype));
    ops_of(level).push_back(op);
    return op.out;
  }

  TileOp unary(TileFn fn, TileCount count, int a, Level level, TileType type) {
    TileOp op;
    op.count = count;
    op.compute = fn;
    op.a = a;
    op.out = result_slot(level, type);
    return op;
  }

  /// Rounds or wraps the result of `last` to a dtype narrower than its compute type, in place.
  void narrow(const TileOp& last, DType dtype, std::vector<TileOp>& ops) const {
    const TileFn fn = p_.table_->narrow[code(dtype)];
    if (fn == nullptr) return;
    TileOp op;
    op.count = last.count;
    op.compute = fn;
    op.a = op.out = last.out;
    ops.push_back(op);
  }

  int emit_compute(int i) {
    const MapInstr& instr = map_.instrs[at(i)];
    if (instr.op == Op::Cast) return emit_cast(i);
    if (instr.op == Op::StopGradient && buffer_[at(i)] == 0) return native(instr.args[0]);
    const Level level = level_[at(i)];
    const int key = instr.op == Op::Where ? 1 : 0;
    const TileType type = tile_type(map_.instrs[at(instr.args[key])].dtype);
    TileOp op;
    op.count = count_of(level);
    op.compute = p_.table_->op[code(instr.op)][code(type)];
    bool scalar[3] = {};
    for (int k = 0; k < 3; ++k)
      scalar[k] = instr.args[k] >= 0 && op.count != TileCount::One &&
                  count_of(level_[at(instr.args[k])]) == TileCount::One;
    const TileFn vs = p_.table_->op_vs[code(instr.op)][code(type)],
                 sv = p_.table_->op_sv[code(instr.op)][code(type)];
    const bool use_vs = scalar[1] && !scalar[0] && vs != nullptr,
               use_sv = scalar[0] && !scalar[1] && sv != nullptr;
    if (use_vs) op.compute = vs;
    if (use_sv) op.compute = sv;
    int* slots[3] = {&op.a, &op.b, &op.c};
    for (int k = 0; k < 3; ++k) {
      if (instr.args[k] < 0) continue;
      const bool as_scalar = (k == 0 && use_sv) || (k == 1 && use_vs);
      *slots[k] = as_scalar ? native(instr.args[k]) : operand(instr.args[k], op.count);
    }
    op.out = element_slot(i, level);
    ops_of(level).push_back(op);
    const bool keeps_range =
        instr.op == Op::Where || instr.op == Op::Maximum || instr.op == Op::Minimum ||
        (instr.op >= Op::Eq && instr.op <= Op::LogicalXor) || instr.op == Op::LogicalNot ||
        instr.op == Op::IsNan || instr.op == Op::IsInf;
    if (!keeps_range && !is_floating(instr.dtype)) narrow(op, instr.dtype, ops_of(level));
    return op.out;
  }

  int element_slot(int i, Level level) {
    if (buffer_[at(i)] == 0) return result_slot(level, tile_type(map_.instrs[at(i)].dtype));
    pass().tile_binds.push_back(buffer_[at(i)]);
    buffered_in_[at(i)] = pass_;
    return buffer_[at(i)];
  }

  int emit_cast(int i) {
    const MapInstr& instr = map_.instrs[at(i)];
    const DType from = map_.instrs[at(instr.args[0])].dtype, to = instr.dtype;
    const Level level = level_[at(i)];
    const int source = native(instr.args[0]);
    TileFn fn = p_.table_->cast[code(tile_type(from))][code(tile_type(to))];
    TileFn then = p_.table_->narrow[code(to)];
    if (to == DType::Bool) {
      fn = p_.table_->to_bool[code(tile_type(from))];
      then = nullptr;
    }
    if (from == to || (from == DType::Bool && !is_floating(to) && tile_type(to) == TileType::I32))
      fn = then = nullptr;
    if (fn == nullptr && then == nullptr && buffer_[at(i)] == 0) return source;
    if (fn == nullptr && then == nullptr)
      fn = p_.table_->op[code(Op::StopGradient)][code(tile_type(to))];
    if (fn == nullptr) std::swap(fn, then);
    TileOp op;
    op.count = count_of(level);
    op.compute = fn;
    op.a = source;
    op.out = element_slot(i, level);
    ops_of(level).push_back(op);
    if (then != nullptr) narrow(op, to, ops_of(level));
    return op.out;
  }

  // ---- Reductions
  // -----------------------------------------------------------------------------------------------------------

  void emit_row_reduce(int i) {
    const MapInstr& instr = map_.instrs[at(i)];
    if (native_[at(i)] != 0) return;
    const TileType source = tile_type(map_.instrs[at(instr.args[0])].dtype);
    const int x = operand(instr.args[0], TileCount::All);
    native_[at(i)] = is_arg(instr.op) ? emit_arg(instr, x, source) : emit_sum(instr, x, source);
  }

  /// The slot of a running result: in whole rows a register of the tile, else kept along the row.
  /// Set to `bits` at its start.
  int running_slot(TileType type, std::int64_t bits) {
    const int constant = new_slot(TileSlot::Kind::Constant, type);
    p_.slots_[at(constant)].offset = static_cast<std::int64_t>(p_.constants_.size());
    p_.constants_.push_back(bits);
    TileOp op;
    op.kind = TileOp::Kind::Fill;
    op.count = count_of(Level::Row);
    op.a = constant;
    op.out = result_slot(Level::Row, type);
    op.expand = tile_size(type) == 4 ? p_.table_->expand4 : p_.table_->expand8;
    ops_of(Level::Row).push_back(op);
    return op.out;
  }

  int emit_sum(const MapInstr& instr, int x, TileType source) {
    const TileType gathered = sum_type(source);
    const int reduction = code(instr.op) - code(Op::Sum);
    const double inf = __builtin_inf();
    const double reals[] = {0.0, 1.0, -inf, inf};
    const std::int64_t wholes[] = {0, 1, INT64_MIN, INT64_MAX};
    TileOp op;
    op.kind = TileOp::Kind::RowReduce;
    op.count = TileCount::All;
    op.row = p_.table_->row[reduction][code(source)];
    op.a = x;
    op.out = running_slot(gathered, gathered == TileType::F64
                                        ? std::bit_cast<std::int64_t>(reals[reduction])
                                        : wholes[reduction]);
    pass().tile_ops.push_back(op);
    const TileType to = tile_type(instr.dtype);
    if (to == gathered) return op.out;
    // In pieces of a row the result is there when the next pass begins.
    TileOp finish = unary(p_.table_->cast[code(gathered)][code(to)], count_of(Level::Row), op.out,
                          Level::Row, to);
    std::vector<TileOp>& ops =
        p_.single_pass_ ? pass().tile_ops : p_.passes_[at(pass_ + 1)].row_ops;
    ops.push_back(finish);
    if (const TileFn fn =
            is_floating(instr.dtype) ? nullptr : p_.table_->narrow[code(instr.dtype)]) {
      finish.compute = fn;
      finish.a = finish.out;
      ops.push_back(finish);
    }
    return finish.out;
  }

  int emit_arg(const MapInstr& instr, int x, TileType source) {
    TileOp op;
    op.kind = TileOp::Kind::ArgReduce;
    op.count = TileCount::All;
    op.arg = (instr.op == Op::ArgMax ? p_.table_->arg_max : p_.table_->arg_min)[code(source)];
    op.a = x;
    op.out = running_slot(TileType::I64, 0);
    op.b = running_slot(source, 0);
    pass().tile_ops.push_back(op);
    return op.out;
  }

  void emit_column(std::size_t r) {
    const MapReduce& reduce = map_.reduces[r];
    const TileType source = tile_type(map_.instrs[at(reduce.source)].dtype);
    TileColumn column;
    column.reduction = code(reduce.op) - code(Op::Sum);
    column.type = sum_type(source);
    column.view = view(static_cast<int>(map_.instrs.size() + map_.stores.size() + r));
    column.count = 1;
    for (int d = 0; d < map_.space.rank(); ++d)
      if (((reduce.axes >> d) & 1u) == 0) column.count *= map_.space[d];
    column.value = reduce.value;
    column.dtype = values_[at(reduce.value)].dtype;
    TileOp op;
    op.kind = TileOp::Kind::ColReduce;
    op.count = TileCount::All;
    op.column = static_cast<int>(p_.columns_.size());
    op.row = p_.table_->row[column.reduction][code(source)];
    op.col = p_.table_->col[column.reduction][code(source)];
    op.a = operand(reduce.source, TileCount::All);
    pass().tile_ops.push_back(op);
    p_.columns_.push_back(column);
  }

  // ---- Stores written in place, and registers
  // ------------------------------------------------------------------------------

  bool reads_value(const TileOp& op, ValueId value) const {
    if (op.kind == TileOp::Kind::Load && view(op.view).value == value) return true;
    for (const int s : {op.a, op.b, op.c})
      if (p_.slots_[at(s)].kind == TileSlot::Kind::View &&
          view(p_.slots_[at(s)].view).value == value)
        return true;
    return false;
  }

  /// The contraction's result may stand where one of the stores goes.
  bool reads_accumulator(const TileOp& op) const {
    for (const int s : {op.a, op.b, op.c})
      if (p_.slots_[at(s)].kind == TileSlot::Kind::Accumulator) return true;
    return false;
  }

  /// A result whose store needs no conversion is computed where it is stored, unless a later
  /// operation of the tile still reads what stood there.
  void elide_stores(TilePass& pass) {
    std::vector<TileOp>& ops = pass.tile_ops;
    for (std::size_t k = ops.size(); k-- > 0;) {
      const TileOp store = ops[k];
      if (store.kind != TileOp::Kind::Store) continue;
      const TileView& v = view(store.view);
      TileSlot& slot = p_.slots_[at(store.a)];
      if (slot.kind != TileSlot::Kind::Register || store.count != TileCount::All ||
          !is_contiguous(v, TileCount::All))
        continue;
      const DType dtype = values_[at(v.value)].dtype;
      if (!is_tile_dtype(dtype) || tile_type(dtype) != slot.type) continue;
      std::size_t first = 0;
      while (ops[first].out != store.a) ++first;
      bool read_later = false;
      for (std::size_t j = first + 1; j < ops.size(); ++j)
        read_later = read_later || reads_value(ops[j], v.value) || reads_accumulator(ops[j]);
      if (read_later) continue;
      slot.kind = TileSlot::Kind::View;
      slot.view = store.view;
      pass.tile_binds.push_back(store.a);
      ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }

  /// Linear scan over the operations of a tile. Returns the bytes of all registers.
  std::int64_t give_registers(TilePass& pass, std::int64_t base) {
    std::vector<std::size_t> last(p_.slots_.size(), 0);
    std::vector<TileOp>& ops = pass.tile_ops;
    for (std::size_t k = 0; k < ops.size(); ++k)
      for (const int s : {ops[k].out, ops[k].a, ops[k].b, ops[k].c}) last[at(s)] = k;
    std::vector<std::int64_t> unused[2];  // by size of an element: 4, 8
    std::vector<bool> given(p_.slots_.size());
    std::int64_t bytes = 0;
    const auto pool = [&](int s) -> std::vector<std::int64_t>& {
      return unused[tile_size(p_.slots_[at(s)].type) == 4 ? 0 : 1];
    };
    const auto give = [&](int s) {
      if (p_.slots_[at(s)].kind != TileSlot::Kind::Register || given[at(s)]) return;
      given[at(s)] = true;
      if (pool(s).empty()) {
        pool(s).push_back(base + bytes);
        bytes += round_up(capacity_ * tile_size(p_.slots_[at(s)].type), 64);
      }
      p_.slots_[at(s)].offset = pool(s).back();
      pool(s).pop_back();
    };
    for (std::size_t k = 0; k < ops.size(); ++k) {
      const auto release = [&] {
        int done[3] = {ops[k].a, ops[k].b, ops[k].c};
        for (int j = 0; j < 3; ++j) {
          const int s = done[j];
          const bool repeated = (j > 0 && s == done[0]) || (j > 1 && s == done[1]);
          if (repeated || s == ops[k].out || p_.slots_[at(s)].kind != TileSlot::Kind::Register ||
              last[at(s)] != k)
            continue;
          pool(s).push_back(p_.slots_[at(s)].offset);
        }
      };
      // Element by element a result may overwrite an argument; anything else may still read it.
      if (ops[k].kind == TileOp::Kind::Compute) {
        release();
        give(ops[k].out);
      } else {
        give(ops[k].out);
        release();
      }
    }
    return bytes;
  }

  // ---- Chunks
  // ---------------------------------------------------------------------------------------------------------------

  void choose_chunks() {
    TileChunks& cut = p_.chunks_;
    std::int64_t results = 0;
    bool inner_kept = true, outer_reduced = true;
    for (TileColumn& column : p_.columns_) {
      column.partial_offset = results;
      results += round_up(column.count, 8);
      inner_kept = inner_kept && column.view.inner != 0;
      outer_reduced = outer_reduced && column.count <= p_.length_ && view_is_flat(column.view);
    }
    p_.part_elements_ = results;
    const std::int64_t rows = p_.rows_, length = std::max<std::int64_t>(p_.length_, 1);
    cut = TileChunks();
    cut.rows = std::max<std::int64_t>(rows, 1);
    cut.columns = std::max<std::int64_t>(p_.length_, 1);
    if (rows == 0 || p_.length_ == 0) {
      cut.rows = std::max<std::int64_t>(rows, 1);
      return;
    }
    const std::int64_t cost = cost_ + 10 * static_cast<std::int64_t>(map_.stores.size()) +
                              15 * static_cast<std::int64_t>(p_.columns_.size());
    const std::int64_t elements =
        std::clamp<std::int64_t>(kChunkCost / std::max<std::int64_t>(cost, 1), 2048, 65536);
    const bool columns_may_split =
        p_.tile_length_ < p_.length_ && !map_.has_rows && (p_.columns_.empty() || outer_reduced);
    find_lead(elements);
    if (cut.split_results) {
      const std::int64_t steps = std::max<std::int64_t>(1, elements / (cut.lead_rows * length));
      cut.rows = steps * cut.lead_rows;
    } else {
      if (columns_may_split && length > elements / 8)
        cut.columns = round_up(std::max(elements / rows, elements / 8), p_.tile_length_);
      cut.columns = std::min(cut.columns, length);
      cut.rows = std::max<std::int64_t>(1, elements / cut.columns);
    }
    if (!cut.split_results && results > 0) limit_parts(results, inner_kept);
    if (p_.single_pass_ && !cut.split_results) cut.rows = round_up(cut.rows, p_.tile_rows_);
    cut.rows = std::min(cut.rows, rows);
    cut.row_blocks = divide_up(rows, cut.rows);
    cut.col_blocks = divide_up(length, cut.columns);
    cut.part_per_chunk = !inner_kept && cut.col_blocks > 1;
    if (!cut.split_results) cut.parts = cut.row_blocks * (cut.part_per_chunk ? cut.col_blocks : 1);
  }

  bool view_is_flat(const TileView& v) const {
    for (std::size_t d = 0; d < v.stride.size(); ++d)
      if (v.stride[d] != 0 && p_.outer_[d] != 1) return false;
    return true;
  }

  /// Leading axes that every reduction keeps: chunks cut along them own their results.
  void find_lead(std::int64_t elements) {
    TileChunks& cut = p_.chunks_;
    if (p_.columns_.empty()) return;
    std::int64_t lead = 1;
    for (std::size_t d = 0; d < p_.outer_.size(); ++d) {
      bool kept = true;
      for (const TileColumn& column : p_.columns_)
        kept = kept && (column.view.stride[d] != 0 || p_.outer_[d] == 1);
      if (!kept) break;
      lead *= p_.outer_[d];
    }
    const std::int64_t step = p_.rows_ * p_.length_ / lead;
    cut.split_results =
        lead > 1 && (step <= elements || lead >= 16 || lead * 4 >= p_.part_elements_);
    cut.lead = cut.split_results ? lead : 1;
    cut.lead_rows = p_.rows_ / cut.lead;
  }

  /// Fewer and larger chunks where partial results would cost more than they gain.
  void limit_parts(std::int64_t results, bool inner_kept) {
    TileChunks& cut = p_.chunks_;
    const std::int64_t most = std::max<std::int64_t>(1, kPartialBytes / (8 * results));
    if (!inner_kept && divide_up(p_.length_, cut.columns) > most)
      cut.columns = divide_up(p_.length_, most);
    const std::int64_t col_blocks = divide_up(p_.length_, cut.columns);
    const std::int64_t row_parts = std::max<std::int64_t>(1, inner_kept ? most : most / col_blocks);
    cut.rows = std::max({cut.rows, divide_up(p_.rows_, row_parts), std::int64_t{1}});
    // A part is filled, gathered and combined: eight times its size should be worth that.
    const std::int64_t wanted =
        inner_kept && col_blocks > 1 ? 8 : 8 * results / std::max<std::int64_t>(1, cut.columns);
    if (cut.rows < wanted && p_.rows_ > 1)
      cut.rows = std::min(wanted, std::max(p_.rows_, std::int64_t{1}));
  }

  TileProgram& p_;
  const MapProgram& map_;
  const std::span<const Value> values_;
  const bool epilogue_;
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

TileProgram::TileProgram(const MapProgram& map, std::span<const Value> values, bool epilogue) {
  TileCompiler(*this, map, values, epilogue).compile();
}

bool tile_program_claims(const MapProgram& map, bool epilogue, std::string* why) {
  const auto refuse = [why](const std::string& reason) {
    if (why != nullptr) *why = reason;
    return false;
  };
  const TileTable& table = tile_table_base();
  for (const MapInstr& instr : map.instrs) {
    const TileType type =
        instr.args[0] < 0
            ? TileType::F32
            : tile_type(
                  map.instrs[at(instr.op == Op::Where ? instr.args[1] : instr.args[0])].dtype);
    if (instr.code == MapCode::Accumulator && !epilogue)
      return refuse("it reads an accumulator outside of an epilogue");
    if (instr.code == MapCode::Random && !is_random(instr))
      return refuse("unknown kind of random numbers");
    if (instr.code == MapCode::RowReduce && epilogue)
      return refuse("a row reduction in an epilogue");
    if (instr.code == MapCode::RowReduce && !is_reduction(instr.op) && !is_arg(instr.op))
      return refuse("no row reduction");
    if (instr.code == MapCode::Compute && instr.op != Op::Cast &&
        table.op[code(instr.op)][code(type)] == nullptr)
      return refuse(cat("no loop for op ", code(instr.op), " of this dtype"));
  }
  if (epilogue && !map.reduces.empty()) return refuse("a reduction in an epilogue");
  if (epilogue && map.space.rank() != 3) return refuse("an epilogue's space has three axes");
  return true;
}

}  // namespace tenon::cpu
