// Turns groups into regions: instructions, views over the iteration space, stores. Also
// fills the table of values that the regions read and write. Which items form a group is decided in
// fuse.cpp.
#include "plan/steps/emit.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "graph/host_code.h"
#include "plan/regions/map_rules.h"
#include "plan/regions/recompute.h"

namespace tenon {
namespace {

// Builds one map program. Its row is one axis; all other axes are those of the group.
class MapBuilder {
 public:
  /// `instr_of` is by item and holds kNone for all items; it is restored to that state afterwards.
  MapBuilder(const Lowered& graph, const Fused& fused, const Group& group,
             const std::vector<ValueId>& value_of, std::vector<int>& instr_of)
      : g_(graph), f_(fused), group_(group), value_of_(value_of), instr_of_(instr_of) {
    const bool epilogue = group.contraction >= 0;
    space_ = epilogue ? epilogue_space(g_.items[group.contraction]) : group.space;
    program_.has_rows = group.row_axes > 0;
    if (epilogue) {
      MapInstr acc;
      acc.code = MapCode::Accumulator;
      acc.dtype = g_.items[group.contraction].dtype;
      instr_of_[at(group.contraction)] = push(std::move(acc));
    }
    std::vector<int> items = group.items;
    items.insert(items.end(), group.recomputed.begin(), group.recomputed.end());
    std::sort(items.begin(), items.end());
    for (int item : items)
      if (item != group.contraction) add(item);
    program_.space = space_;
    if (!epilogue) finish_space();
    for (int item : items) instr_of_[at(item)] = kNone;
  }
  static constexpr int kNone = -1;

  MapProgram take() { return std::move(program_); }

 private:
  int push(MapInstr instr) {
    program_.instrs.push_back(std::move(instr));
    return static_cast<int>(program_.instrs.size()) - 1;
  }

  // Strides over the iteration space for a reference made over the item's own shape.
  View view_over_space(const Ref& arg, ValueId value, bool per_row) const {
    View view;
    view.value = value;
    view.offset = arg.offset;
    if (arg.shape == space_ && !per_row) {
      std::memcpy(view.stride, arg.stride, sizeof view.stride);
    } else if (per_row) {
      Shape rows = space_;
      for (int d = space_.rank() - group_.row_axes; d < space_.rank(); ++d) rows[d] = 1;
      if (!reshape_strides(arg.shape, arg.stride, rows, view.stride))
        throw InternalError(cat("no strides for ", arg.shape, " over the rows of ", space_));
      for (int d = space_.rank() - group_.row_axes; d < space_.rank(); ++d) view.stride[d] = 0;
    } else if (!reshape_strides(arg.shape, arg.stride, space_, view.stride)) {
      throw InternalError(cat("no strides for ", arg.shape, " over ", space_));
    }
    return view;
  }

  int load(const Ref& arg, bool per_row) {
    const Item& base = g_.items[arg.item];
    MapInstr instr;
    instr.dtype = base.dtype;
    instr.per_row = per_row;
    if (base.op == Op::Constant) {
      instr.code = MapCode::Number;
      instr.attrs = base.attrs;
    } else {
      instr.code = base.op == Op::Iota ? MapCode::Affine : MapCode::Load;
      instr.view =
          view_over_space(arg, base.op == Op::Iota ? kNoValue : value_of_[arg.item], per_row);
    }
    return push(std::move(instr));
  }

  int argument(const Ref& arg, bool per_row) {
    const int known = instr_of_[at(arg.item)];
    return known != kNone ? known : load(arg, per_row);
  }

