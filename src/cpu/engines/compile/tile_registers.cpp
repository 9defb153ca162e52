// Decides where results of tile operations go: directly to memory where nothing forbids it,
// otherwise to registers.
#include <algorithm>

#include "cpu/engines/compile/tile_compiler.h"

namespace tenon::cpu {

bool TileCompiler::reads_value(const TileOp& op, ValueId value) const {
  if (op.kind == TileOp::Kind::Load && view(op.view).value == value) return true;
  for (const int s : {op.a, op.b, op.c})
    if (p_.slots_[at(s)].kind == TileSlot::Kind::View && view(p_.slots_[at(s)].view).value == value)
      return true;
  return false;
}

bool TileCompiler::reads_accumulator(const TileOp& op) const {
  for (const int s : {op.a, op.b, op.c})
    if (p_.slots_[at(s)].kind == TileSlot::Kind::Accumulator) return true;
  return false;
}

void TileCompiler::elide_stores(TilePass& pass) {
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

TileLoop TileCompiler::paired(const TileOp& first, const TileOp& second) const {
  const bool follows =
      first.kind == TileOp::Kind::Compute && second.kind == TileOp::Kind::Compute &&
      first.count == second.count && first.count == TileCount::All && second.a == first.out &&
      second.b != first.out && p_.slots_[at(first.out)].kind == TileSlot::Kind::Register;
  if (!follows) return nullptr;
  for (const TilePair& pair : p_.table_->pairs)
    if (pair.first == first.compute && pair.second == second.compute) return pair.both;
  return nullptr;
}

void TileCompiler::pair_loops(TilePass& pass) const {
  std::vector<TileOp>& ops = pass.tile_ops;
  std::vector<int> uses(p_.slots_.size(), 0);
  for (const TileOp& op : ops)
    for (const int s : {op.out, op.a, op.b, op.c}) ++uses[at(s)];
  std::vector<TileOp> kept;
  kept.reserve(ops.size());
  for (std::size_t k = 0; k < ops.size(); ++k) {
    TileOp op = ops[k];
    const bool read_once = k + 1 < ops.size() && uses[at(op.out)] == 2;
    if (const TileLoop both = read_once ? paired(op, ops[k + 1]) : nullptr; both != nullptr) {
      const TileOp& second = ops[++k];
      op.compute = both;
      op.c = second.b;
      op.out = second.out;
    }
    kept.push_back(op);
  }
  ops = std::move(kept);
}

std::int64_t TileCompiler::give_registers(TilePass& pass, std::int64_t base) {
  std::vector<std::size_t> last(p_.slots_.size(), 0);
  std::vector<TileOp>& ops = pass.tile_ops;
  for (std::size_t k = 0; k < ops.size(); ++k)
    for (const int s : {ops[k].out, ops[k].a, ops[k].b, ops[k].c}) last[at(s)] = k;
  for (const int s : p_.fused_.scalars) last[at(s)] = ops.size();
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
    // An element-wise operation may overwrite an argument; other operations may still read it.
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

}  // namespace tenon::cpu
