// Concatenations of values that one map makes and nobody else reads: the map writes each where the
// concatenation would copy it. The gradient of a recurrent step's gates is one.
//
// On cards alone, where a copy is a launch; a map of a CPU writes in order.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "graph/attrs.h"
#include "plan/lower.h"
#include "plan/merge/merge.h"

namespace tenon {
namespace {

/// Elements that an input has of each row of the result, whose rows are `pitch` apart.
struct RunsInRows {
  std::int64_t run = 0, pitch = 0, before = 0;
};

/// The view that writes a contiguous value as runs of rows: every axis of the space lies within a
/// run or steps over whole ones. None where an axis crosses their ends.
std::optional<View> written_as_runs(const View& view, const Shape& space, const RunsInRows& to) {
  if (!is_contiguous(view, space)) return {};
  View out = view;
  out.offset = to.before;
  for (int d = 0; d < space.rank(); ++d) {
    if (space[d] == 1 || view.stride[d] * space[d] <= to.run) continue;
    if (view.stride[d] % to.run != 0) return {};
    out.stride[d] = view.stride[d] / to.run * to.pitch;
  }
  return out;
}

class ConcatWriter {
 public:
  explicit ConcatWriter(Merger& merger) : m_(merger) {}

  void run() {
    std::vector<char> taken(at(m_.size()));
    Lists groups;
    for (int s = 0; s < m_.size(); ++s) {
      const Region& region = m_.region(s);
      if (region.kind != RegionKind::Opaque || region.opaque.op != Op::Concat) continue;
      const int map = maker_of(s);
      if (map < 0 || taken[at(map)] != 0 || !write_in_place(s, m_.region(map))) continue;
      taken[at(map)] = 1;
      groups.push_back({map, s});
    }
    if (groups.empty()) return;
    m_.replace(groups, [this](const std::vector<int>& members) {
      return std::move(m_.program.steps[at(members[0])]);
    });
  }

 private:
  /// The map step that makes all inputs of a concatenation, for it alone; or -1.
  int maker_of(int concat) const {
    const std::vector<ValueId>& inputs = m_.region(concat).opaque.inputs;
    int maker = -1;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::size_t id = at(inputs[k]);
      const bool is_alone = m_.writers[id].size() == 1 && m_.readers[id].size() == 1 &&
                            m_.values()[id].kind == Value::Kind::Arena &&
                            std::count(inputs.begin(), inputs.end(), inputs[k]) == 1;
      if (!is_alone || (k > 0 && m_.writers[id][0] != maker)) return -1;
      maker = m_.writers[id][0];
    }
    return maker >= 0 && m_.region(maker).kind == RegionKind::Map ? maker : -1;
  }

  bool write_in_place(int concat, Region& map) {
    const Opaque& opaque = m_.region(concat).opaque;
    const auto axis = static_cast<int>(opaque.attrs.as<AxisAttrs>().axis);
    const Shape& all = m_.values()[at(opaque.out())].shape;
    std::int64_t inner = 1, before = 0;
    for (int d = axis + 1; d < opaque.shapes[0].rank(); ++d) inner *= opaque.shapes[0][d];
    std::int64_t pitch = 0;
    for (const Shape& shape : opaque.shapes) pitch += shape[axis] * inner;
    if (all.numel() == 0) return false;
    std::vector<MapStore> stores = map.map.stores;
    for (std::size_t k = 0; k < opaque.inputs.size(); ++k) {
      const std::int64_t run = opaque.shapes[k][axis] * inner;
      const auto store = std::find_if(stores.begin(), stores.end(), [&](const MapStore& one) {
        return one.view.value == opaque.inputs[k];
      });
      if (run == 0 || store == stores.end() || map.map.instrs[at(store->source)].per_row)
        return false;
      const std::optional<View> view =
          written_as_runs(store->view, map.map.space, {run, pitch, before});
      if (!view) return false;
      store->view = *view;
      store->view.value = opaque.out();
      before += run;
    }
    map.map.stores = std::move(stores);
    for (const ValueId id : opaque.inputs) {
      std::erase(map.writes, id);
      m_.elide(id);
    }
    map.writes.push_back(opaque.out());
    note(map, "writes the parts of a concatenation where they go");
    return true;
  }

  Merger& m_;
};

}  // namespace

void merge_concats(Merger& merger) {
  if (merger.options.traits.is_queued && merger.options.enabled(kFuse)) ConcatWriter(merger).run();
}

}  // namespace tenon
