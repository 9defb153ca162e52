// Joins regions that process a column reduction's results into one program. A value that one region
// stores and another loads stays in registers, as the results do. All other loads start before the
// results are ready, and no block waits for others.
#include "cuda/engines/maps/column_results.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/index.h"
#include "cuda/engines/maps/map_layout.h"
#include "cuda/engines/maps/print_code.h"

namespace tenon::cuda {

namespace {

class Joiner {
 public:
  Joiner(const LoopNest& columns, std::span<const Value> values) : values_(values) {
    size_ = values[at(columns.map.reduces[0].value)].shape.numel();
    for (const MapReduce& reduce : columns.map.reduces) reduced_.insert(reduce.value);
    out_.space = {size_};
  }

  std::optional<MapProgram> join(const LoopNest& columns, std::span<const Region> later) {
    std::vector<MapProgram> maps;
    for (const Region& region : later) {
      LoopNests nests = split_into_loop_nests(region.map, values_);
      if (nests.nests.size() != 1 || nests.nests[0].kind != LoopNestKind::Elements) return {};
      maps.push_back(std::move(nests.nests[0].map));
      if (!is_of_results(maps.back())) return {};
      for (const MapStore& store : maps.back().stores) written_.insert(store.view.value);
    }
    const auto rounds = [this](ValueId id) { return needs_rounding(values_[at(id)].dtype); };
    if (!are_apart(columns.map) || std::any_of(reduced_.begin(), reduced_.end(), rounds)) return {};
    for (const MapProgram& map : maps)
      if (!add(map)) return {};
    return std::move(out_);
  }

 private:
  bool is_of_results(const MapProgram& map) const {
    return map.space.rank() == 1 && map.space[0] == size_ &&
           std::all_of(map.instrs.begin(), map.instrs.end(), [](const MapInstr& instr) {
             return instr.code == MapCode::Load || instr.code == MapCode::Number ||
                    instr.code == MapCode::Compute;
           });
  }

  /// True if the kernel reads nothing that the regions write. Of the kernel's outputs the regions
  /// may read only the results, and they must write none of them: other blocks of the kernel may
  /// still run.
  bool are_apart(const MapProgram& nest) const {
    return std::none_of(written_.begin(), written_.end(), [&](ValueId id) {
      return loads(nest, id) || stores(nest, id) || reduced_.contains(id);
    });
  }

  bool is_in_order(const View& view) const {
    return view.offset == 0 && (size_ == 1 || view.stride[0] == 1) &&
           values_[at(view.value)].shape.numel() == size_;
  }

  /// True if an instruction computed in a 16-bit type is held in registers as float32.
  static bool is_rounded_when_stored(const MapInstr& made) {
    return is_16_bit_float(made.dtype) && made.code == MapCode::Compute && made.op != Op::Cast;
  }

  bool add(const MapProgram& map) {
    std::vector<int> place;
    for (MapInstr instr : map.instrs) {
      if (instr.code == MapCode::Load) {
        const ValueId id = instr.view.value;
        if ((written_.contains(id) || reduced_.contains(id)) && !is_in_order(instr.view))
          return false;
        if (reduced_.contains(id) && values_[at(id)].dtype != instr.dtype) return false;
        if (const auto made = made_.find(id); made != made_.end()) {
          const MapInstr& source = out_.instrs[at(made->second)];
          if (source.dtype != instr.dtype || is_rounded_when_stored(source)) return false;
          place.push_back(made->second);
          continue;
        }
      }
      for (int& arg : instr.args)
        if (arg >= 0) arg = place[at(arg)];
      place.push_back(static_cast<int>(out_.instrs.size()));
      out_.instrs.push_back(std::move(instr));
    }
    for (MapStore store : map.stores) {
      if (!is_in_order(store.view)) return false;
      store.source = place[at(store.source)];
      made_[store.view.value] = store.source;
      out_.stores.push_back(store);
    }
    return true;
  }

  const std::span<const Value> values_;
  std::int64_t size_ = 0;
  std::set<ValueId> reduced_, written_;  // by the kernel; by the regions
  std::map<ValueId, int> made_;          // by the regions so far: the instruction
  MapProgram out_;
};

}  // namespace

std::optional<MapProgram> merge_column_results(const LoopNest& columns,
                                               std::span<const Region> later,
                                               std::span<const Value> values) {
  // Values that the kernel stores element by element are complete only when the kernel has ended.
  for (const Region& region : later)
    for (const MapStore& store : columns.map.stores)
      if (loads(region.map, store.view.value)) return {};
  return Joiner(columns, values).join(columns, later);
}

}  // namespace tenon::cuda
