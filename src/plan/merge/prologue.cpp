// Prologues: if only contractions read an element-wise region's result, as operands, each
// contraction computes it while loading the operand. The result is then never in memory.
//
// Engines say whether they support this (Capabilities) and what it costs (Engine::estimate). A
// contraction never changes to a slower engine for a prologue.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/contains.h"
#include "base/str.h"
#include "plan/merge/merge.h"
#include "plan/program/region_key.h"
#include "plan/program/strides.h"
#include "plan/program/tune.h"

namespace tenon {
namespace {

/// Expresses the coordinates of a map's space as sums over an operand's axes. The operand reads
/// elements of the map's result, a contiguous value of that space.
class Coordinates {
 public:
  /// Returns false if the operand's view of the space's axes cannot be expressed by strides.
  bool find(const Shape& space, const View& operand, const Shape& shape) {
    rank_ = space.rank();
    std::int64_t step[kMaxRank], last[kMaxRank] = {};
    contiguous_strides(space, step);
    if (!take_apart(operand.offset, step, first_)) return false;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] == 1) continue;
      if (!take_apart(operand.stride[d], step, each_[d])) return false;
      for (int j = 0; j < rank_; ++j) last[j] += (shape[d] - 1) * each_[d][j];
    }
    for (int j = 0; j < rank_; ++j)
      if (first_[j] + last[j] >= space[j]) return false;
    return true;
  }

  /// A view over the map's space as a view over the operand's axes.
  View over_operand(const View& view, int operand_rank) const {
    View out;
    out.value = view.value;
    out.offset = view.offset;
    for (int j = 0; j < rank_; ++j) out.offset += first_[j] * view.stride[j];
    for (int d = 0; d < operand_rank; ++d)
      for (int j = 0; j < rank_; ++j) out.stride[d] += each_[d][j] * view.stride[j];
    return out;
  }

 private:
  // Splits a distance in memory into steps along the axes.
  bool take_apart(std::int64_t distance, const std::int64_t* step, std::int64_t* out) const {
    if (distance < 0) return false;
    for (int j = 0; j < rank_; ++j) {
      out[j] = distance / step[j];
      distance -= out[j] * step[j];
    }
    return distance == 0;
  }

  int rank_ = 0;
  std::int64_t first_[kMaxRank] = {}, each_[kMaxRank][kMaxRank] = {};
};

/// Appends `later`, an operand's prologue, to `first`, which computes the elements that `later`
/// starts from.
void append(MapProgram& first, const MapProgram& later) {
  std::vector<int> place(later.instrs.size(), static_cast<int>(first.instrs.size()) - 1);
  for (std::size_t k = 0; k < later.instrs.size(); ++k) {
    MapInstr instr = later.instrs[k];
    // replaced by the last instruction of `first`
    if (instr.code == MapCode::Accumulator) continue;
    for (int& arg : instr.args)
      if (arg >= 0) arg = place[at(arg)];
    place[k] = static_cast<int>(first.instrs.size());
    first.instrs.push_back(instr);
  }
}

/// Puts a region's map in front of an operand and of the prologue that the operand may already
/// have. Sets the value that the operand starts from. Returns null, or why this is not possible.
const char* compose(const MapProgram& map, const Shape& shape, std::span<const Value> values,
                    View& operand, MapProgram& prologue) {
  Coordinates coordinates;
  if (map.space.numel() == 0 || !coordinates.find(map.space, operand, shape))
    return "is read in an order that strides cannot express";
  MapProgram made;
  made.space = shape;
  made.instrs.assign(map.instrs.begin(), map.instrs.begin() + map.stores[0].source + 1);
  MapInstr* main = nullptr;  // the load of the largest value, done by the operand's own loader
  for (MapInstr& instr : made.instrs) {
    if (instr.code == MapCode::Affine) return "depends on coordinates";
    if (instr.code == MapCode::Random) {
      const ValueId state = instr.view.value;
      instr.view = operand;
      instr.view.value = state;
    }
    if (instr.code != MapCode::Load) continue;
    instr.view = coordinates.over_operand(instr.view, shape.rank());
    const auto size = [&](const MapInstr& i) { return values[at(i.view.value)].shape.numel(); };
    if (main == nullptr || size(instr) > size(*main)) main = &instr;
  }
  if (main == nullptr) return "loads nothing";
  operand = main->view;
  main->code = MapCode::Accumulator;
  main->view = View();
  append(made, prologue);
  prologue = std::move(made);
  return nullptr;
}

bool reads(const MapProgram& map, ValueId id) {
  return std::any_of(map.instrs.begin(), map.instrs.end(),
                     [id](const MapInstr& instr) { return instr.view.value == id; });
}

std::string tenths_text(double us) {
  const std::int64_t tenths = std::llround(us * 10);
  return cat(tenths / 10, ".", tenths % 10);
}

class Attacher {
 public:
  explicit Attacher(Merger& merger)
      : m_(merger), graph_(merger.times.graph()), dropped_(merger.program.steps.size(), 0) {}