  void add(int k) {
    const Item& item = g_.items[k];
    const Role role = f_.role[k];
    const bool per_row = role == Role::PerRow;
    if (item.op == Op::Assign) {
      const int source = argument(item.args[0], per_row);
      instr_of_[at(k)] = source;
      store(source, value_of_[item.target], item.shape, per_row);
      return;
    }
    MapInstr instr;
    instr.op = item.op;
    instr.dtype = item.dtype;
    instr.attrs = item.attrs;
    if (item.op == Op::Random) {
      instr.code = MapCode::Random;
      instr.view.value = value_of_[item.args[0].item];
    } else {
      for (std::size_t a = 0; a < item.args.size(); ++a)
        instr.args[a] = argument(item.args[a], per_row);
      instr.code = role == Role::RowReduce ? MapCode::RowReduce : MapCode::Compute;
      instr.per_row = per_row || role == Role::RowReduce;
    }
    if (role == Role::Column) {
      MapReduce reduce;
      reduce.source = instr.args[0];
      reduce.op = item.op;
      reduce.axes = static_cast<std::uint32_t>(item.attrs.as<ReduceAttrs>().axes);
      reduce.value = value_of_[k];
      reduce.deviations = item.deviations;
      program_.reduces.push_back(reduce);
      return;
    }
    const bool of_row = instr.per_row;
    const int made = instr_of_[at(k)] = push(std::move(instr));
    if (value_of_[k] != kNoValue && !is_recomputed(k))
      store(made, value_of_[k], item.shape, of_row);
  }

  bool is_recomputed(int k) const {
    return std::binary_search(group_.recomputed.begin(), group_.recomputed.end(), k);
  }

  void store(int source, ValueId value, const Shape& shape, bool per_row) {
    Ref whole;
    whole.shape = shape;
    contiguous_strides(shape, whole.stride);
    program_.stores.push_back({source, view_over_space(whole, value, per_row)});
  }

  void finish_space() {
    if (program_.has_rows) fold_rows();
    if (program_.space.rank() > 0) return;
    program_.space.push_back(1);
    for (MapReduce& reduce : program_.reduces) reduce.axes = 1;
  }

  // Engines reduce along the last axis, so the axes of the row become one. They are contiguous in
  // every view that crosses them.
  void fold_rows() {
    const int rank = space_.rank(), outer = rank - group_.row_axes;
    int row = rank - 1;  // the axis whose stride the folded one has: the last that is not 1
    while (row > outer && space_[row] == 1) --row;
    if (space_[row] == 1) row = rank - 1;
    Shape folded;
    for (int d = 0; d < outer; ++d) folded.push_back(space_[d]);
    std::int64_t size = 1;
    for (int d = outer; d < rank; ++d) size *= space_[d];
    folded.push_back(size);
    each_view(program_, [&](View& view) {
      const std::int64_t stride = view.stride[row];
      std::fill(view.stride + outer, view.stride + kMaxRank, 0);
      view.stride[outer] = stride;
    });
    for (MapReduce& reduce : program_.reduces) {
      const std::uint32_t along_row = reduce.axes >> row & 1u;
      reduce.axes = (reduce.axes & ((1u << outer) - 1)) | along_row << outer;
    }
    program_.space = folded;
  }

  const Lowered& g_;
  const Fused& f_;
  const Group& group_;
  const std::vector<ValueId>& value_of_;
  Shape space_;
  MapProgram program_;
  std::vector<int>& instr_of_;
};

class Emitter {
 public:
  Emitter(const Lowered& graph, const Fused& fused, Program& program)
      : g_(graph), f_(fused), p_(program) {
    value_of_.assign(g_.items.size(), kNoValue);
  }

  void run(int slot_count) {
    p_.slots.assign(static_cast<std::size_t>(slot_count), kNoValue);
    outside_ = read_outside(g_, f_);
    for (int k = 0; k < static_cast<int>(g_.items.size()); ++k) make_value(k);
    is_assigned_.assign(p_.values.size(), 0);
    for (int item : g_.outputs) add_output(item);
    p_.steps.reserve(f_.groups.size());
    instr_of_.assign(g_.items.size(), MapBuilder::kNone);
    for (const Group& group : f_.groups) fill(p_.steps.emplace_back().region, group);
  }

