// Axes, levels and extents of views: facts about map programs that several printers need.
#include "cuda/engines/maps/map_layout.h"
#include "base/index.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::cuda {

namespace {

template <class Map, class F>
void each_view(Map& map, F&& f) {
  for (auto& instr : map.instrs)
    if (has_view(instr)) f(instr.view);
  for (auto& store : map.stores) f(store.view);
}

/// True if axis `d` continues where axis `before` ends in every view and every reduction.
bool continues(const MapProgram& map, int before, int d) {
  bool all = true;
  each_view(map, [&](const View& view) {
    all = all && view.stride[before] == view.stride[d] * map.space[d];
  });
  for (const MapReduce& reduce : map.reduces)
    all = all && (reduce.axes >> before & 1u) == (reduce.axes >> d & 1u);
  return all;
}

void drop_last_stride_of_rows(MapProgram& map) {
  const int last = map.space.rank() - 1;
  if (last < 0) return;
  for (MapInstr& instr : map.instrs)
    if (instr.per_row) instr.view.stride[last] = 0;
  for (MapStore& store : map.stores)
    if (map.instrs[at(store.source)].per_row) store.view.stride[last] = 0;
}

}  // namespace

MapProgram with_merged_axes(const MapProgram& map) {
  MapProgram out = map;
  drop_last_stride_of_rows(out);
  const int rank = map.space.rank();
  struct Run {
    int last;
    std::int64_t size;
  };
  std::vector<Run> runs;
  for (int d = 0; d < rank; ++d) {
    const bool row_axis = map.has_rows && d == rank - 1;
    if (map.space[d] == 1 && !row_axis) continue;
    if (!runs.empty() && !row_axis && continues(out, runs.back().last, d)) {
      runs.back().last = d;
      runs.back().size *= map.space[d];
    } else {
      runs.push_back({d, map.space[d]});
    }
  }
  out.space = Shape();
  for (const Run& run : runs) out.space.push_back(run.size);
  each_view(out, [&](View& view) {
    View merged;
    merged.value = view.value;
    merged.offset = view.offset;
    for (std::size_t r = 0; r < runs.size(); ++r) merged.stride[r] = view.stride[runs[r].last];
    view = merged;
  });
  for (MapReduce& reduce : out.reduces) {
    std::uint32_t axes = 0;
    for (std::size_t r = 0; r < runs.size(); ++r)
      if ((reduce.axes >> runs[r].last & 1u) != 0) axes |= 1u << r;
    reduce.axes = axes;
  }
  if (runs.empty()) out.space.push_back(1);
  return out;
}

MapProgram without_unused(const MapProgram& map) {
  std::vector<bool> used(map.instrs.size());
  for (const MapStore& store : map.stores) used[at(store.source)] = true;
  for (const MapReduce& reduce : map.reduces) {
    used[at(reduce.source)] = true;
    if (reduce.within >= 0) used[at(reduce.within)] = true;
  }
  for (std::size_t i = map.instrs.size(); i-- > 0;) {
    if (!used[i]) continue;
    for (const int arg : map.instrs[i].args)
      if (arg >= 0) used[at(arg)] = true;
  }
  MapProgram out = map;
  out.instrs.clear();
  std::vector<int> place(map.instrs.size(), -1);
  out.has_rows = false;
  for (std::size_t i = 0; i < map.instrs.size(); ++i) {
    if (!used[i]) continue;
    place[i] = static_cast<int>(out.instrs.size());
    out.instrs.push_back(map.instrs[i]);
    for (int& arg : out.instrs.back().args)
      if (arg >= 0) arg = place[at(arg)];
    out.has_rows = out.has_rows || map.instrs[i].per_row;
  }
  out.has_rows = out.has_rows && map.has_rows;
  for (MapStore& store : out.stores) store.source = place[at(store.source)];
  for (MapReduce& reduce : out.reduces) {
    reduce.source = place[at(reduce.source)];
    if (reduce.within >= 0) reduce.within = place[at(reduce.within)];
  }
  return out;
}

std::vector<Level> levels_of(const MapProgram& map) {
  std::vector<Level> levels;
  const int rank = map.space.rank();
  for (const MapInstr& instr : map.instrs) {
    Level level = Level::Run;
    for (const int arg : instr.args)
      if (arg >= 0) level = std::max(level, levels[at(arg)]);
    if (has_view(instr))
      for (int d = 0; d < rank; ++d)
        if (instr.view.stride[d] != 0 && map.space[d] != 1)
          level = std::max(level, d == rank - 1 ? Level::Element : Level::Row);
    if (instr.code == MapCode::Accumulator) level = Level::Element;
    if (instr.code == MapCode::Random) level = instr.per_row ? Level::Row : Level::Element;
    if (instr.code == MapCode::RowReduce) level = Level::Row;
    levels.push_back(level);
  }
  return levels;
}

std::vector<int> depths_of(const MapProgram& map) {
  std::vector<int> depths;
  for (const MapInstr& instr : map.instrs) {
    int depth = 0;
    for (const int arg : instr.args)
      if (arg >= 0) depth = std::max(depth, depths[at(arg)]);
    depths.push_back(depth + (instr.code == MapCode::RowReduce ? 1 : 0));
  }
  return depths;
}

bool loads(const MapProgram& map, ValueId value) {
  return std::any_of(map.instrs.begin(), map.instrs.end(), [&](const MapInstr& instr) {
    return instr.code == MapCode::Load && instr.view.value == value;
  });
}

bool stores(const MapProgram& map, ValueId value) {
  return std::any_of(map.stores.begin(), map.stores.end(),
                     [&](const MapStore& store) { return store.view.value == value; });
}

bool fits_int(const MapProgram& map) {
  // Leaves room for the counters of a grid, which run slightly beyond the last element.
  constexpr std::int64_t most = (std::int64_t{1} << 31) - (1 << 22);
  std::int64_t reach = map.space.numel();
  each_view(map, [&](const View& view) {
    std::int64_t offset = std::abs(view.offset);
    for (int d = 0; d < map.space.rank(); ++d)
      offset += std::abs(view.stride[d]) * std::max<std::int64_t>(map.space[d], 1);
    reach = std::max(reach, offset);
  });
  return reach < most;
}

}  // namespace tenon::cuda