  void run() {
    for (int s = 0; s < m_.size(); ++s) consider(s);
    if (contains(dropped_, 1)) m_.replace({}, nullptr, dropped_);
  }

 private:
  struct Change {
    int step;
    Region region;  // with the prologue
  };

  // What is known about a region before its kernel is prepared.
  struct Outlook {
    TuneAdvice advice;               // about a contraction
    const Engine* engine = nullptr;  // the engine that will run it
    double us = 0;                   // the engine's estimate
  };
  // For a product without and with the prologue.
  struct Outlooks {
    const Outlook *bare = nullptr, *with = nullptr;
  };

  Region& region(int step) { return m_.region(step); }
  const Region& region(int step) const { return m_.region(step); }

  void consider(int s) {
    Region& producer = region(s);
    if (producer.kind != RegionKind::Map) return;
    if (producer.map.has_rows || !producer.map.reduces.empty() || producer.map.stores.size() != 1) {
      if (makes_operand(producer))
        note(producer, "no prologue: it does more than compute one operand");
      return;
    }
    const ValueId made = producer.map.stores[0].view.value;
    std::vector<Change> changes;
    SmallIntVector& readers = m_.readers[at(made)];
    const auto is_gone = [&](int t) { return dropped_[at(t)] != 0 || t == s; };
    readers.erase(std::remove_if(readers.begin(), readers.end(), is_gone), readers.end());
    sort_out(readers);
    if (std::none_of(readers.begin(), readers.end(),
                     [&](int t) { return is_operand(region(t), made); }))
      return;
    changes.reserve(readers.size());
    for (int t : readers) changes.push_back({t, region(t)});
    std::string why = refusal(s, made, changes);
    double saved = 0;
    if (why.empty()) why = loss(producer, changes, saved);
    if (!why.empty()) return note(producer, cat("no prologue: it ", why));
    attach(s, made, changes, saved);
  }

  bool makes_operand(const Region& producer) {
    for (ValueId id : producer.writes)
      for (int t : m_.readers[at(id)])
        if (is_operand(region(t), id)) return true;
    return false;
  }
  static bool is_operand(const Region& r, ValueId id) {
    return r.kind == RegionKind::Contraction &&
           (r.contraction.a.value == id || r.contraction.b.value == id);
  }

  // Why the producer cannot become a prologue of all readers; on success fills the readers' new
  // regions.
  std::string refusal(int s, ValueId made, std::vector<Change>& changes) {
    const MapProgram& map = region(s).map;
    if (m_.values()[at(made)].kind != Value::Kind::Arena) return "is a requested result";
    if (!is_contiguous(map.stores[0].view, map.space)) return "writes in another order";
    const auto computes = [](const MapInstr& i) { return i.code == MapCode::Compute; };
    if (std::none_of(map.instrs.begin(), map.instrs.end(), computes)) return "only copies";
    if (rounds_only(map)) return "rounds for products that read each element often";
    for (Change& change : changes) {
      Region& r = change.region;
      if (!is_operand(r, made) || reads(r.map, made) || reads(r.prologue_a, made) ||
          reads(r.prologue_b, made))
        return cat("is read by ", r.title, " too, not as an operand");
      for (ValueId id : region(s).reads)
        if (contains(r.writes, id)) return cat("reads what ", r.title, " overwrites");
      const char* why = nullptr;
      if (r.contraction.a.value == made)
        why = compose(map, r.contraction.a_shape, m_.values(), r.contraction.a, r.prologue_a);
      if (why == nullptr && r.contraction.b.value == made)
        why = compose(map, r.contraction.b_shape, m_.values(), r.contraction.b, r.prologue_b);
      if (why != nullptr) return why;
      list_values(r, r.reads, r.writes);
      r.title = cat(region(s).title, " into ", r.title);
    }
    return makes_circle(s, changes) ? "would make steps depend on each other in a cycle" : "";
  }

  // Whether the map only rounds. Autocast inserts such maps in front of large products on purpose.
  static bool rounds_only(const MapProgram& map) {
    int computes = 0;
    for (const MapInstr& instr : map.instrs) {
      if (instr.code != MapCode::Compute) continue;
      ++computes;
      if (instr.op != Op::Cast || (instr.dtype != DType::BFloat16 && instr.dtype != DType::Float16))
        return false;
    }
    return computes == 1;
  }

  // Steps that wait for the producer will wait for its readers instead, so none of the readers may
  // wait for such a step.
  bool makes_circle(int s, const std::vector<Change>& changes) {
    const SmallIntVector after = graph_.after(s);
    for (int t : after) {
      const auto is_t = [t](const Change& c) { return c.step == t; };
      if (dropped_[at(t)] != 0 || std::any_of(changes.begin(), changes.end(), is_t)) continue;
      for (const Change& change : changes)
        if (graph_.reaches(t, change.step)) return true;
    }
    return false;
  }

