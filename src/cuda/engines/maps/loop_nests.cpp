// Decides which kernels a region becomes: as few launches as possible, then as few passes over
// memory as possible. A value that a region stores anyway is read back instead of recomputed.
#include "cuda/engines/maps/loop_nests.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/index.h"
#include "cuda/engines/maps/map_layout.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kTemporaryAlignment = 256;
// With few long rows, one block per row leaves most of a GPU idle.
constexpr std::int64_t kLongRow = 1 << 16, kFewRows = 64;
// Rows whose columns are reduced in the same kernel, and the chunks of rows: eight blocks per
// multiprocessor of a large GPU.
constexpr std::int64_t kShortestWithColumns = 16, kLongestWithColumns = 1024,
                       kFewestWithColumns = 2048, kMostChunks = 1024;
// Rows that fill a warp's lanes with 16 bytes each.
constexpr std::int64_t kShortestOfWarp = 256;
// Registers that a lane may use for its packed elements of two rows and its column sums.
constexpr std::int64_t kMostOfLane = 160;
// Rows that are only reduced and whose results are stored unchanged: one kernel either way.
constexpr std::int64_t kLongSum = 1 << 13;

}  // namespace

ValueId add_temporary(LoopNests& nests, DType dtype, const Shape& shape) {
  Value value;
  value.dtype = dtype;
  value.shape = shape;
  value.bytes = shape.numel() * static_cast<std::int64_t>(item_size(dtype));
  value.offset = nests.temporary_bytes;
  nests.temporary_bytes +=
      (value.bytes + kTemporaryAlignment - 1) / kTemporaryAlignment * kTemporaryAlignment;
  return nests.values.add(value);
}

namespace {

class Cutter {
 public:
  Cutter(const MapProgram& map, std::span<const Value> values) : map_(map) {
    out_.values = ValueTable(values);
  }

  LoopNests cut() {
    if (map_.has_rows) {
      if (has_long_rows()) {
        cut_rows_by_depth();
      } else {
        rows_then_columns();
      }
    } else {
      columns(map_);
    }
    return std::move(out_);
  }

 private:
  ValueId temporary(DType dtype, const Shape& shape) { return add_temporary(out_, dtype, shape); }

  void push(LoopNestKind kind, const MapProgram& map) {
    LoopNest nest{kind, with_merged_axes(without_unused(map))};
    // A kernel that no longer reduces rows is element-wise, whatever its values were before.
    if (kind == LoopNestKind::Rows && depth_of(nest.map) == 0 && nest.map.reduces.empty()) {
      nest.kind = LoopNestKind::Elements;
      nest.map = with_merged_axes(without_rows(nest.map));
    }
    out_.nests.push_back(std::move(nest));
  }

  static int depth_of(const MapProgram& map) {
    const std::vector<int> depths = depths_of(map);
    return depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
  }

  /// Turns per-row values into ordinary values that do not vary along the last axis. A store once
  /// per row would then be executed for every element, so rows of one element remain rows.
  static MapProgram without_rows(MapProgram map) {
    const int last = map.space.rank() - 1;
    for (const MapStore& store : map.stores)
      if (map.instrs[at(store.source)].per_row && map.space[last] != 1) return map;
    for (const MapInstr& instr : map.instrs)
      if (instr.per_row && instr.code == MapCode::Random && map.space[last] != 1) return map;
    map.has_rows = false;
    for (MapInstr& instr : map.instrs) {
      if (instr.per_row && has_view(instr)) instr.view.stride[last] = 0;
      instr.per_row = false;
    }
    return map;
  }

  bool has_long_rows() const {
    const std::int64_t length = map_.space[map_.space.rank() - 1];
    if (length < (only_sums() ? kLongSum : kLongRow) || map_.space.numel() / length > kFewRows)
      return false;
    return std::none_of(map_.instrs.begin(), map_.instrs.end(),
                        [](const MapInstr& i) { return i.op == Op::ArgMax || i.op == Op::ArgMin; });
  }

