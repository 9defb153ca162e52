// Turns instructions into tile operations, pass by pass. The passes of a row run one after another,
// because a value computed from a row's reduction needs the complete row. Emission starts from the
// reductions and stores of a pass and emits the instructions that they need. A value that a later
// pass reads is kept in a buffer; if it is cheap or the buffers are full, it is recomputed.
#include <algorithm>
#include <utility>

#include "cpu/engines/compile/tile_compiler.h"
#include "device/cpu_model.h"

namespace tenon::cpu {

namespace {

// Limit for values kept between passes over a row.
constexpr std::int64_t kBufferBytes = kCpu.second_cache / 2;

}  // namespace

void TileCompiler::emit() {
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
  for (TilePass& pass : p_.passes_) {
    elide_stores(pass);
    pair_loops(pass);
  }
  // Order of the scratch: the table of pointers, values that live for a chunk or a row, registers.
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

std::vector<TileOp>& TileCompiler::ops_of(Level level) {
  if (level == Level::Run) return p_.chunk_ops_;
  return level == Level::Element || p_.single_pass_ ? pass().tile_ops : pass().row_ops;
}

std::vector<int>& TileCompiler::binds_of(Level level) {
  if (level == Level::Run) return p_.chunk_binds_;
  return level == Level::Element || p_.single_pass_ ? pass().tile_binds : pass().row_binds;
}

int TileCompiler::new_slot(TileSlot::Kind kind, TileType type) {
  TileSlot slot;
  slot.kind = kind;
  slot.type = type;
  p_.slots_.push_back(slot);
  return static_cast<int>(p_.slots_.size()) - 1;
}

int TileCompiler::scratch_slot(TileType type, std::int64_t elements) {
  const int s = new_slot(TileSlot::Kind::Scratch, type);
  p_.slots_[at(s)].offset = scratch_;
  scratch_ += round_up(elements * tile_size(type), elements > 8 ? 64 : 8);
  scratch_ = round_up(scratch_, elements > 8 ? 64 : 8);
  return s;
}

int TileCompiler::result_slot(Level level, TileType type) {
  if (level == Level::Element || (level == Level::Row && p_.single_pass_))
    return new_slot(TileSlot::Kind::Register, type);
  return scratch_slot(type, 1);
}

int TileCompiler::view_slot(Level level, TileType type, int v) {
  const int s = new_slot(TileSlot::Kind::View, type);
  p_.slots_[at(s)].view = v;
  binds_of(level).push_back(s);
  return s;
}

void TileCompiler::place_crossing(int passes) {
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

bool TileCompiler::is_cheap(int i) const {
  const MapInstr& instr = map_.instrs[at(i)];
  if (cost_of(instr) > 5) return false;
  for (const int arg : instr.args)
    if (arg >= 0 && level_[at(arg)] == Level::Element && map_.instrs[at(arg)].code != MapCode::Load)
      return false;
  return true;
}

bool TileCompiler::crosses(int i) const {
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

int TileCompiler::store_pass(std::size_t s) const {
  if (p_.single_pass_) return 0;
  const MapStore& store = map_.stores[s];
  return is_loaded(store.view.value) ? last_depth_ : depth_[at(store.source)];
}

void TileCompiler::emit_pass() {
  for (std::size_t i = 0; i < map_.instrs.size(); ++i)
    if (level_[i] == Level::Element) native_[i] = 0;
  expanded_.assign(map_.instrs.size(), 0);
  if (emit_fused()) return;
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

void TileCompiler::emit_row_stores() {
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

Level TileCompiler::stored_level(std::size_t s) const {
  return epilogue_ || view(store_view(s)).inner != 0 ? Level::Element : Level::Row;
}

TileOp TileCompiler::make_store(std::size_t s, Level level) {
  const MapStore& store = map_.stores[s];
  TileOp op;
  op.kind = TileOp::Kind::Store;
  op.view = store_view(s);
  op.store = p_.table_->store[code(values_[at(store.view.value)].dtype)];
  op.count = count_of(level);
  op.a = operand(store.source, op.count);
  return op;
}

int TileCompiler::operand(int i, TileCount count) {
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

int TileCompiler::native(int i) {
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

int TileCompiler::emit_number(const MapInstr& instr) {
  const int s = new_slot(TileSlot::Kind::Constant, tile_type(instr.dtype));
  p_.slots_[at(s)].offset = static_cast<std::int64_t>(p_.constants_.size());
  p_.constants_.push_back(tile_number(instr.dtype, instr.attrs.as<ConstantAttrs>().value));
  return s;
}

int TileCompiler::emit_accumulator(const MapInstr& instr) {
  const int s = new_slot(TileSlot::Kind::Accumulator, tile_type(instr.dtype));
  p_.accumulator_slot_ = s;
  p_.accumulator_bytes_ = tile_size(tile_type(instr.dtype));
  pass().tile_binds.push_back(s);
  return s;
}

bool TileCompiler::is_contiguous(const TileView& v, TileCount count) const {
  if (count == TileCount::One) return true;
  if (count == TileCount::Rows) return v.linear && v.row_stride == 1;
  return v.inner == 1 &&
         (row_is_scalar() || (has_whole_rows() && v.linear && v.row_stride == p_.length_));
}

bool TileCompiler::is_store_source(int i) const {
  for (const MapStore& store : map_.stores)
    if (store.source == i) return true;
  return false;
}

int TileCompiler::emit_load(int i) {
  const TileView& v = view(instr_view(i));
  const DType memory = values_[at(v.value)].dtype;
  const Level level = level_[at(i)];
  const TileCount count = count_of(level);
  const TileType type = tile_type(memory);
  const bool overwritten = is_stored(v.value);
  // A value that another store might overwrite before this one reads it is copied first.
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

bool TileCompiler::repeats_in_tiles(const TileView& v, Level level) const {
  return level == Level::Element && p_.single_pass_ && has_whole_rows() && v.linear &&
         v.row_stride == 0;
}

int TileCompiler::emit_affine(int i) {
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
  round_result(op, instr.dtype, ops);
  return op.out;
}

int TileCompiler::emit_random(int i) {
  const MapInstr& instr = map_.instrs[at(i)];
  const Level level = level_[at(i)];
  TileOp op;
  op.kind = TileOp::Kind::Random;
  op.count = count_of(level);
  op.view = instr_view(i);
  const auto& random = instr.attrs.as<RandomAttrs>();
  op.number = random.offset;
  op.random = p_.table_->random[static_cast<std::size_t>(random.kind)];
  op.out = result_slot(level, tile_type(instr.dtype));
  ops_of(level).push_back(op);
  return op.out;
}

TileOp TileCompiler::unary(TileLoop fn, TileCount count, int a, Level level, TileType type) {
  TileOp op;
  op.count = count;
  op.compute = fn;
  op.a = a;
  op.out = result_slot(level, type);
  return op;
}

void TileCompiler::round_result(const TileOp& last, DType dtype, std::vector<TileOp>& ops) const {
  const TileLoop fn = p_.table_->rounded[code(dtype)];
  if (fn == nullptr) return;
  TileOp op;
  op.count = last.count;
  op.compute = fn;
  op.a = op.out = last.out;
  ops.push_back(op);
}

int TileCompiler::emit_compute(int i) {
  const MapInstr& instr = map_.instrs[at(i)];
  if (instr.op == Op::Cast) return emit_cast(i);
  if (instr.op == Op::StopGradient && buffer_[at(i)] == 0) return native(instr.args[0]);
  const Level level = level_[at(i)];
  const int key = instr.op == Op::Where ? 1 : 0;
  const TileType type = tile_type(map_.instrs[at(instr.args[key])].dtype);
  TileOp op;
  op.count = count_of(level);
  op.compute = loop_of(*p_.table_, instr, type);
  bool scalar[3] = {};
  for (int k = 0; k < 3; ++k)
    scalar[k] = instr.args[k] >= 0 && op.count != TileCount::One &&
                count_of(level_[at(instr.args[k])]) == TileCount::One;
  const TileLoop vs = p_.table_->op_vs[code(instr.op)][code(type)],
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
  const bool keeps_range = (op_row(instr.op).traits & (kTruth | kKeepsRange)) != 0;
  if (!keeps_range && !is_floating(instr.dtype)) round_result(op, instr.dtype, ops_of(level));
  return op.out;
}

int TileCompiler::element_slot(int i, Level level) {
  if (buffer_[at(i)] == 0) return result_slot(level, tile_type(map_.instrs[at(i)].dtype));
  pass().tile_binds.push_back(buffer_[at(i)]);
  buffered_in_[at(i)] = pass_;
  return buffer_[at(i)];
}

bool TileCompiler::rounds_in_store(int i) const {
  const bool is_short = is_floating(map_.instrs[at(i)].dtype) &&
                        item_size(map_.instrs[at(i)].dtype) < tile_size(TileType::F32);
  const auto uses = [i](const MapInstr& user) {
    return user.args[0] == i || user.args[1] == i || user.args[2] == i;
  };
  return is_short && std::none_of(map_.instrs.begin(), map_.instrs.end(), uses) &&
         std::none_of(map_.reduces.begin(), map_.reduces.end(),
                      [i](const MapReduce& reduce) { return reduce.source == i; });
}

int TileCompiler::emit_cast(int i) {
  const MapInstr& instr = map_.instrs[at(i)];
  const DType from = map_.instrs[at(instr.args[0])].dtype, to = instr.dtype;
  const Level level = level_[at(i)];
  const int source = native(instr.args[0]);
  TileLoop fn = p_.table_->cast[code(tile_type(from))][code(tile_type(to))];
  TileLoop then = rounds_in_store(i) ? nullptr : p_.table_->rounded[code(to)];
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
  if (then != nullptr) round_result(op, to, ops_of(level));
  return op.out;
}

}  // namespace tenon::cpu
