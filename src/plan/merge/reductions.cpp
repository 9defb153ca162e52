// Reductions of a product's result become part of the product's epilogue, so that the result is not
// read again. Two kinds: over the whole result (the sum of squares of a weight gradient, for
// clipping by norm), and for each channel (the moments of a batch, the sums of a normalisation's
// gradient). On the host only for results stored in 16 bits; float32 results are left to chains,
// which pass them on in cache.
//
// Engines say whether they support this (Capabilities). If another engine would then have to run
// the product, the engines' models decide (Engine::estimate). Measurements are ignored: the same
// graph is planned the same way, whatever a machine has measured.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/contains.h"
#include "base/str.h"
#include "plan/merge/epilogue.h"
#include "plan/merge/merge.h"
#include "plan/merge/product_columns.h"
#include "plan/program/strides.h"
#include "plan/regions/groups.h"

namespace tenon {
namespace {

/// Elements of a result from which an epilogue reduction pays. The last thread block takes as long
/// as reading this many elements in an existing launch; a launch is saved only where nothing else
/// runs meanwhile.
constexpr std::int64_t kManyElements = std::int64_t{1} << 20;

/// How a map reduces a product's result: over which of the axes [batch, rows, columns], and which
/// axis it keeps, if any. The kept axis (channels) is axis `from` of the map's own space.
struct Reduced {
  std::uint32_t axes = 0;
  int channels = -1, from = -1;
};

/// Whether a view reads the same element everywhere, except along one axis.
bool is_vector(const View& view, const Shape& space, int along) {
  for (int d = 0; d < space.rank(); ++d)
    if (d != along && space[d] != 1 && view.stride[d] != 0) return false;
  return true;
}

bool gives_one_number(Op op) { return kind_of(op) == OpKind::Reduction; }

/// The axis that all reductions keep; -1: they keep none; no value: they differ.
std::optional<int> kept_axis(const MapProgram& map) {
  std::optional<int> kept;
  const auto agrees = [&kept](int axis) {
    if (!kept) kept = axis;
    return *kept == axis;
  };
  for (const MapReduce& reduce : map.reduces) {
    int axis = -1;
    for (int d = 0; d < map.space.rank(); ++d) {
      if (map.space[d] == 1 || (reduce.axes >> d & 1u) != 0) continue;
      if (axis >= 0) return {};
      axis = d;
    }
    if (!agrees(axis) || (reduce.deviations && axis < 0)) return {};
  }
  for (const MapStore& store : map.stores)
    if (!agrees(-1) || map.instrs[at(store.source)].code != MapCode::RowReduce ||
        store.view.offset != 0)
      return {};
  return kept;
}

/// Whether a map only reduces: from elements read in order to one number, or to one number for each
/// entry of the kept axis, or to values computed from these numbers.
bool only_reduces(const MapProgram& map, int kept) {
  if (map.space.numel() == 0) return false;
  if (map.has_rows && (kept >= 0 || map.space[map.space.rank() - 1] != map.space.numel()))
    return false;
  return std::all_of(map.instrs.begin(), map.instrs.end(), [&](const MapInstr& instr) {
    switch (instr.code) {
      case MapCode::Load:
        return is_contiguous(instr.view, map.space) || is_vector(instr.view, map.space, kept);
      case MapCode::Number:
        return true;
      case MapCode::Compute:
        return !instr.per_row;
      case MapCode::RowReduce:
        return gives_one_number(instr.op);
      default:
        return false;
    }
  });
}

/// How the map reduces a product's result, if it reads the result element by element in order.
Reduced reduced_of(const Region& product, const Shape& reader_space, int kept) {
  if (kept < 0) return {7, -1, -1};
  const Shape space = space_of_epilogue(product);
  std::int64_t behind = 1, inner = 1;
  for (int d = kept + 1; d < reader_space.rank(); ++d) behind *= reader_space[d];
  for (int d = space.rank() - 1; d > 0; inner *= space[d], --d)
    if (inner == behind && space[d] == reader_space[kept]) return {7u & ~(1u << d), d, kept};
  return {};
}

/// How an epilogue over `space` reads what a map reads over its own space.
View over_result(const View& view, const MapProgram& reader, const Shape& space,
                 const Reduced& reduced) {
  View out;
  out.value = view.value;
  out.offset = view.offset;
  if (!is_vector(view, reader.space, reduced.from))
    contiguous_strides(space, out.stride);
  else if (reduced.from >= 0)
    out.stride[reduced.channels] = view.stride[reduced.from];
  return out;
}

/// Makes a map a part of the product's epilogue.
void add_reader(Region& product, const MapProgram& reader, const Reduced& reduced) {
  const Shape space = space_of_epilogue(product);
  const std::vector<int> place = add_to_epilogue(
      product, reader, [&](const View& view) { return over_result(view, reader, space, reduced); });
  std::vector<MapReduce>& reduces = product.map.reduces;
  for (const MapReduce& reduce : reader.reduces)
    reduces.push_back(
        {place[at(reduce.source)], reduce.op, reduced.axes, reduce.value, reduce.deviations});
  for (const MapStore& store : reader.stores) {
    const MapInstr& row = reader.instrs[at(store.source)];
    reduces.push_back({place[at(row.args[0])], row.op, reduced.axes, store.view.value});
  }
}

class Reducer {
 public:
  explicit Reducer(Merger& merger) : m_(merger), times_(merger.times) {}

