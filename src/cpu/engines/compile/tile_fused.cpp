// Finds the fused loop of a program by its form, a text that lists the operations and the sources
// of their operands.
#include <algorithm>
#include <string>

#include "cpu/engines/compile/tile_compiler.h"

namespace tenon::cpu {

namespace {

/// Writes a program's form (tile_fused.h) and lists its leaves in the order in which they occur.
class FormWriter {
 public:
  FormWriter(const MapProgram& map, std::span<const Value> values, std::span<const Level> levels)
      : map_(map), values_(values), levels_(levels), number_(map.instrs.size(), -1) {}

  std::string form;
  std::vector<int> elements, scalars;  // instructions
  bool fits = true;                    // float32 arithmetic alone

  void write() {
    for (const MapReduce& reduce : map_.reduces) {
      form += reduce.op == Op::Sum && !reduce.deviations ? "+" : "?";
      visit(reduce.source);
      form += ';';
    }
    for (const MapStore& store : map_.stores) {
      form += '>';
      form += letter(values_[at(store.view.value)].dtype);
      visit(stored(store.source));
    }
  }

 private:
  /// The instruction whose result a store of instruction i writes. A store rounds to bfloat16
  /// itself, so a cast that only the store reads is skipped.
  int stored(int i) const {
    const MapInstr& instr = map_.instrs[at(i)];
    const bool rounds = instr.code == MapCode::Compute && instr.op == Op::Cast &&
                        instr.dtype == DType::BFloat16 && uses(i) == 1;
    return rounds ? instr.args[0] : i;
  }

  int uses(int i) const {
    int count = 0;
    for (const MapInstr& instr : map_.instrs)
      count += static_cast<int>(std::count(instr.args, instr.args + 3, i));
    for (const MapReduce& reduce : map_.reduces) count += reduce.source == i;
    for (const MapStore& store : map_.stores) count += store.source == i;
    return count;
  }

  char letter(DType dtype) {
    if (dtype == DType::BFloat16) return 'h';
    if (dtype == DType::Bool) return 'b';
    fits = fits && dtype == DType::Float32;
    return 'f';
  }

  void visit(int i) {
    const MapInstr& instr = map_.instrs[at(i)];
    if (tile_type(instr.dtype) != TileType::F32 && instr.dtype != DType::Bool) fits = false;
    if (levels_[at(i)] != Level::Element) {
      fits = fits && instr.dtype != DType::Bool;
      scalars.push_back(i);
      form += 'r';
    } else if (number_[at(i)] >= 0) {
      form += '#';
      form += static_cast<char>('0' + number_[at(i)]);
    } else if (instr.code == MapCode::Compute) {
      compute(i);
    } else {
      fits = fits && (instr.code == MapCode::Load || instr.code == MapCode::Accumulator);
      number_[at(i)] = next_++;
      elements.push_back(i);
      form += instr.code == MapCode::Accumulator ? 'a' : letter(loaded(instr));
    }
  }

  DType loaded(const MapInstr& instr) const {
    return instr.code == MapCode::Load ? values_[at(instr.view.value)].dtype : instr.dtype;
  }

  void compute(int i) {
    const MapInstr& instr = map_.instrs[at(i)];
    if (instr.op == Op::Cast && instr.dtype == DType::Float32) return visit(instr.args[0]);
    fits = fits && (instr.op != Op::Cast || instr.dtype == DType::BFloat16);
    form += op_row(instr.op).name;
    form += '(';
    int args[3] = {instr.args[0], instr.args[1], instr.args[2]};
    const bool commutes = instr.op == Op::Add || instr.op == Op::Mul;
    if (commutes && levels_[at(args[0])] != Level::Element) std::swap(args[0], args[1]);
    for (const int arg : args) {
      if (arg < 0) break;
      visit(arg);
      form += ',';
    }
    form.back() = ')';
    number_[at(i)] = next_++;
  }

  const MapProgram& map_;
  const std::span<const Value> values_;
  const std::span<const Level> levels_;
  std::vector<int> number_;
  int next_ = 0;
};

}  // namespace

// A fused loop processes the rows of a tile one after another, so rows must not be too short.
// Addresses of sums must not depend on the column.
bool TileCompiler::may_fuse() const {
  if (p_.passes_.size() != 1 || last_depth_ > 0 || p_.length_ < kShortestFused) return false;
  for (std::size_t s = 0; s < map_.stores.size(); ++s)
    if (stored_level(s) != Level::Element || !is_contiguous(view(store_view(s)), TileCount::All))
      return false;
  for (std::size_t r = 0; r < map_.reduces.size(); ++r)
    if (column_of(r).view.inner != 0) return false;
  for (std::size_t i = 0; i < map_.instrs.size(); ++i) {
    if (map_.instrs[i].code != MapCode::Load || level_[i] != Level::Element) continue;
    const TileView& v = view(instr_view(static_cast<int>(i)));
    if (!is_contiguous(v, TileCount::All) || !is_overwritten_in_place(v)) return false;
  }
  return true;
}

bool TileCompiler::is_overwritten_in_place(const TileView& v) const {
  for (std::size_t s = 0; s < map_.stores.size(); ++s) {
    const TileView& to = view(store_view(s));
    const bool same = to.offset == v.offset && to.stride == v.stride;
    if (to.value == v.value && !same) return false;
  }
  return true;
}

int TileCompiler::memory_slot(int v) {
  const int s = new_slot(TileSlot::Kind::View, TileType::F32);
  p_.slots_[at(s)].view = v;
  pass().tile_binds.push_back(s);
  return s;
}

bool TileCompiler::emit_fused() {
  p_.fused_ = TileFused();
  const FusedLoops loops = fused_loops();
  if (loops.count == 0 || !may_fuse()) return false;
  FormWriter writer(map_, values_, level_);
  writer.write();
  TileFused& fused = p_.fused_;
  fused.loop = writer.fits ? loops.find(writer.form.c_str()) : nullptr;
  if (fused.loop == nullptr) return false;
  for (const int i : writer.scalars) {
    fused.scalars.push_back(native(i));
    fused.per_row.push_back(count_of(level_[at(i)]) == TileCount::Rows);
  }
  for (const int i : writer.elements) {
    const MapInstr& instr = map_.instrs[at(i)];
    const bool loaded = instr.code == MapCode::Load;
    fused.elements.push_back(loaded ? memory_slot(instr_view(i)) : emit_accumulator(instr));
  }
  for (std::size_t s = 0; s < map_.stores.size(); ++s)
    fused.outs.push_back(memory_slot(store_view(s)));
  for (std::size_t r = 0; r < map_.reduces.size(); ++r) p_.columns_.push_back(column_of(r));
  p_.fetched_.clear();  // a fused loop prefetches its operands itself
  TileOp op;
  op.kind = TileOp::Kind::Fused;
  op.count = TileCount::All;
  pass().tile_ops.push_back(op);
  return true;
}

}  // namespace tenon::cpu