  /// True if the region computes only row results and stores them unchanged.
  bool only_sums() const {
    return map_.reduces.empty() && depth_of(map_) == 1 &&
           std::all_of(map_.stores.begin(), map_.stores.end(), [this](const MapStore& store) {
             return map_.instrs[at(store.source)].code == MapCode::RowReduce &&
                    is_stored_in_order(store);
           });
  }

  /// True if a store once per row has the order in which a column reduction writes.
  bool is_stored_in_order(const MapStore& store) const {
    const MapInstr in_order = load_of(store.view.value, DType::Float32, row_bit(), true);
    bool same = store.view.offset == 0;
    for (int d = 0; d + 1 < map_.space.rank(); ++d)
      same = same && (map_.space[d] == 1 || store.view.stride[d] == in_order.view.stride[d]);
    return same;
  }

  /// A load of a contiguous value that has one element for each set of coordinates of the axes not
  /// in `reduced`.
  MapInstr load_of(ValueId value, DType dtype, std::uint32_t reduced, bool per_row) const {
    MapInstr load;
    load.dtype = dtype;
    load.per_row = per_row;
    load.view.value = value;
    std::int64_t stride = 1;
    for (int d = map_.space.rank() - 1; d >= 0; --d) {
      if ((reduced >> d & 1u) != 0) continue;
      load.view.stride[d] = stride;
      stride *= map_.space[d];
    }
    return load;
  }

  std::uint32_t row_bit() const { return 1u << (map_.space.rank() - 1); }

  /// The value in which a later kernel finds the result of instruction i: one that the region
  /// stores, or a temporary.
  MapInstr kept(MapProgram& rows, int i) {
    const MapInstr& instr = map_.instrs[at(i)];
    const std::uint32_t reduced = instr.per_row ? row_bit() : 0;
    for (const MapStore& store : map_.stores) {
      MapInstr load = load_of(store.view.value, instr.dtype, reduced, instr.per_row);
      bool same = store.source == i && store.view.offset == 0;
      for (int d = 0; d < map_.space.rank(); ++d)
        same = same && (map_.space[d] == 1 || (reduced >> d & 1u) != 0 ||
                        store.view.stride[d] == load.view.stride[d]);
      if (same) return load;
    }
    Shape shape = map_.space;
    if (instr.per_row) shape[shape.rank() - 1] = 1;
    MapInstr load = load_of(temporary(instr.dtype, shape), instr.dtype, reduced, instr.per_row);
    rows.stores.push_back({i, load.view});
    return load;
  }

  /// True if the instruction can be recomputed after the row kernel: from values that the row
  /// kernel does not overwrite, without a row reduction.
  bool can_be_recomputed(int i) const {
    const MapInstr& instr = map_.instrs[at(i)];
    if (instr.code == MapCode::RowReduce) return false;
    if (instr.code == MapCode::Load && stores(map_, instr.view.value)) return false;
    return std::all_of(std::begin(instr.args), std::end(instr.args),
                       [&](int arg) { return arg < 0 || can_be_recomputed(arg); });
  }

  /// If instruction i only casts a lower-precision value to float32 and is not stored itself, the
  /// number of that value's instruction: the value is stored anyway or half as large, so it is
  /// better to keep. Otherwise i.
  int upcast(int i) const {
    const MapInstr& instr = map_.instrs[at(i)];
    const bool is_cast = instr.code == MapCode::Compute && instr.op == Op::Cast;
    const bool is_stored = std::any_of(map_.stores.begin(), map_.stores.end(),
                                       [i](const MapStore& store) { return store.source == i; });
    if (!is_cast || is_stored || !is_floating(instr.dtype)) return i;
    const DType from = map_.instrs[at(instr.args[0])].dtype;
    return is_floating(from) && item_size(from) < item_size(instr.dtype) ? instr.args[0] : i;
  }