 private:
  void make_value(int k) {
    const Item& item = g_.items[k];
    if (item.kind == OpKind::Leaf && item.slot >= 0) {
      const auto kind = item.op == Op::Variable ? Value::Kind::Variable : Value::Kind::Leaf;
      value_of_[k] = new_value(k, kind);
      p_.values.back().slot = item.slot;
      p_.slots[static_cast<std::size_t>(item.slot)] = value_of_[k];
      p_.leaf_bytes += p_.values.back().bytes;
      return;
    }
    if (item.target >= 0 && item.op != Op::Assign) {  // writes into the variable itself
      value_of_[k] = value_of_[item.target];
      return;
    }
    const int own = f_.group_of[k];
    if (own < 0 || item.op == Op::Assign || has_several_results(item)) return;
    if (item.wanted || f_.role[k] == Role::Column || f_.groups[own].kind == RegionKind::Opaque ||
        outside_[at(k)] != 0)
      value_of_[k] = new_value(k, Value::Kind::Arena);
  }

  ValueId new_value(int k, Value::Kind kind) {
    const Item& item = g_.items[k];
    Value value;
    value.kind = kind;
    value.dtype = item.dtype;
    value.shape = item.shape;
    value.bytes = item.shape.numel() * static_cast<std::int64_t>(item_size(item.dtype));
    value.label = item.label;
    value.device = p_.device;
    p_.values.push_back(value);
    return static_cast<ValueId>(p_.values.size()) - 1;
  }

  void add_output(int k) {
    const Item& item = g_.items[k];
    OutputSlot slot;
    slot.dtype = item.dtype;
    slot.shape = item.shape;
    if (item.target >= 0) {
      slot.is_variable = true;
      slot.value = value_of_[item.target];
      // A variable is assigned once, but its assignment may be requested twice.
      if (std::exchange(is_assigned_[at(slot.value)], 1) == 0) p_.assigned.push_back(slot.value);
    } else {
      slot.value = value_of_[k];
      Value& value = p_.values[static_cast<std::size_t>(slot.value)];
      if (value.kind == Value::Kind::Arena) {
        value.kind = Value::Kind::Output;
        value.slot = static_cast<int>(p_.outputs.size());
        p_.output_bytes += value.bytes;
      }
    }
    p_.outputs.push_back(slot);
  }

  void fill(Region& r, const Group& group) {
    r.kind = group.kind;
    const bool opaque = group.kind == RegionKind::Opaque;
    const Item& lead = g_.items[group.contraction >= 0 ? group.contraction
                                : opaque               ? group.items.front()
                                                       : group.items.back()];
    r.label = lead.label;
    if (opaque) {
      r.opaque.op = lead.op;
      r.opaque.attrs = lead.attrs;
      r.opaque.channels_last = lead.channels_last;
      const bool by_views = lead.kind == OpKind::Attention || reads_runs(lead);
      for (const Ref& arg : lead.args) {
        r.opaque.inputs.push_back(value_of_[arg.item]);
        r.opaque.shapes.push_back(arg.shape);
        if (!by_views) continue;
        View& view = r.opaque.views.emplace_back();
        view.value = value_of_[arg.item];
        view.offset = arg.offset;
        std::memcpy(view.stride, arg.stride, sizeof view.stride);
      }
      list_results(group, r.opaque);
    } else {
      if (group.kind == RegionKind::Contraction) contraction(group, lead, r);
      if (group.kind == RegionKind::Map || r.contraction.has_epilogue)
        r.map = MapBuilder(g_, f_, group, value_of_, instr_of_).take();
    }
    list_values(r, r.reads, r.writes);
    r.title = title(group);
    std::string separator;
    for (const std::string& note : group.notes) {
      if (r.why.find(note) != std::string::npos) continue;
      r.why += separator + note;
      separator = "; ";
    }
  }

  /// A concatenation that reads runs of its inputs (Lowering::reads_runs).
  bool reads_runs(const Item& item) const {
    if (item.op != Op::Concat) return false;
    return std::any_of(item.args.begin(), item.args.end(),
                       [&](const Ref& arg) { return !is_linear(arg, g_.items[arg.item].shape); });
  }

