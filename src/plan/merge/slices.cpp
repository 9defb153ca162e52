// Finds the axis of slices in a region's views, and builds the region for a slice.
#include "plan/merge/slices.h"

#include <algorithm>

#include "base/contains.h"
#include "base/index.h"
#include "plan/program/strides.h"

namespace tenon {
namespace {

std::int64_t bytes_of(const Value& value) {
  return static_cast<std::int64_t>(item_size(value.dtype));
}

const ChainAccess* find(std::span<const ChainAccess> list, ValueId id) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const ChainAccess& a) { return a.value == id; });
  return found == list.end() ? nullptr : &*found;
}

// The distance of neighbouring entries in elements. 0: the view does not move along the axis. -1:
// the axis is not an axis of the value's memory.
std::int64_t step_along(const View& view, const Shape& space, int axis, std::int64_t numel,
                        bool per_row) {
  const std::int64_t step = view.stride[axis];
  if (step == 0) return 0;
  const std::int64_t period = step * space[axis];
  if (step < 0 || view.offset < 0 || numel % period != 0) return -1;
  std::int64_t inside = view.offset % period;
  for (int d = 0; d < space.rank() - (per_row ? 1 : 0); ++d) {
    if (d == axis || space[d] == 1) continue;
    if (view.stride[d] < 0) return -1;
    if (view.stride[d] % period != 0) inside += (space[d] - 1) * view.stride[d];
  }
  return inside < step ? step : -1;
}

// Axis d becomes three axes, `outer`, `entries` and `inner`; axes of size 1 are left out.
struct Split {
  int axis = 0;
  std::int64_t outer = 1, entries = 1, inner = 1;
  int parts() const { return 1 + (outer > 1 ? 1 : 0) + (inner > 1 ? 1 : 0); }
  int place() const { return axis + (outer > 1 ? 1 : 0); }  // index of the axis of entries

  void apply(View& view, int rank) const {
    const std::int64_t stride = view.stride[axis];
    for (int d = rank - 1; d > axis; --d) view.stride[d + parts() - 1] = view.stride[d];
    int d = axis;
    if (outer > 1) view.stride[d++] = stride * inner * entries;
    view.stride[d++] = stride * inner;
    if (inner > 1) view.stride[d] = stride;
  }

  void apply(MapProgram& map) const {
    const int rank = map.space.rank();
    std::vector<std::int64_t> sizes;
    sizes.reserve(kMaxRank);
    for (int d = 0; d < rank; ++d) {
      if (d != axis) {
        sizes.push_back(map.space[d]);
        continue;
      }
      if (outer > 1) sizes.push_back(outer);
      sizes.push_back(entries);
      if (inner > 1) sizes.push_back(inner);
    }
    for (MapInstr& instr : map.instrs) apply(instr.view, rank);
    for (MapStore& store : map.stores) apply(store.view, rank);
    const std::uint32_t below = (1u << axis) - 1, all = (1u << parts()) - 1;
    for (MapReduce& reduce : map.reduces) {
      const std::uint32_t own = (reduce.axes >> axis & 1u) != 0 ? all << axis : 0;
      reduce.axes = (reduce.axes & below) | own | (reduce.axes >> (axis + 1) << (axis + parts()));
    }
    map.space = Shape(sizes.data(), static_cast<int>(sizes.size()));
  }
};

class Accesses {
 public:
  Accesses(std::span<const Value> values, std::int64_t entries, std::vector<ChainAccess>& out)
      : values_(values), entries_(entries), out_(out) {}

  const char* add(ValueId id, std::int64_t step) {
    if (entries_ == 1) step = 0;  // the whole axis
    if (const ChainAccess* known = find(out_, id))
      return known->step == step ? nullptr : "reads one value in two different orders";
    const std::int64_t places = step == 0 ? 1 : size(id) * bytes_of(value(id)) / (step * entries_);
    out_.push_back({id, step, places});
    return nullptr;
  }

  /// The access of a tensor whose first axis is sliced.
  const char* by_first(ValueId id, const Shape& shape) {
    if (shape.numel() == 0) return "is empty";
    if (shape.rank() == 0 || shape[0] != entries_ || shape.numel() != size(id))
      return "has another number of entries along the sliced axis";
    return add(id, shape.numel() / entries_ * bytes_of(value(id)));
  }