  void rows_then_columns() {
    if (reduces_columns_on_the_way()) return rows_with_columns();
    MapProgram rows = map_, after = map_;
    rows.reduces.clear();
    after.stores.clear();
    std::set<int> done;
    for (const MapReduce& reduce : map_.reduces) {
      const int i = upcast(reduce.source);
      if (!can_be_recomputed(i) && done.insert(i).second) after.instrs[at(i)] = kept(rows, i);
    }
    if (!rows.stores.empty()) push(LoopNestKind::Rows, rows);
    if (!after.reduces.empty()) columns(everywhere(after));
  }

  /// True if one row kernel also reduces columns: there are enough rows, and they are short.
  bool reduces_columns_on_the_way() const {
    const int last = map_.space.rank() - 1;
    const std::int64_t length = map_.space[last];
    if (map_.reduces.empty() || length < kShortestWithColumns || length > kLongestWithColumns ||
        map_.space.numel() / length < kFewestWithColumns)
      return false;
    return std::all_of(map_.reduces.begin(), map_.reduces.end(), [&](const MapReduce& reduce) {
      for (int d = 0; d <= last; ++d)
        if (map_.space[d] != 1 && ((reduce.axes >> d & 1u) != 0) != (d != last)) return false;
      return !reduce.deviations && reduce.op != Op::ArgMax && reduce.op != Op::ArgMin;
    });
  }

  /// The row kernel stores the sums of each chunk of rows in tables; a second kernel reduces the
  /// tables' columns.
  void rows_with_columns() {
    const std::int64_t length = map_.space[map_.space.rank() - 1],
                       count = map_.space.numel() / length,
                       most = kMostChunks / (has_warp_rows(map_) ? kWarpsWithColumns : 1),
                       chunk = divide_up(count, most), chunks = divide_up(count, chunk);
    MapProgram rows = map_, columns;
    columns.space = {chunks, length};
    for (MapReduce& reduce : rows.reduces) {
      const DType from = map_.instrs[at(reduce.source)].dtype;
      const bool wide =
          from == DType::Float64 || out_.values[at(reduce.value)].dtype == DType::Float64;
      MapInstr load;
      load.dtype = !is_floating(from) ? DType::Int64 : wide ? DType::Float64 : DType::Float32;
      load.view.value = temporary(load.dtype, columns.space);
      load.view.stride[0] = length;
      load.view.stride[1] = 1;
      columns.instrs.push_back(load);
      columns.reduces.push_back(
          {static_cast<int>(columns.instrs.size()) - 1, reduce.op, 1, reduce.value});
      reduce.value = load.view.value;
    }
    push(LoopNestKind::Rows, rows);
    push(LoopNestKind::Columns, columns);
  }

  /// No value is stored per row, so the distinction of rows is dropped.
  static MapProgram everywhere(MapProgram map) {
    map = without_unused(map);
    const int last = map.space.rank() - 1;
    map.has_rows = false;
    for (MapInstr& instr : map.instrs) {
      if (instr.per_row && has_view(instr)) instr.view.stride[last] = 0;
      instr.per_row = false;
    }
    return map;
  }

  /// Reduces one set of axes after another; the last kernel also stores.
  void columns(const MapProgram& map) {
    std::map<std::uint32_t, std::vector<MapReduce>> by_axes;
    for (const MapReduce& reduce : map.reduces) by_axes[kept_axes(map, reduce)].push_back(reduce);
    std::size_t left = by_axes.size();
    for (const auto& [axes, reduces] : by_axes) {
      MapProgram nest = map;
      nest.reduces = reduces;
      if (--left != 0) nest.stores.clear();
      push(LoopNestKind::Columns, nest);
    }
    if (by_axes.empty()) push(LoopNestKind::Elements, map);
  }

  /// The mask without axes of size 1, which make no difference.
  static std::uint32_t kept_axes(const MapProgram& map, const MapReduce& reduce) {
    std::uint32_t axes = 0;
    for (int d = 0; d < map.space.rank(); ++d)
      if (map.space[d] != 1 && (reduce.axes >> d & 1u) != 0) axes |= 1u << d;
    return axes;
  }

