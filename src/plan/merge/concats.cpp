// Concatenations whose inputs are all computed by one map, or by one attention gradient, and read
// by nothing else. That step writes each input directly to its place in the concatenation.
// Examples: the gradient of a recurrent step's gates; the gradients of queries, keys and values of
// one projection.
//
// On GPUs only, where a copy is a launch. A CPU map writes sequentially.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "graph/attrs.h"
#include "plan/merge/merge.h"
#include "plan/program/strides.h"

namespace tenon {
namespace {

/// The elements of one input in each row of the result. Rows of the result are `pitch` apart.
struct RunsInRows {
  std::int64_t run = 0, pitch = 0, before = 0;
};

/// Rows of an input must start at multiples of 16 bytes, whatever width the kernel stores with.
constexpr std::int64_t kAligned = 8;

/// A view that writes a contiguous value as separate rows of a wider matrix. Every axis of the
/// space must lie inside a row or step over whole rows. None if an axis crosses the end of a row.
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
      const int maker = maker_of(s);
      if (maker < 0 || taken[at(maker)] != 0 || !write_in_place(s, m_.region(maker))) continue;
      taken[at(maker)] = 1;
      groups.push_back({maker, s});
    }
    if (groups.empty()) return;
    m_.replace(groups, [this](const std::vector<int>& members) {
      return std::move(m_.program.steps[at(members[0])]);
    });
  }

 private:
  /// The step that computes all inputs of a concatenation, if nothing else reads them; otherwise
  /// -1.
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
    return maker;
  }

  /// The place of each input in a concatenation, in order; empty if the rule does not apply.
  std::vector<RunsInRows> runs_of(const Opaque& concat) const {
    const auto axis = static_cast<int>(concat.attrs.as<AxisAttrs>().axis);
    std::int64_t inner = 1, pitch = 0;
    for (int d = axis + 1; d < concat.shapes[0].rank(); ++d) inner *= concat.shapes[0][d];
    for (const Shape& shape : concat.shapes) pitch += shape[axis] * inner;
    std::vector<RunsInRows> runs;
    std::int64_t before = 0;
    for (const Shape& shape : concat.shapes) {
      runs.push_back({shape[axis] * inner, pitch, before});
      before += runs.back().run;
      if (shape.numel() == 0) return {};
    }
    return runs;
  }

  bool write_in_place(int concat, Region& maker) {
    const Opaque& opaque = m_.region(concat).opaque;
    const std::vector<RunsInRows> runs = runs_of(opaque);
    if (runs.empty()) return false;
    const bool is_attention =
        maker.kind == RegionKind::Opaque && maker.opaque.op == Op::AttentionGrad;
    if (!is_attention && maker.kind != RegionKind::Map) return false;
    if (!(is_attention ? place_results(opaque, runs, maker.opaque)
                       : place_stores(opaque, runs, maker.map)))
      return false;
    for (const ValueId id : opaque.inputs) {
      std::erase(maker.writes, id);
      m_.elide(id);
    }
    maker.writes.push_back(opaque.out());
    note(maker, "writes its results directly into a concatenation");
    return true;
  }

  static bool place_stores(const Opaque& concat, const std::vector<RunsInRows>& runs,
                           MapProgram& map) {
    std::vector<MapStore> stores = map.stores;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const auto store = std::find_if(stores.begin(), stores.end(), [&](const MapStore& one) {
        return one.view.value == concat.inputs[k];
      });
      if (store == stores.end() || map.instrs[at(store->source)].per_row) return false;
      const std::optional<View> view = written_as_runs(store->view, map.space, runs[k]);
      if (!view) return false;
      store->view = *view;
      store->view.value = concat.out();
    }
    map.stores = std::move(stores);
    return true;
  }

  /// For attention results [batch, length, heads, size]: heads and size form one row.
  static bool place_results(const Opaque& concat, const std::vector<RunsInRows>& runs,
                            Opaque& attention) {
    if (!attention.out_views.empty()) return false;
    std::vector<View> views(attention.outs.size());
    for (std::size_t k = 0; k < views.size(); ++k) {
      const Shape& shape = attention.shapes[k];
      views[k].value = attention.outs[k];
      contiguous_strides(shape, views[k].stride);
      const auto part = std::find(concat.inputs.begin(), concat.inputs.end(), attention.outs[k]);
      if (part == concat.inputs.end()) continue;
      const RunsInRows& to = runs[at(part - concat.inputs.begin())];
      if (to.run != shape[2] * shape[3] || (to.run | to.pitch | to.before) % kAligned != 0)
        return false;
      const std::optional<View> view = written_as_runs(views[k], shape, to);
      if (!view) return false;
      views[k] = *view;
      views[k].value = concat.out();
    }
    for (std::size_t k = 0; k < views.size(); ++k) attention.outs[k] = views[k].value;
    attention.out_views = std::move(views);
    return true;
  }

  Merger& m_;
};

}  // namespace

void merge_concats(Merger& merger) {
  if (merger.options.traits.launches_kernels && merger.options.enabled(kFuse) &&
      merger.options.enabled(kConcats))
    ConcatWriter(merger).run();
}

}  // namespace tenon