  const char* operand(const View& view, const Shape& shape, bool sliced) {
    if (!sliced) return add(view.value, 0);
    if (!is_contiguous(view, shape)) return "reads an operand that is not contiguous";
    return by_first(view.value, shape);
  }

  const char* map(const MapProgram& map, int axis) {
    if (map.space[axis] != entries_) return "has another number of entries along the sliced axis";
    const bool cut = entries_ > 1;
    for (const MapInstr& instr : map.instrs) {
      if (instr.code == MapCode::Random) return "depends on the positions of its elements";
      if (cut && instr.code == MapCode::Affine && instr.view.stride[axis] != 0)
        return "depends on the positions of its elements";
      if (instr.code != MapCode::Load) continue;
      if (const char* why = view(instr.view, map.space, axis, instr.per_row)) return why;
    }
    for (const MapStore& store : map.stores) {
      if (cut && store.view.stride[axis] == 0) return "writes elements that several slices share";
      const bool per_row = map.instrs[at(store.source)].per_row;
      if (const char* why = view(store.view, map.space, axis, per_row)) return why;
    }
    for (const MapReduce& reduce : map.reduces)
      if (const char* why = result(reduce, map.space, axis)) return why;
    return nullptr;
  }

 private:
  const Value& value(ValueId id) const { return values_[at(id)]; }
  std::int64_t size(ValueId id) const { return value(id).shape.numel(); }

  const char* view(const View& view, const Shape& space, int axis, bool per_row) {
    const std::int64_t step =
        entries_ == 1 ? 0 : step_along(view, space, axis, size(view.value), per_row);
    if (step < 0) return "reads entries in another order";
    return add(view.value, step * bytes_of(value(view.value)));
  }

  const char* result(const MapReduce& reduce, const Shape& space, int axis) {
    if ((reduce.axes >> axis & 1u) != 0) return "sums over the slices";
    std::int64_t step = bytes_of(value(reduce.value));
    for (int d = 0; d < space.rank(); ++d) {
      if ((reduce.axes >> d & 1u) != 0 || space[d] == 1) continue;
      if (d < axis) return "stores sums in another order";
      if (d > axis) step *= space[d];
    }
    return add(reduce.value, step);
  }

  std::span<const Value> values_;
  const std::int64_t entries_;
  std::vector<ChainAccess>& out_;
};

// Finds the axis of a known value in the space of a map that views it.
bool find_split(const View& view, const MapProgram& map, std::span<const Value> values,
                std::int64_t entries, std::span<const ChainAccess> known, Split& split) {
  const ChainAccess* access = find(known, view.value);
  if (access == nullptr || access->step == 0) return false;
  const std::int64_t step = access->step / bytes_of(values[at(view.value)]);
  for (int d = 0; d < map.space.rank(); ++d) {
    const std::int64_t stride = view.stride[d], reach = stride * map.space[d];
    if (stride <= 0 || map.space[d] == 1 || step % stride != 0 || reach % (step * entries) != 0)
      continue;
    split = {d, reach / (step * entries), entries, step / stride};
    return true;
  }
  return false;
}

bool find_split(const MapProgram& map, std::span<const Value> values, std::int64_t entries,
                std::span<const ChainAccess> known, Split& split) {
  for (const MapInstr& instr : map.instrs)
    if (instr.code == MapCode::Load && find_split(instr.view, map, values, entries, known, split))
      return true;
  for (const MapStore& store : map.stores)
    if (find_split(store.view, map, values, entries, known, split)) return true;
  return false;
}

const char* list_contraction(const Region& part, const Capabilities& can, Accesses& accesses) {
  const Contraction& c = part.contraction;
  if (part.has_prologue()) return "has a prologue, which does not run in slices";
  if (can.sums_slices && c.dtype != DType::Float32)
    return "sums over the slices in another type than float32";
  const char* why = accesses.operand(c.a, c.a_shape, can.slices_input(0));
  if (why == nullptr) why = accesses.operand(c.b, c.b_shape, can.slices_input(1));
  if (why != nullptr || can.sums_slices) return why;
  if (c.out != kNoValue) why = accesses.by_first(c.out, c.out_shape);
  return why == nullptr && c.has_epilogue ? accesses.map(part.map, part.axis) : why;
}