  /// For few long rows: each depth of row reductions becomes a kernel that reduces the last axis
  /// with many blocks per row. Later kernels load the results.
  void cut_rows_by_depth() {
    if (only_sums()) return store_sums();
    const std::vector<int> depths = depths_of(map_);
    const int deepest = depth_of(map_);
    MapProgram current = map_;
    for (int depth = 1; depth <= deepest; ++depth) {
      MapProgram nest = current;
      nest.stores.clear();
      nest.reduces.clear();
      for (std::size_t i = 0; i < map_.instrs.size(); ++i) {
        const MapInstr& instr = map_.instrs[i];
        if (instr.code != MapCode::RowReduce || depths[i] != depth) continue;
        Shape shape = map_.space;
        shape[shape.rank() - 1] = 1;
        const ValueId value = temporary(instr.dtype, shape);
        nest.reduces.push_back({instr.args[0], instr.op, row_bit(), value});
        current.instrs[i] = load_of(value, instr.dtype, row_bit(), true);
      }
      push(LoopNestKind::Columns, everywhere(nest));
    }
    store_rows_and_elements(current);
  }

  void store_sums() {
    MapProgram nest = map_;
    nest.stores.clear();
    for (const MapStore& store : map_.stores) {
      const MapInstr& sum = map_.instrs[at(store.source)];
      nest.reduces.push_back({sum.args[0], sum.op, row_bit(), store.view.value});
    }
    push(LoopNestKind::Columns, everywhere(nest));
  }

  /// The stores and column reductions of a program that no longer reduces rows.
  void store_rows_and_elements(const MapProgram& map) {
    MapProgram of_rows = map, of_elements = map;
    const auto once_a_row = [&](const MapStore& store) {
      return map.instrs[at(store.source)].per_row;
    };
    std::erase_if(of_rows.stores, [&](const MapStore& store) { return !once_a_row(store); });
    std::erase_if(of_elements.stores, once_a_row);
    of_rows.reduces.clear();
    if (!of_elements.stores.empty() || !of_elements.reduces.empty())
      columns(everywhere(of_elements));
    if (of_rows.stores.empty()) return;
    // Over the rows alone.
    of_rows = without_unused(of_rows);
    of_rows.space[of_rows.space.rank() - 1] = 1;
    of_rows.has_rows = false;
    for (MapInstr& instr : of_rows.instrs) instr.per_row = false;
    push(LoopNestKind::Elements, of_rows);
  }

  const MapProgram map_;
  LoopNests out_;
};

}  // namespace

std::int64_t registers_ahead(const MapProgram& map, std::int64_t more) {
  const int last = map.space.rank() - 1;
  const std::int64_t elements = divide_up(map.space[last], 32);
  std::int64_t registers = more * elements;
  for (const MapInstr& instr : map.instrs) {
    if (instr.code != MapCode::Load || instr.per_row || instr.view.stride[last] == 0) continue;
    bool by_row = false;
    for (int d = 0; d < last; ++d)
      by_row = by_row || (map.space[d] != 1 && instr.view.stride[d] != 0);
    if (by_row)
      registers += 2 * divide_up(elements * static_cast<std::int64_t>(item_size(instr.dtype)), 4);
  }
  return registers;
}

bool has_warp_rows(const MapProgram& map) {
  // Where the next row cannot be prefetched while one is computed, a block per row is faster.
  return map.space.rank() == 2 && map.space[1] % kLeastAhead == 0 &&
         map.space[1] >= kShortestOfWarp &&
         registers_ahead(map, std::ssize(map.reduces)) <= kMostOfLane;
}

LoopNests split_into_loop_nests(const MapProgram& map, std::span<const Value> values) {
  return Cutter(map, values).cut();
}

}  // namespace tenon::cuda
