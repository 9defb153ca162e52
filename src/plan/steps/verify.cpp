// The check of a program looks at regions one by one, then at who writes and reads each value, then
// at the arena: one pass over the steps keeps live values sorted by offset.
#include "plan/steps/verify.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include <tenon/error.h>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "graph/node.h"
#include "ops/table.h"
#include "plan/graph/plan_graph.h"
#include "plan/merge/bands.h"
#include "plan/program/strides.h"
#include "plan/regions/groups.h"

namespace tenon {
namespace {

/// Whether both lists hold the same values, each once.
bool same_values(std::vector<ValueId> a, std::vector<ValueId> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

class RegionCheck {
 public:
  RegionCheck(const Program& program, const Region& region) : p_(program), region_(region) {}

  void run() const {
    switch (region_.kind) {
      case RegionKind::Map:
        check_map(region_.map);
        break;
      case RegionKind::Contraction:
        check_contraction();
        break;
      case RegionKind::Opaque:
        for (std::size_t k = 0; k < region_.opaque.views.size(); ++k)
          check_view(region_.opaque.views[k], region_.opaque.shapes[k]);
        for (std::size_t k = 0; k < region_.opaque.out_views.size(); ++k)
          if (region_.opaque.outs[k] != kNoValue)
            check_view(region_.opaque.out_views[k], region_.opaque.shapes[k]);
        break;
      case RegionKind::Joined:
        return check_parts();
      case RegionKind::Chain:
        check_parts();
        return check_slices();
    }
    std::vector<ValueId> reads, writes;
    list_values(region_, reads, writes);
    check_lists(reads, writes);
  }

 private:
  // Builds the message only if the check fails.
  template <class... Words>
  void require(bool holds, const Words&... words) const {
    if (!holds) throw InternalError(cat("step ", region_.title, ": ", words...));
  }
  const Value& value(ValueId id) const {
    require(id >= 0 && id < static_cast<ValueId>(p_.values.size()), "names value ", id,
            ", which does not exist");
    return p_.values[at(id)];
  }

  void check_lists(const std::vector<ValueId>& reads, const std::vector<ValueId>& writes) const {
    require(same_values(reads, region_.reads), "lists other values than its instructions read");
    require(same_values(writes, region_.writes), "lists other values than its instructions write");
  }

  void check_parts() const {
    std::vector<ValueId> reads, writes;
    for (const Region& part : region_.parts) {
      RegionCheck(p_, part).run();
      for (ValueId id : part.reads)
        if (!contains(writes, id) && !contains(region_.local, id) && !contains(reads, id))
          reads.push_back(id);
      for (ValueId id : part.writes)
        if (!contains(region_.local, id) && !contains(writes, id)) writes.push_back(id);
    }
    check_lists(reads, writes);
  }

  /// Slices cover the axis, and maps that share a value cut it the same way. For other parts the
  /// engine decides (Engine::claims).
  void check_slices() const {
    require(region_.slice > 0 && region_.slice <= region_.samples, "takes ", region_.slice, " of ",
            region_.samples, " entries at a time");
    Capabilities map_slices;
    map_slices.no_slices = nullptr;
    std::vector<ChainAccess> met;
    for (const Region& part : region_.parts) {
      if (part.kind != RegionKind::Map) continue;
      require(part.axis >= 0 && part.axis < part.map.space.rank(), "cuts ", part.title,
              " along axis ", part.axis, ", which does not exist");
      const char* why = list_accesses(part, map_slices, p_.values, region_.samples, met);
      require(why == nullptr, "cuts ", part.title, ", which ", why == nullptr ? "" : why);
    }
    if (region_.band != 0) check_bands();
  }

  /// Bands divide the last part's rows, and the rows that a part reads from another part in a band
  /// are the rows that part computes in it.
  void check_bands() const {
    std::vector<PartRows> parts;
    for (const Region& part : region_.parts) {
      const char* why = list_rows(part, p_.values, parts.emplace_back());
      require(why == nullptr, "cuts rows of ", part.title, ", which ", why == nullptr ? "" : why);
      const bool is_last = &part == &region_.parts.back();
      for (ValueId id : part.writes)
        require(contains(region_.local, id) != is_last, "writes value ", id,
                is_last ? " and drops it" : " in rows that overlap");
    }
    const std::int64_t rows = parts.back().rows;
    require(region_.slice == 1 && region_.band > 0 && region_.band <= rows, "takes ", region_.band,
            " of ", rows, " rows at a time");
    std::vector<PartBand> bands;
    for (std::int64_t first = 0; first < rows; first += region_.band) {
      const Rows made{first, std::min(region_.band, rows - first)};
      require(list_bands(region_, parts, made, true, bands), "does not pass rows on");
      for (std::size_t k = 0; k < bands.size(); ++k) {
        const Rows &out = bands[k].made, &in = bands[k].read;
        require(out.first >= 0 && out.count > 0 && out.first + out.count <= parts[k].rows,
                "computes rows of ", region_.parts[k].title, " that do not exist");
        require(parts[k].operand == kNoValue ||
                    (in.first >= 0 && in.count > 0 && in.first + in.count <= parts[k].operand_rows),
                "has bands in which ", region_.parts[k].title, " reads nothing");
      }
    }
  }

  /// The view stays inside its value. A store of one value for each row has no last axis.
  void check_view(const View& view, const Shape& space, bool per_row = false) const {
    if (space.numel() == 0) return;
    std::int64_t low = view.offset, high = view.offset;
    for (int d = 0; d < space.rank(); ++d)
      if (!per_row || d + 1 < space.rank())
        (view.stride[d] < 0 ? low : high) += (space[d] - 1) * view.stride[d];
    const std::int64_t size = value(view.value).shape.numel();
    require(low >= 0 && high < size, "reaches elements ", low, " to ", high, " of value ",
            view.value, ", which has ", size);
  }

  void check_instrs(const MapProgram& map) const {
    for (std::size_t k = 0; k < map.instrs.size(); ++k) {
      const MapInstr& instr = map.instrs[k];
      for (int arg : instr.args)
        require(arg < static_cast<int>(k), "has an instruction before its argument");
      const auto is_of_row = [&](int arg) {
        return arg < 0 || map.instrs[at(arg)].per_row ||
               map.instrs[at(arg)].code == MapCode::Number;
      };
      require(instr.code != MapCode::Compute || !instr.per_row ||
                  std::all_of(std::begin(instr.args), std::end(instr.args), is_of_row),
              "computes a per-row value from per-element values");
      if (instr.code != MapCode::Load) continue;
      require(instr.dtype == value(instr.view.value).dtype, "loads value ", instr.view.value,
              " in another dtype");
      check_view(instr.view, map.space);
    }
  }

  void check_map(const MapProgram& map) const {
    check_instrs(map);
    const auto source = [&](int k) -> const MapInstr& {
      require(k >= 0 && k < static_cast<int>(map.instrs.size()),
              "stores an instruction that does not exist");
      return map.instrs[at(k)];
    };
    for (const MapStore& store : map.stores) {
      const MapInstr& made = source(store.source);
      require(value(store.view.value).bytes == 0 || made.dtype == value(store.view.value).dtype,
              "stores value ", store.view.value, " in another dtype");
      check_view(store.view, map.space, made.per_row);
    }
    for (const MapReduce& reduce : map.reduces) {
      source(reduce.source);
      std::int64_t left = 1;
      for (int d = 0; d < map.space.rank(); ++d)
        if ((reduce.axes >> d & 1u) == 0) left *= map.space[d];
      if (reduce.within >= 0) source(reduce.within);
      if (reduce.rows > 0 && reduce.within < 0) {
        const std::int64_t rows = map.space[0] * map.space[1];
        require(
            region_.kind == RegionKind::Contraction && reduce.axes == 3 && rows % reduce.rows == 0,
            "reduces groups of rows, but is not a product");
        left *= rows / reduce.rows;
      }
      require(value(reduce.value).shape.numel() == left, "reduces to ", left,
              " elements, not to those of value ", reduce.value);
    }
  }

  void check_contraction() const {
    const Contraction& c = region_.contraction;
    check_operand(c.a, c.a_shape, region_.prologue_a);
    check_operand(c.b, c.b_shape, region_.prologue_b);
    require(c.out == kNoValue || value(c.out).shape.numel() == c.out_shape.numel(),
            "writes a result of another size");
    require(c.out != kNoValue || !region_.writes.empty(), "writes no result");
    require(c.has_epilogue != region_.map.instrs.empty(), "has an incomplete epilogue");
    if (!c.has_epilogue) return;
    require(region_.map.space == epilogue_space(c.op, c.out_shape, c.channels_last),
            "has an epilogue over another space");
    check_map(region_.map);
  }

  void check_operand(const View& view, const Shape& shape, const MapProgram& prologue) const {
    check_view(view, shape);
    if (prologue.instrs.empty()) return;
    require(prologue.space == shape, "has a prologue over another space than its operand");
    require(prologue.stores.empty() && prologue.reduces.empty() && !prologue.has_rows,
            "has a prologue that does more than compute elements");
    check_instrs(prologue);
    const auto starts = [](const MapInstr& i) { return i.code == MapCode::Accumulator; };
    require(std::count_if(prologue.instrs.begin(), prologue.instrs.end(), starts) == 1,
            "has a prologue that does not start from its operand");
  }

  const Program& p_;
  const Region& region_;
};

bool loads(const MapProgram& map, ValueId id) {
  return std::any_of(map.instrs.begin(), map.instrs.end(),
                     [id](const MapInstr& instr) { return instr.view.value == id; });
}

/// Whether a region reads a value only at the elements that it writes, so that it may overwrite the
/// value element by element: all loads of an element come before its store.
bool overwrites_what_it_reads(const Region& region, ValueId id) {
  if (region.kind == RegionKind::Opaque) return updates_rows(region.opaque, id);
  if (region.kind != RegionKind::Map && region.kind != RegionKind::Contraction) return false;
  const Contraction& c = region.contraction;
  if (c.a.value == id || c.b.value == id || c.out == id || loads(region.prologue_a, id) ||
      loads(region.prologue_b, id))
    return false;
  const MapProgram& map = region.map;
  for (const MapStore& store : map.stores) {
    if (store.view.value != id) continue;
    View written = store.view;
    if (map.instrs[at(store.source)].per_row) written.stride[map.space.rank() - 1] = 0;
    for (const MapInstr& instr : map.instrs)
      if (instr.view.value == id &&
          (instr.code != MapCode::Load || !same_elements(instr.view, written, map.space)))
        return false;
  }
  return std::none_of(map.reduces.begin(), map.reduces.end(),
                      [id](const MapReduce& reduce) { return reduce.value == id; });
}

/// Finds the parts of a step that read or write a value without searching all parts: updates join
/// hundreds of parts, each of which overwrites what it reads.
class PartsOf {
 public:
  PartsOf() = default;
  PartsOf(const Region& step, std::vector<ValueId> Region::*accesses) {
    for (const Region& part : step.parts)
      for (ValueId id : part.*accesses) found_.emplace_back(id, &part);
    std::sort(found_.begin(), found_.end());
  }
  std::span<const std::pair<ValueId, const Region*>> of(ValueId id) const {
    const auto begin = std::lower_bound(found_.begin(), found_.end(), id,
                                        [](const auto& one, ValueId of) { return one.first < of; });
    return {begin,
            std::find_if(begin, found_.end(), [id](const auto& one) { return one.first != id; })};
  }

 private:
  std::vector<std::pair<ValueId, const Region*>> found_;
};

/// Whether a step may overwrite a value that it reads. Among concurrent parts, only the part that
/// writes the value may read it. Parts of different phases are ordered by the engine.
bool may_overwrite(const PartsOf& writers, const PartsOf& readers, ValueId id) {
  for (const auto& [written, writer] : writers.of(id))
    for (const auto& [read, part] : readers.of(id))
      if (part == writer ? !overwrites_what_it_reads(*part, id) : part->phase == writer->phase)
        return false;
  return true;
}

bool is_given(const Value& v) {
  return v.kind == Value::Kind::Leaf || v.kind == Value::Kind::Variable;
}

/// Checks who writes and reads each value, step by step.
class Flow {
 public:
  explicit Flow(const Program& program)
      : p_(program),
        written_(program.values.size(), 0),
        readers_(program.values.size()),
        waits_of_(program.steps.size(), -1) {}

  void run() {
    for (std::size_t v = 0; v < p_.values.size(); ++v) written_[v] = is_given(p_.values[v]) ? 1 : 0;
    for (const Step& step : p_.steps) follow(step.region), ++step_;
    for (const OutputSlot& out : p_.outputs) {
      if (written_[at(out.value)] == 0)
        throw InternalError(cat("output value ", out.value, " is never written"));
      mark_read(out.value);
    }
    for (std::size_t v = 0; v < p_.values.size(); ++v) {
      const bool has_memory = p_.values[v].kind != Value::Kind::Elided;
      const bool is_read = !readers_[v].empty();
      if (has_memory && !is_read)
        throw InternalError(cat("value ", v, " is read by no step: a reader was lost"));
      if (!has_memory && (is_read || written_[v] != 0))
        throw InternalError(cat("value ", v, " has no memory, but is read or written"));
    }
  }

 private:
  void follow(const Region& region) {
    for (ValueId id : region.reads) {
      if (written_[at(id)] == 0)
        throw InternalError(
            cat("step ", region.title, " reads value ", id, " before it is written"));
      mark_read(id);
    }
    for (ValueId id : region.writes) {
      if (!readers_[at(id)].empty() && readers_[at(id)].back() == step_)
        check_overwriting(region, id);
      else if (written_[at(id)] != 0 && !is_given(p_.values[at(id)]))
        throw InternalError(cat("step ", region.title, " writes value ", id, " a second time"));
      written_[at(id)] = 1;
    }
    // Values that one phase of a launch leaves for a later phase.
    if (region.kind == RegionKind::Joined)
      for (const Region& part : region.parts)
        for (ValueId id : part.reads) mark_read(id);
  }

  /// A step that overwrites what it reads: a variable's new value, or a map's result in the memory
  /// of a value that others have read by then (plan/merge/overwrites.cpp). The step must wait for
  /// those readers.
  void check_overwriting(const Region& region, ValueId id) {
    const bool in_parts = region.kind == RegionKind::Joined || region.kind == RegionKind::Chain;
    look_at(region);
    if (in_parts ? !may_overwrite(part_writes_, part_reads_, id)
                 : !overwrites_what_it_reads(region, id))
      throw InternalError(cat("step ", region.title, " writes value ", id,
                              " where it still reads other elements of it"));
    if (is_given(p_.values[at(id)])) return;
    for (int reader : readers_[at(id)])
      if (reader != step_ && waits_of_[at(p_.order[at(reader)])] != step_)
        throw InternalError(cat("step ", region.title, " writes over value ", id, ", which step ",
                                p_.steps[at(reader)].region.title, " reads"));
  }

  /// Collected once for all values that a step overwrites.
  void look_at(const Region& region) {
    if (std::exchange(looked_at_, step_) == step_) return;
    part_reads_ = PartsOf(region, &Region::reads);
    part_writes_ = PartsOf(region, &Region::writes);
    for (int earlier : p_.before[at(p_.order[at(step_)])]) waits_of_[at(earlier)] = step_;
  }

  void mark_read(ValueId id) {
    std::vector<int>& readers = readers_[at(id)];
    if (readers.empty() || readers.back() != step_) readers.push_back(step_);
  }

  const Program& p_;
  int step_ = 0;
  std::vector<char> written_;
  Lists readers_;       // steps that read each value
  int looked_at_ = -1;  // the step that the following members describe
  PartsOf part_reads_, part_writes_;
  std::vector<int> waits_of_;  // by step in planning order: the last step that waits for it
};

/// An arena value or workspace, for messages.
struct Place {
  std::int64_t offset = 0, bytes = 0;
  int first = 0, last = 0;
  std::string name;
};

std::vector<Place> places_of(const Program& program) {
  std::vector<Place> places;
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const Value& value = program.values[v];
    if (value.kind == Value::Kind::Arena && value.bytes > 0)
      places.push_back(
          {value.offset, value.bytes, value.first_step, value.last_step, cat("value ", v)});
  }
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    const auto bytes =
        step.kernel == nullptr ? 0 : static_cast<std::int64_t>(step.kernel->workspace_bytes);
    const int number = static_cast<int>(s);
    if (bytes > 0)
      places.push_back(
          {step.workspace_offset, bytes, number, number, cat("the workspace of step ", s)});
  }
  return places;
}

/// Walks over the steps with the live values sorted by offset: neighbours must not overlap.
void check_arena(const Program& program) {
  const std::vector<Place> places = places_of(program);
  std::vector<std::vector<const Place*>> begin(program.steps.size()), end(program.steps.size());
  for (const Place& place : places) {
    begin[at(place.first)].push_back(&place);
    end[at(place.last)].push_back(&place);
  }
  std::map<std::int64_t, const Place*> live;
  const auto meet = [](const Place& a, const Place& b) {
    if (a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
      throw InternalError(cat(a.name, " and ", b.name, " overlap in the arena while both live"));
  };
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    for (const Place* own : begin[s]) {
      const auto [place, fresh] = live.emplace(own->offset, own);
      if (!fresh) meet(*place->second, *own);
      if (place != live.begin()) meet(*std::prev(place)->second, *own);
      if (std::next(place) != live.end()) meet(*std::next(place)->second, *own);
    }
    for (const Place* own : end[s]) live.erase(own->offset);
  }
}

void check_step(const Program& program, const Step& step) {
  RegionCheck(program, step.region).run();
  std::string why;
  if (step.region.kind == RegionKind::Chain && step.engine != nullptr &&
      !step.engine->claims(step.region, program.values, &why))
    throw InternalError(cat("step ", step.region.title, ": its engine does not run it: ", why));
}

void check_steps(const Program& program) {
  constexpr std::int64_t kAtOnce = 64;
  const std::int64_t steps = std::ssize(program.steps);
  parallel_for(divide_up(steps, kAtOnce), [&](std::int64_t k, int) {
    const std::int64_t end = std::min((k + 1) * kAtOnce, steps);
    for (std::int64_t s = k * kAtOnce; s < end; ++s) check_step(program, program.steps[at(s)]);
  });
}

/// Who reads and writes each value, whatever the order of the steps.
void check_accesses(const Program& program) {
  std::vector<char> read(program.values.size(), 0), written(program.values.size(), 0);
  for (const Step& step : program.steps) {
    for (ValueId id : step.region.reads) read[at(id)] = 1;
    for (ValueId id : step.region.writes) written[at(id)] = 1;
    for (const Region& part : step.region.parts)
      if (step.region.kind == RegionKind::Joined)
        for (ValueId id : part.reads) read[at(id)] = 1;
  }
  for (const OutputSlot& out : program.outputs) read[at(out.value)] = 1;
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const Value& value = program.values[v];
    const bool has_memory = value.kind != Value::Kind::Elided;
    if (has_memory && read[v] == 0)
      throw InternalError(cat("value ", v, " is read by no step: a reader was lost"));
    if (has_memory && written[v] == 0 && !is_given(value))
      throw InternalError(cat("value ", v, " is read and never written"));
    if (!has_memory && (read[v] != 0 || written[v] != 0))
      throw InternalError(cat("value ", v, " has no memory, but is read or written"));
  }
}