  void run() {
    for (int s = 0; s < m_.size(); ++s) consider(s);
    Lists groups;
    for (const auto& [product, readers] : taken_by_) {
      groups.push_back(readers);
      groups.back().insert(groups.back().begin(), product);
    }
    if (groups.empty()) return;
    m_.replace(groups, [this](const std::vector<int>& members) {
      return std::move(m_.program.steps[at(members[0])]);
    });
  }

 private:
  Region& region(int step) { return m_.region(step); }

  void consider(int s) {
    Region& reader = region(s);
    if (reader.kind != RegionKind::Map) return;
    const std::optional<int> kept = kept_axis(reader.map);
    if (!kept || !only_reduces(reader.map, *kept)) return;
    for (const int product : m_.before[at(s)]) {
      if (region(product).kind != RegionKind::Contraction || !reads_of(product, reader)) continue;
      Region with = region(product);
      const Reduced reduced = reduced_of(with, reader.map.space, *kept);
      const std::string why = refusal(s, product, reduced, with);
      if (why.empty()) return attach(s, product, std::move(with));
      note(reader, cat("no epilogue of ", region(product).title, ": ", why));
    }
  }

  bool reads_of(int product, const Region& reader) {
    return std::any_of(reader.reads.begin(), reader.reads.end(),
                       [&](ValueId id) { return is_written(region(product), id); });
  }

  bool stores_short(int product, const Region& reader) {
    return std::any_of(reader.reads.begin(), reader.reads.end(), [&](ValueId id) {
      return is_written(region(product), id) && item_size(m_.values()[at(id)].dtype) == 2;
    });
  }

  /// Why the product cannot take the map; on success `with` is the new region.
  std::string refusal(int s, int product, const Reduced& reduced, Region& with) {
    const Region& reader = region(s);
    if (reduced.axes == 0) return "it does not reduce by the channels of the product";
    for (const MapInstr& instr : reader.map.instrs)
      if (instr.code == MapCode::Load && is_written(with, instr.view.value) &&
          !reads_in_order(with, reader.map, instr.view))
        return "it reads the result in another order than the product writes it";
    for (const int other : m_.before[at(s)])
      if (!times_.graph().reaches(other, product, false) &&
          (region(other).kind != RegionKind::Map || !m_.before[at(other)].empty()))
        return cat("it would have to wait for ", region(other).title);
    const DeviceTraits& traits = m_.options.traits;
    if (!traits.launches_kernels && reduced.channels >= 0 && !stores_short(product, reader))
      return "its result stays in cache in a chain";
    if (traits.overlaps_steps && reader.map.space.numel() < kManyElements &&
        times_.earliest(s) < times_.latest(s))
      return "a launch of its own beside other steps takes less time";
    const Region bare = with;
    add_reader(with, reader.map, reduced);
    if (reduced.channels >= 0 && !m_.is_run(with)) return "no engine reduces its channels";
    const Engine *now = preferred(m_.options.engines, bare, m_.values()),
                 *then = preferred(m_.options.engines, with, m_.values());
    if (now == nullptr) return "no engine runs the product";
    if (then == nullptr) {
      std::string why;
      runs(*now, with, m_.values(), &why);
      return cat("its engine ", now->name(), " ", why);
    }
    if (then == now) return "";
    const double together = then->estimate(with, m_.values()), read = m_.estimate(reader);
    double alone = now->estimate(bare, m_.values());
    // Without a model, the product alone is assumed to at least write what the map reads.
    if (alone == 0) alone = read;
    return together > alone + read
               ? cat("its engine would be ", then->name(), ", not ", now->name())
               : std::string();
  }

  void attach(int s, int product, Region with) {
    const Region& reader = region(s);
    note(with, cat("reduces its result by ", reader.title, " while writing it"));
    with.title += cat("+", reader.title);
    std::vector<ValueId> made;
    for (const ValueId id : reader.reads)
      if (is_written(with, id)) {
        made.push_back(id);
      } else {
        merge(with.reads, {id});
        m_.readers[at(id)].push_back(product);
      }
    merge(with.writes, reader.writes);
    region(product) = std::move(with);
    taken_by_[product].push_back(s);
    for (const ValueId id : made) forget_unread(product, id);
  }

  /// Removes a result that was read only by maps which are now part of the product.
  void forget_unread(int product, ValueId id) {
    if (m_.values()[at(id)].kind != Value::Kind::Arena) return;
    const std::vector<int>& taken = taken_by_[product];
    for (const int t : m_.readers[at(id)])
      if (!contains(taken, t)) return;
    Region& r = region(product);
    if (r.contraction.out == id) r.contraction.out = kNoValue;
    std::erase_if(r.map.stores, [id](const MapStore& store) { return store.view.value == id; });
    std::erase(r.writes, id);
    m_.elide(id);
  }

  Merger& m_;
  Times& times_;
  std::map<int, std::vector<int>> taken_by_;  // maps that each product took over
};

}  // namespace

void merge_reductions(Merger& merger) {
  if (!merger.options.enabled(kReductions)) return;
  Reducer(merger).run();
  reduce_columns(merger);
}

}  // namespace tenon
