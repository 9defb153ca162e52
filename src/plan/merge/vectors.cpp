// Short maps over a product's channel sums (the mean and factor of a normalisation) are recomputed
// by the map that reads their results, which then waits for the product alone. The short maps stay
// if other steps read their results later.
#include <algorithm>
#include <string>

#include "base/contains.h"
#include "base/str.h"
#include "plan/merge/merge.h"
#include "plan/program/strides.h"

namespace tenon {
namespace {

// Least size ratio between the map that recomputes and the short map.
constexpr std::int64_t kTimesLonger = 64;
constexpr std::size_t kMostInstrs = 64;  // instructions of a map, including what it recomputes
constexpr int kLongestDistance = 4;      // distance from the end of the product to the map

bool reads_one_number(const View& view, const Shape& space) {
  for (int d = 0; d < space.rank(); ++d)
    if (space[d] != 1 && view.stride[d] != 0) return false;
  return true;
}

/// Whether a map computes vectors element by element.
bool makes_vectors(const MapProgram& map) {
  if (!is_short(map) || map.space.numel() == 0) return false;
  const auto is_stored = [&](const MapStore& store) {
    return store.view.offset == 0 && is_contiguous(store.view, map.space);
  };
  return std::all_of(map.stores.begin(), map.stores.end(), is_stored) &&
         std::all_of(map.instrs.begin(), map.instrs.end(), [&](const MapInstr& instr) {
           if (instr.code == MapCode::Load)
             return is_contiguous(instr.view, map.space) || reads_one_number(instr.view, map.space);
           return instr.code == MapCode::Number || instr.code == MapCode::Compute;
         });
}

class VectorRecomputer {
 public:
  explicit VectorRecomputer(Merger& merger)
      : m_(merger), graph_(merger.times.graph()), dropped_(merger.program.steps.size(), 0) {}

  void run() {
    bool changed = false;
    for (int s = 0; s < m_.size(); ++s) changed = consider(s) || changed;
    if (!changed) return;
    for (int s = m_.size() - 1; s >= 0; --s) forget_unread(s);
    m_.replace({}, nullptr, dropped_);
  }

 private:
  /// The map with the recomputed instructions.
  struct Recomputed {
    MapProgram map;
    bool of_sums = false;  // whether it recomputes something that depends on a product's sums
  };

  Region& region(int step) { return m_.region(step); }

  bool consider(int s) {
    Region& kernel = region(s);
    if (kernel.kind != RegionKind::Map) return false;
    Recomputed recomputed;
    recomputed.map = kernel.map;
    recomputed.map.instrs.clear();
    std::vector<int> place;
    for (const MapInstr& instr : kernel.map.instrs) {
      place.push_back(add(s, instr, place, recomputed));
      if (place.back() < 0 || recomputed.map.instrs.size() > kMostInstrs) return false;
    }
    if (!recomputed.of_sums) return false;
    for (MapStore& store : recomputed.map.stores) store.source = place[at(store.source)];
    for (MapReduce& reduce : recomputed.map.reduces) reduce.source = place[at(reduce.source)];
    return attach(s, std::move(recomputed.map));
  }

  /// Adds an instruction and returns its index. A load of a vector is replaced by the instructions
  /// that compute the vector. Returns -1 if the map becomes too long.
  int add(int s, MapInstr instr, const std::vector<int>& place, Recomputed& recomputed) {
    if (recomputed.map.instrs.size() > kMostInstrs) return -1;
    if (instr.code == MapCode::Load)
      if (const int maker = maker_of(s, instr.view.value, kLongestDistance); maker >= 0) {
        recomputed.of_sums = true;
        return make(s, maker, instr, recomputed);
      }
    for (int& arg : instr.args)
      if (arg >= 0) arg = place[at(arg)];
    recomputed.map.instrs.push_back(std::move(instr));
    return static_cast<int>(recomputed.map.instrs.size()) - 1;
  }

  /// Adds the instructions that compute a vector, at the elements that the load reads; once for
  /// each row if the load is per row.
  int make(int s, int maker, const MapInstr& load, Recomputed& recomputed) {
    const View& view = load.view;
    const MapProgram& map = region(maker).map;
    std::vector<int> place;
    int made = -1;
    for (MapInstr instr : map.instrs) {
      if (instr.code == MapCode::Load) {
        View over = instr.view;
        std::copy(std::begin(view.stride), std::end(view.stride), over.stride);
        over.offset += view.offset;
        if (reads_one_number(instr.view, map.space)) {
          std::fill(std::begin(over.stride), std::end(over.stride), 0);
          over.offset = instr.view.offset;
        }
        instr.view = over;
      }
      instr.per_row = load.per_row;
      place.push_back(add(s, std::move(instr), place, recomputed));
      if (place.back() < 0) return -1;
    }
    for (const MapStore& store : map.stores)
      if (store.view.value == view.value) made = place[at(store.source)];
    return made;
  }

  /// The step that computes a vector from a product's sums and is at most `between` steps before
  /// the map; -1 if there is none.
  int maker_of(int s, ValueId id, int between) {
    if (between == 0 || m_.values()[at(id)].kind != Value::Kind::Arena ||
        m_.writers[at(id)].size() != 1)
      return -1;
    const int maker = m_.writers[at(id)][0];
    const Region& r = region(maker);
    if (r.kind != RegionKind::Map || !makes_vectors(r.map) ||
        r.map.space.numel() * kTimesLonger > region(s).map.space.numel())
      return -1;
    const bool of_sums = std::any_of(r.reads.begin(), r.reads.end(),
                                     [&](ValueId read) { return is_sum(s, read, between - 1); });
    return of_sums ? maker : -1;
  }