  // Why the prologue does not pay; `saved`: the microseconds that the engines expect to save.
  std::string loss(const Region& producer, const std::vector<Change>& changes, double& saved) {
    std::vector<Outlooks> outlooks;
    outlooks.reserve(changes.size());
    for (const Change& change : changes)
      outlooks.push_back({&outlook(region(change.step)), &outlook(change.region)});
    double apart = outlook(producer).us, together = 0;
    const bool settled = was_together(outlooks);
    for (std::size_t k = 0; k < changes.size(); ++k) {
      const Region &bare = region(changes[k].step), &with = changes[k].region;
      const Outlook &now = *outlooks[k].bare, &then = *outlooks[k].with;
      // The present engine may have been chosen for a larger batch and may not support the
      // prologue.
      if (settled) {
        if (then.engine == nullptr) return cat("no engine runs ", with.title);
        continue;
      }
      if (now.advice.repeats)
        return cat("was not merged into ", bare.title, " earlier in this run");
      const Engine* engine = now.engine;
      std::string why;
      if (engine == nullptr) return cat("no engine runs ", bare.title);
      if (!runs(*engine, with, m_.values(), &why))
        return cat("is not merged into ", bare.title, ", whose engine ", engine->name(), " ", why);
      if (then.engine != engine) return cat(bare.title, " would change its engine");
      if (is_measured(now) && !is_measured(then))
        return cat("is not merged into ", bare.title,
                   ", which was measured without this prologue only");
      apart += now.us;
      together += then.us;
    }
    if (settled) return "";
    saved = apart - together;
    if (together < apart || (apart == 0 && together == 0)) return "";
    return cat("costs more than it saves in ", changes[0].region.title, ": ", tenths_text(together),
               " against ", tenths_text(apart), " us");
  }

  // Whether an earlier plan of the same run used the prologue. Another program of the run may
  // contain the same product at another size without it, for example an evaluation of data that is
  // not on the GPU. Therefore a decision for exactly these sizes takes precedence.
  static bool was_together(const std::vector<Outlooks>& outlooks) {
    bool together = false, exactly_apart = false;
    for (const auto& [bare, with] : outlooks) {
      if (with->advice.exact) return true;
      together = together || with->advice.repeats;
      exactly_apart = exactly_apart || bare->advice.exact;
    }
    return together && !exactly_apart;
  }

  // Cached: deep networks ask about hundreds of equal regions.
  const Outlook& outlook(const Region& r) {
    const auto [place, fresh] =
        outlooks_.try_emplace(numbering_.key(r, numbering_.named(r), m_.values()));
    if (fresh) place->second = ask(r);
    return place->second;
  }
  Outlook ask(const Region& r) const {
    Outlook out;
    if (r.kind == RegionKind::Contraction && m_.options.tuning != nullptr)
      out.advice = m_.options.tuning->known(r, m_.values(), m_.options);
    out.engine = out.advice.choice
                     ? engine_of(*out.advice.choice, m_.options.engines, r, m_.values())
                     : preferred(m_.options.engines, r, m_.values());
    if (out.engine == nullptr) return out;
    out.us = out.engine->estimate(r, m_.values());
    out.engine->announce(out.advice.choice ? out.advice.choice->configuration : std::string(), r,
                         m_.values());
    return out;
  }
  static bool is_measured(const Outlook& known) {
    return known.advice.choice && known.advice.choice->microseconds > 0;
  }

  void attach(int s, ValueId made, std::vector<Change>& changes, double saved) {
    const std::vector<int>& needs = m_.before[at(s)];
    for (Change& change : changes) {
      note(change.region,
           cat("makes ", region(s).title, " while loading",
               saved > 0 ? cat(", to save ", tenths_text(saved), " us by the model") : ""));
      region(change.step) = std::move(change.region);
      for (ValueId id : region(s).reads) m_.readers[at(id)].push_back(change.step);
      std::vector<int>& list = m_.before[at(change.step)];
      std::erase(list, s);
      list.insert(list.end(), needs.begin(), needs.end());
      sort_out(list);
      for (int need : needs) graph_.add_edge(need, change.step);
    }
    const SmallIntVector after = graph_.after(s);
    for (int t : after) {
      std::vector<int>& list = m_.before[at(t)];
      if (std::erase(list, s) == 0) continue;  // not a reader of the value
      for (const Change& change : changes) {
        list.push_back(change.step);
        graph_.add_edge(change.step, t);
      }
      sort_out(list);
    }
    m_.before[at(s)].clear();
    dropped_[at(s)] = 1;
    m_.elide(made);
  }

  Merger& m_;
  PlanGraph& graph_;
  std::vector<char> dropped_;  // steps that became prologues
  RegionNumbering numbering_;
  std::unordered_map<RegionKey, Outlook, RegionKeyHash> outlooks_;
};

}  // namespace

void merge_prologues(Merger& merger) {
  if (merger.options.enabled(kPrologue)) Attacher(merger).run();
}

}  // namespace tenon
