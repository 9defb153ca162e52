// Both rules look at one map region and keep the order of its instructions.
#include "plan/regions/map_rules.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace tenon {
namespace {

bool is_load(const MapInstr& instr) {
  return instr.code == MapCode::Load || instr.code == MapCode::Affine ||
         instr.code == MapCode::Number;
}

bool load_alike(const MapInstr& a, const MapInstr& b) {
  return a.code == b.code && a.dtype == b.dtype && a.per_row == b.per_row && a.attrs == b.attrs &&
         a.view.value == b.view.value && a.view.offset == b.view.offset &&
         std::memcmp(a.view.stride, b.view.stride, sizeof a.view.stride) == 0;
}

// One axis of the collapsed space: neighbouring axes up to `last`, and axes of size 1 among them.
struct AxisRun {
  int last;
  std::int64_t size;
};

// Whether axis `d` continues axis `before` in every view and every reduction.
bool continues(MapProgram& map, int before, int d) {
  bool all = true;
  each_view(map, [&](View& view) { all &= view.stride[before] == view.stride[d] * map.space[d]; });
  for (const MapReduce& reduce : map.reduces)
    all &= (reduce.axes >> before & 1u) == (reduce.axes >> d & 1u);
  return all;
}

std::vector<AxisRun> axis_runs(MapProgram& map) {
  std::vector<AxisRun> runs;
  const int rank = map.space.rank();
  for (int d = 0; d < rank; ++d) {
    const bool row = map.has_rows && d == rank - 1;
    if (map.space[d] == 1 && !row) continue;
    if (runs.empty() || row || !continues(map, runs.back().last, d)) {
      runs.push_back({d, map.space[d]});
    } else {
      runs.back().last = d;
      runs.back().size *= map.space[d];
    }
  }
  return runs;
}

}  // namespace

int merge_loads(MapProgram& map) {
  std::vector<int> now(map.instrs.size());  // by instruction, its position without equal loads
  std::vector<int> loads;                   // positions of those that stay
  int kept = 0;
  for (std::size_t k = 0; k < map.instrs.size(); ++k) {
    MapInstr& instr = map.instrs[k];
    if (is_load(instr)) {
      const auto same = std::find_if(loads.begin(), loads.end(), [&](int other) {
        return load_alike(map.instrs[static_cast<std::size_t>(other)], instr);
      });
      if (same != loads.end()) {
        now[k] = *same;
        continue;
      }
      loads.push_back(kept);
    }
    for (int& arg : instr.args)
      if (arg >= 0) arg = now[static_cast<std::size_t>(arg)];
    now[k] = kept;
    if (kept != static_cast<int>(k)) map.instrs[static_cast<std::size_t>(kept)] = std::move(instr);
    ++kept;
  }
  const int merged = static_cast<int>(map.instrs.size()) - kept;
  map.instrs.resize(static_cast<std::size_t>(kept));
  for (MapStore& store : map.stores) store.source = now[static_cast<std::size_t>(store.source)];
  for (MapReduce& reduce : map.reduces)
    reduce.source = now[static_cast<std::size_t>(reduce.source)];
  return merged;
}

int collapse_axes(MapProgram& map) {
  const std::vector<AxisRun> runs = axis_runs(map);
  Shape merged;
  for (const AxisRun& run : runs) merged.push_back(run.size);
  each_view(map, [&](View& view) {
    std::int64_t stride[kMaxRank] = {};
    for (std::size_t r = 0; r < runs.size(); ++r) stride[r] = view.stride[runs[r].last];
    std::memcpy(view.stride, stride, sizeof stride);
  });
  for (MapReduce& reduce : map.reduces) {
    std::uint32_t axes = 0;
    for (std::size_t r = 0; r < runs.size(); ++r)
      if ((reduce.axes >> runs[r].last & 1u) != 0) axes |= 1u << r;
    reduce.axes = axes;
  }
  if (merged.rank() == 0) {
    merged.push_back(1);
    for (MapReduce& reduce : map.reduces) reduce.axes = 1;
  }
  const int gone = map.space.rank() - merged.rank();
  map.space = merged;
  return gone;
}

}  // namespace tenon