  bool is_sum(int s, ValueId id, int between) {
    if (m_.writers[at(id)].size() != 1) return false;
    const int writer = m_.writers[at(id)][0];
    const Region& r = region(writer);
    if (r.kind == RegionKind::Map) return maker_of(s, id, between) >= 0;
    const Times& times = m_.times;
    return r.kind == RegionKind::Contraction &&
           times.earliest(s) <= times.earliest(writer) + times.time(writer) + kLongestDistance &&
           std::any_of(r.map.reduces.begin(), r.map.reduces.end(),
                       [id](const MapReduce& reduce) { return reduce.value == id; });
  }

  bool attach(int s, MapProgram map) {
    Region with = region(s);
    with.map = std::move(map);
    with.reads.clear(), with.writes.clear();
    list_values(with, with.reads, with.writes);
    // A step that overwrites a value which the map now reads has to wait for the map.
    std::vector<int> later;
    for (const ValueId id : with.reads)
      if (!contains(region(s).reads, id) && m_.values()[at(id)].kind == Value::Kind::Variable)
        for (const int writer : m_.writers[at(id)]) {
          if (writer == s || graph_.reaches(writer, s)) return false;
          later.push_back(writer);
        }
    for (const int writer : later) {
      m_.before[at(writer)].push_back(s);
      sort_out(m_.before[at(writer)]);
      graph_.add_edge(s, writer);
    }
    wait_for(s, with);
    for (const ValueId id : with.reads) m_.readers[at(id)].push_back(s);
    note(with, "recomputes short vectors from a product's sums");
    region(s) = std::move(with);
    return true;
  }

  /// The map no longer waits for the short maps, but for the steps that these wait for.
  void wait_for(int s, const Region& with) {
    std::vector<int> waits, open = m_.before[at(s)];
    while (!open.empty()) {
      const int step = open.back();
      open.pop_back();
      if (!is_passed_over(s, step, with)) {
        waits.push_back(step);
        continue;
      }
      keep_order(s, step);
      open.insert(open.end(), m_.before[at(step)].begin(), m_.before[at(step)].end());
    }
    sort_out(waits);
    for (const int step : waits) graph_.add_edge(step, s);
    m_.before[at(s)] = std::move(waits);
  }

  /// Some steps waited for a short map only because they waited for this map. They now wait for the
  /// short map directly.
  void keep_order(int s, int maker) {
    std::vector<int> later;
    for (const ValueId id : region(maker).writes)
      later.insert(later.end(), m_.readers[at(id)].begin(), m_.readers[at(id)].end());
    for (const ValueId id : region(maker).reads)
      if (m_.values()[at(id)].kind == Value::Kind::Variable)
        later.insert(later.end(), m_.writers[at(id)].begin(), m_.writers[at(id)].end());
    for (const int t : later) {
      if (t == s || t == maker || graph_.reaches(t, maker)) continue;
      m_.before[at(t)].push_back(maker);
      sort_out(m_.before[at(t)]);
      graph_.add_edge(maker, t);
    }
  }

  bool is_passed_over(int s, int step, const Region& with) {
    const Region& r = region(step);
    const auto is_read = [&](ValueId id) { return contains(with.reads, id); };
    const auto is_recomputed = [&](ValueId id) {
      return maker_of(s, id, kLongestDistance) == step;
    };
    const auto is_written = [&](ValueId id) { return contains(with.writes, id); };
    return std::none_of(r.writes.begin(), r.writes.end(), is_read) &&
           std::any_of(r.writes.begin(), r.writes.end(), is_recomputed) &&
           std::none_of(r.reads.begin(), r.reads.end(), is_written);
  }

  /// Removes vectors that are no longer read.
  void forget_unread(int s) {
    Region& r = region(s);
    if (r.kind != RegionKind::Map || !makes_vectors(r.map)) return;
    const auto is_unread = [&](const MapStore& store) {
      const ValueId id = store.view.value;
      if (m_.values()[at(id)].kind != Value::Kind::Arena) return false;
      return std::none_of(m_.readers[at(id)].begin(), m_.readers[at(id)].end(),
                          [&](int t) { return contains(region(t).reads, id); });
    };
    for (const MapStore& store : r.map.stores)
      if (is_unread(store)) {
        std::erase(r.writes, store.view.value);
        m_.elide(store.view.value);
      }
    std::erase_if(r.map.stores, [&](const MapStore& store) {
      return m_.values()[at(store.view.value)].kind == Value::Kind::Elided;
    });
    if (r.map.stores.empty()) drop(s);
  }

  /// Steps that waited for the removed step now wait for what it waited for.
  void drop(int s) {
    for (const int t : SmallIntVector(graph_.after(s))) {
      std::vector<int>& list = m_.before[at(t)];
      if (std::erase(list, s) == 0) continue;
      list.insert(list.end(), m_.before[at(s)].begin(), m_.before[at(s)].end());
      for (const int need : m_.before[at(s)]) graph_.add_edge(need, t);
      sort_out(list);
    }
    m_.before[at(s)].clear();
    region(s).reads.clear();
    dropped_[at(s)] = 1;
  }

  Merger& m_;
  PlanGraph& graph_;
  std::vector<char> dropped_;
};

}  // namespace

void merge_vectors(Merger& merger) {
  if (merger.options.enabled(kReductions) && merger.options.enabled(kVectors))
    VectorRecomputer(merger).run();
}

}  // namespace tenon