const char* list_opaque(const Opaque& o, const Capabilities& can, std::span<const Value> values,
                        Accesses& accesses) {
  if (!o.views.empty()) return "reads operands through views";
  for (std::size_t k = 0; k < o.inputs.size(); ++k) {
    const bool sliced = can.slices_input(k);
    const char* why =
        sliced ? accesses.by_first(o.inputs[k], o.shapes[k]) : accesses.add(o.inputs[k], 0);
    if (why != nullptr) return why;
  }
  for (ValueId id : o.outs)
    if (id != kNoValue)
      if (const char* why = accesses.by_first(id, values[at(id)].shape)) return why;
  return nullptr;
}

}  // namespace

const char* find_axis(Region& part, const Capabilities& can, std::span<const Value> values,
                      std::int64_t entries, std::span<const ChainAccess> known) {
  if (can.no_slices != nullptr) return can.no_slices;
  // For an epilogue's space, [batch, rows, columns].
  if (part.kind == RegionKind::Contraction)
    part.axis = part.contraction.out_shape.rank() == 2 ? 1 : 0;
  if (part.kind != RegionKind::Map) return nullptr;
  return find_axis(part.map, values, entries, known, part.axis);
}

const char* find_axis(MapProgram& map, std::span<const Value> values, std::int64_t entries,
                      std::span<const ChainAccess> known, int& axis) {
  Split split;
  if (map.space.numel() == 0) return "is empty";
  if (!find_split(map, values, entries, known, split)) return "has no axis that matches the slices";
  if (map.has_rows && split.axis == map.space.rank() - 1)
    return "reduces rows along the axis of the slices";
  if (map.space.rank() + split.parts() - 1 > kMaxRank)
    return "has too many axes to split one of them";
  if (split.parts() > 1) split.apply(map);
  axis = split.place();
  return nullptr;
}

const char* list_accesses(const Region& part, const Capabilities& can,
                          std::span<const Value> values, std::int64_t entries,
                          std::vector<ChainAccess>& out) {
  if (can.no_slices != nullptr) return can.no_slices;
  Accesses accesses(values, entries, out);
  switch (part.kind) {
    case RegionKind::Map:
      return accesses.map(part.map, part.axis);
    case RegionKind::Contraction:
      return list_contraction(part, can, accesses);
    case RegionKind::Opaque:
      return list_opaque(part.opaque, can, values, accesses);
    default:
      return "consists of several regions";
  }
}

const char* list_accesses(const MapProgram& map, int axis, std::span<const Value> values,
                          std::int64_t entries, std::vector<ChainAccess>& out) {
  return Accesses(values, entries, out).map(map, axis);
}

void keep_slice(View& view, int axis, int rank, std::int64_t entries, std::int64_t count) {
  const std::int64_t step = view.stride[axis], period = step * entries;
  if (step == 0) return;
  for (int d = 0; d < rank; ++d)
    if (d != axis && view.stride[d] % period == 0)
      view.stride[d] = view.stride[d] / entries * count;
  view.offset = view.offset / period * (step * count) + view.offset % period;
}

Region sliced(const Region& part, const Capabilities& can, const Region& chain, std::int64_t count,
              std::span<Value> values) {
  Region slice = part;
  const auto is_local = [&](ValueId id) { return contains(chain.local, id); };
  const bool has_map = part.kind == RegionKind::Map ||
                       (part.kind == RegionKind::Contraction && part.contraction.has_epilogue);
  if (has_map && !can.sums_slices) {
    MapProgram& map = slice.map;
    const int rank = map.space.rank();
    map.space[part.axis] = count;
    for (MapInstr& instr : map.instrs)
      if (instr.code == MapCode::Load && is_local(instr.view.value))
        keep_slice(instr.view, part.axis, rank, chain.samples, count);
    for (MapStore& store : map.stores)
      if (is_local(store.view.value)) keep_slice(store.view, part.axis, rank, chain.samples, count);
  }
  if (part.kind == RegionKind::Contraction) {
    Contraction& c = slice.contraction;
    if (can.slices_input(0)) c.a_shape[0] = count;
    if (can.slices_input(1)) c.b_shape[0] = count;
    if (!can.sums_slices) c.out_shape[0] = count;
  } else if (part.kind == RegionKind::Opaque) {
    for (std::size_t k = 0; k < slice.opaque.shapes.size(); ++k)
      if (can.slices_input(k)) slice.opaque.shapes[k][0] = count;
    for (ValueId id : slice.opaque.outs)
      if (id != kNoValue) values[at(id)].shape[0] = count;
  }
  return slice;
}

}  // namespace tenon
