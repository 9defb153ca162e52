// Turns reductions along rows and over other axes into tile operations.
#include <bit>
#include <cstdint>

#include "cpu/engines/compile/tile_compiler.h"

namespace tenon::cpu {

namespace {

/// The neutral element of a reduction, as bits of a double or int64.
std::int64_t neutral_bits(Op reduction, TileType gathered) {
  const Neutral& neutral = op_row(reduction).neutral;
  return gathered == TileType::F64 ? std::bit_cast<std::int64_t>(neutral.real) : neutral.whole;
}

}  // namespace

void TileCompiler::emit_row_reduce(int i) {
  const MapInstr& instr = map_.instrs[at(i)];
  if (native_[at(i)] != 0) return;
  const TileType source = tile_type(map_.instrs[at(instr.args[0])].dtype);
  const int x = operand(instr.args[0], TileCount::All);
  native_[at(i)] = kind_of(instr.op) == OpKind::ArgReduction ? emit_arg(instr, x, source)
                                                             : emit_sum(instr, x, source);
}

int TileCompiler::running_slot(TileType type, std::int64_t bits) {
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

int TileCompiler::emit_sum(const MapInstr& instr, int x, TileType source) {
  const TileType gathered = sum_type(source);
  TileOp op;
  op.kind = TileOp::Kind::RowReduce;
  op.count = TileCount::All;
  op.row = p_.table_->row[code(instr.op)][code(source)];
  op.a = x;
  op.out = running_slot(gathered, neutral_bits(instr.op, gathered));
  pass().tile_ops.push_back(op);
  const TileType to = tile_type(instr.dtype);
  if (to == gathered) return op.out;
  // For pieces of a row the result is ready when the next pass begins.
  TileOp finish = unary(p_.table_->cast[code(gathered)][code(to)], count_of(Level::Row), op.out,
                        Level::Row, to);
  std::vector<TileOp>& ops = p_.single_pass_ ? pass().tile_ops : p_.passes_[at(pass_ + 1)].row_ops;
  ops.push_back(finish);
  if (const TileLoop fn =
          is_floating(instr.dtype) ? nullptr : p_.table_->rounded[code(instr.dtype)]) {
    finish.compute = fn;
    finish.a = finish.out;
    ops.push_back(finish);
  }
  return finish.out;
}

int TileCompiler::emit_arg(const MapInstr& instr, int x, TileType source) {
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

TileColumn TileCompiler::column_of(std::size_t r) const {
  const MapReduce& reduce = map_.reduces[r];
  const TileType source = tile_type(map_.instrs[at(reduce.source)].dtype);
  TileColumn column;
  column.reduction = reduce.op;
  column.type = sum_type(source);
  column.neutral = neutral_bits(column.reduction, column.type);
  column.view = view(static_cast<int>(map_.instrs.size() + map_.stores.size() + r));
  column.count = 1;
  for (int d = 0; d < map_.space.rank(); ++d)
    if (((reduce.axes >> d) & 1u) == 0) column.count *= map_.space[d];
  column.value = reduce.value;
  column.dtype = values_[at(reduce.value)].dtype;
  return column;
}

void TileCompiler::emit_column(std::size_t r) {
  const MapReduce& reduce = map_.reduces[r];
  const TileType source = tile_type(map_.instrs[at(reduce.source)].dtype);
  const TileColumn column = column_of(r);
  TileOp op;
  op.kind = TileOp::Kind::ColReduce;
  op.count = TileCount::All;
  op.column = static_cast<int>(p_.columns_.size());
  op.row = p_.table_->row[code(column.reduction)][code(source)];
  op.col = p_.table_->col[code(column.reduction)][code(source)];
  op.a = operand(reduce.source, TileCount::All);
  pass().tile_ops.push_back(op);
  p_.columns_.push_back(column);
}

}  // namespace tenon::cpu