  void list_results(const Group& group, Opaque& opaque) const {
    if (!has_several_results(g_.items[group.items[0]])) {
      opaque.outs = {value_of_[group.items[0]]};
      return;
    }
    opaque.outs.assign(static_cast<std::size_t>(g_.items[group.items[0]].results), kNoValue);
    for (int item : group.items)
      if (g_.items[item].op == Op::Result)
        opaque.outs[static_cast<std::size_t>(g_.items[item].attrs.as<ResultAttrs>().index)] =
            value_of_[item];
  }

  void contraction(const Group& group, const Item& lead, Region& r) {
    Contraction& c = r.contraction;
    c.op = lead.op;
    c.attrs = lead.attrs.as<ContractionAttrs>();
    c.dtype = lead.dtype;
    auto operand = [&](const Ref& arg, View& view, Shape& shape) {
      view.value = value_of_[arg.item];
      view.offset = arg.offset;
      std::memcpy(view.stride, arg.stride, sizeof view.stride);
      shape = arg.shape;
    };
    operand(lead.args[0], c.a, c.a_shape);
    operand(lead.args[1], c.b, c.b_shape);
    c.out_shape = lead.shape;
    c.channels_last = lead.channels_last;
    c.out = value_of_[group.contraction];
    c.has_epilogue = group.items.size() > 1;
  }

  std::string title(const Group& group) const {
    std::string text;
    int shown = 0;
    for (int item : group.items) {
      if (!text.empty()) text += '+';
      if (++shown > 8) {
        text += cat("… (", group.items.size(), ")");
        break;
      }
      text += g_.items[item].deviations ? "deviations"
                                        : shown_name(g_.items[item].op, g_.items[item].attrs);
      if (has_several_results(g_.items[item])) break;
    }
    return text;
  }

  const Lowered& g_;
  const Fused& f_;
  Program& p_;
  std::vector<ValueId> value_of_;
  std::vector<int> instr_of_;      // by item, of the map under construction
  std::vector<char> outside_;      // by item: whether another group reads it
  std::vector<char> is_assigned_;  // by value
};

}  // namespace

void emit(const Lowered& graph, const Fused& fused, int slot_count, Program& program) {
  Emitter(graph, fused, program).run(slot_count);
}

std::vector<std::vector<int>> group_dependencies(const Lowered& graph, const Fused& fused) {
  std::vector<std::vector<int>> before(fused.groups.size());
  for (std::size_t g = 0; g < fused.groups.size(); ++g) {
    const auto add = [&](int other) {
      const int owner = fused.group_of[other];
      if (owner >= 0 && owner != static_cast<int>(g)) before[g].push_back(owner);
    };
    // The operands of a recomputed item count as dependencies of the group that recomputes it.
    for (const std::vector<int>* items : {&fused.groups[g].items, &fused.groups[g].recomputed})
      for (int item : *items) {
        for (const Ref& arg : graph.items[item].args) add(arg.item);
        for (int earlier : graph.items[item].after) add(earlier);
      }
  }
  // A group that recomputes a value from a variable reads the variable before its assignment.
  const std::vector<int> assignment = assignments(graph);
  for (std::size_t g = 0; g < fused.groups.size(); ++g)
    for (const int item : fused.groups[g].recomputed)
      for (const Ref& arg : graph.items[item].args)
        if (const int assign = assignment[at(arg.item)]; assign >= 0)
          if (const int owner = fused.group_of[assign]; owner != static_cast<int>(g))
            before[static_cast<std::size_t>(owner)].push_back(static_cast<int>(g));
  for (std::size_t g = 0; g < fused.groups.size(); ++g) {
    std::sort(before[g].begin(), before[g].end());
    before[g].erase(std::unique(before[g].begin(), before[g].end()), before[g].end());
  }
  return before;
}

}  // namespace tenon
