// In-place results of maps: a map that reads a large value only at the element that it writes
// stores its result over that value, after all other readers. Example: the logits of a language
// model and their gradient share one buffer, though the loss reads the label's logit separately.
#include <algorithm>

#include "plan/merge/merge.h"
#include "plan/program/region_key.h"
#include "plan/program/strides.h"

namespace tenon {
namespace {

/// Smaller values already share bytes with values of other lifetimes.
constexpr std::int64_t kLeastShared = std::int64_t{64} << 20;

class Overwriter {
 public:
  explicit Overwriter(Merger& merger) : m_(merger) {}

  void run() {
    for (int s = 0; s < m_.size(); ++s) {
      Region& region = m_.region(s);
      if (region.kind != RegionKind::Map || !region.map.reduces.empty()) continue;
      for (std::size_t k = 0; k < region.map.stores.size(); ++k) write_over(s, k);
    }
  }

 private:
  const Value& value(ValueId id) const { return m_.values()[at(id)]; }
  bool is_from(int step, ValueId id) const {
    return m_.writers[at(id)].size() == 1 && m_.writers[at(id)][0] == step;
  }

  /// Lets a store overwrite an operand of the map, if that is allowed.
  void write_over(int step, std::size_t store) {
    Region& region = m_.region(step);
    const View to = region.map.stores[store].view;
    const Value& result = value(to.value);
    if (result.kind != Value::Kind::Arena || !is_from(step, to.value) ||
        region.map.instrs[at(region.map.stores[store].source)].per_row ||
        region.map.space.numel() != result.shape.numel() || names(region.map, to.value) != 1)
      return;
    for (const MapInstr& instr : region.map.instrs) {
      if (instr.code != MapCode::Load || !may_be_lost(step, instr.view.value, to)) continue;
      m_.program.limits.push_back({result.bytes, kLeastShared - 1});
      if (result.bytes < kLeastShared) return;
      if (!others_may_run_before(step, instr.view.value)) continue;
      take_place(step, instr.view.value, to.value);
      return;
    }
  }

  /// Lets `result` take the memory of `lost`: the writer and the readers of `lost` use `result`
  /// instead, and the map waits for those readers.
  void take_place(int step, ValueId lost, ValueId result) {
    const int maker = m_.writers[at(lost)][0];
    rename_value(m_.region(maker), lost, result);
    for (int reader : m_.readers[at(lost)]) {
      rename_value(m_.region(reader), lost, result);
      m_.readers[at(result)].push_back(reader);
      if (reader == step) continue;
      merge(m_.before[at(step)], {reader});
      m_.times.graph().add_edge(reader, step);
    }
    m_.elide(lost);
    m_.writers[at(result)].push_back(maker);
    note(m_.region(step), "overwrites an operand with its result");
  }

  bool others_may_run_before(int step, ValueId id) const {
    const SmallIntVector& readers = m_.readers[at(id)];
    return std::none_of(readers.begin(), readers.end(), [&](int reader) {
      return reader != step && m_.times.graph().reaches(step, reader);
    });
  }

  /// Whether the map may overwrite the value. The map must read it only at the elements that it
  /// writes. The value must be in the arena, must have the dtype and shape of the result, and must
  /// be written by one step (a map, a contraction or an opaque region).
  bool may_be_lost(int step, ValueId id, const View& to) const {
    const Value &operand = value(id), &result = value(to.value);
    const MapProgram& map = m_.program.steps[at(step)].region.map;
    if (operand.kind != Value::Kind::Arena || operand.dtype != result.dtype ||
        operand.shape != result.shape || m_.writers[at(id)].size() != 1 || is_from(step, id))
      return false;
    const RegionKind maker = m_.program.steps[at(m_.writers[at(id)][0])].region.kind;
    return (maker == RegionKind::Map || maker == RegionKind::Contraction ||
            maker == RegionKind::Opaque) &&
           std::all_of(map.instrs.begin(), map.instrs.end(), [&](const MapInstr& instr) {
             return instr.view.value != id ||
                    (instr.code == MapCode::Load && same_elements(instr.view, to, map.space));
           });
  }

  static int names(const MapProgram& map, ValueId id) {
    int count = 0;
    for (const MapInstr& instr : map.instrs) count += instr.view.value == id ? 1 : 0;
    for (const MapStore& store : map.stores) count += store.view.value == id ? 1 : 0;
    return count;
  }

  Merger& m_;
};

}  // namespace

void merge_overwrites(Merger& merger) {
  if (merger.options.traits.overwrites_inputs && merger.options.enabled(kPlanMemory) &&
      merger.options.enabled(kOverwrites))
    Overwriter(merger).run();
}

}  // namespace tenon