/// "the pass share", "the passes drop_noops, merge_views".
std::string names_of(PassSet passes) {
  std::string names;
  int count = 0;
  for (int k = 0; k < int{kPassCount}; ++k)
    if (passes.contains(static_cast<PassId>(k)))
      names += cat(count++ == 0 ? "" : ", ", pass_info(k).name);
  return cat(count == 1 ? "the pass " : "the passes ", names);
}

template <class F>
void blame(PassSet passes, F&& check) {
  try {
    check();
  } catch (const InternalError& error) {
    throw InternalError(cat("after ", names_of(passes), ": ", error.what()));
  }
}

}  // namespace

Roots verify_graph(Roots roots, const PlanOptions&) {
  for (Node* node : roots.order().nodes) {
    if (node->realised()) continue;
    const OpInfo& info = op_info(node->op);
    if (info.arity >= 0 && int{info.arity} != int{node->input_count})
      throw InternalError(
          cat(info.name, " has ", int{node->input_count}, " inputs, its row says ", info.arity));
    const Inferred inferred = info.infer(*node);
    if (inferred.dtype != node->dtype || inferred.shape != node->shape)
      throw InternalError(cat(info.name, " (", label_text(node->label), ") is ", node->dtype,
                              node->shape, " but its row infers ", inferred.dtype, inferred.shape));
  }
  return roots;
}

void verify_after(PassSet passes, const Roots& given, const Roots& made,
                  const PlanOptions& options) {
  blame(passes, [&] {
    if (given.size() != made.size())
      throw InternalError(
          cat(given.size(), " tensors were requested, and there are ", made.size()));
    for (auto before = given.begin(), now = made.begin(); before != given.end(); ++before, ++now)
      if (before->dtype() != now->dtype() || before->shape() != now->shape())
        throw InternalError(cat("a requested tensor was ", before->dtype(), before->shape(),
                                " and is ", now->dtype(), now->shape()));
    verify_graph(made, options);
  });
}

void verify_after(PassId pass, const Program& program) {
  blame({pass}, [&] {
    check_steps(program);
    check_accesses(program);
  });
}

void verify_program(const Program& program) {
  check_steps(program);
  Flow(program).run();
  check_arena(program);
}

}  // namespace tenon
