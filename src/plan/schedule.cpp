// Engines, order and memory of a program.
#include "plan/schedule.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "plan/calls.h"
#include "plan/tune.h"

namespace tenon {
namespace {

constexpr std::int64_t kAlign = 64;
constexpr std::int64_t kApart = std::int64_t{64} << 20;
std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

void find_lifetimes(Program& p) {
  for (Value& v : p.values) v.first_step = v.last_step = -1;
  for (int s = 0; s < static_cast<int>(p.steps.size()); ++s) {
    const Region& r = p.steps[static_cast<std::size_t>(s)].region;
    for (ValueId id : r.writes) {
      Value& v = p.values[static_cast<std::size_t>(id)];
      if (v.first_step < 0) v.first_step = s;
      v.last_step = std::max(v.last_step, s);
    }
    for (ValueId id : r.reads)
      p.values[static_cast<std::size_t>(id)].last_step =
          std::max(p.values[static_cast<std::size_t>(id)].last_step, s);
  }
}

// The largest values are placed pair by pair, each beside all that live at the same time; there is
// a limit, so that a plan of any size takes a time in proportion.
constexpr std::size_t kMostPairs = 4096;

/// Places of values in order of their offsets, with the steps during which they are taken.
class Places {
 public:
  /// The lowest offset where nothing lives that lives with the value; it is taken then.
  std::int64_t take_lowest(const Value& value) {
    const std::int64_t bytes = aligned(value.bytes);
    std::int64_t offset = 0;
    for (const Place& p : taken_) {
      if (p.first > value.last_step || p.last < value.first_step) continue;
      if (offset + bytes <= p.begin) break;
      offset = std::max(offset, p.end);
    }
    const Place own{offset, offset + bytes, value.first_step, value.last_step};
    taken_.insert(std::upper_bound(taken_.begin(), taken_.end(), own), own);
    return offset;
  }

 private:
  struct Place {
    std::int64_t begin, end;
    int first, last;
    bool operator<(const Place& o) const {
      return begin != o.begin ? begin < o.begin : end < o.end;
    }
  };
  std::vector<Place> taken_;
};

/// Free room between the places of values that live now: each takes the smallest that holds it.
class FreeRoom {
 public:
  std::int64_t take(std::int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      const std::int64_t offset = end_;
      end_ += bytes;
      return offset;
    }
    const auto [size, offset] = *fit;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }
  void give_back(std::int64_t offset, std::int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
      const auto [before, size] = *std::prev(next);
      remove(before, size);
      offset = before;
      bytes += size;
    }
    add(offset, bytes);
  }
  std::int64_t end() const { return end_; }

 private:
  void add(std::int64_t offset, std::int64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(std::int64_t offset, std::int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }
  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::int64_t end_ = 0;
};

/// Places values from `base` on, step by step; where they end.
std::int64_t place_by_time(std::span<Value* const> values, std::size_t steps, std::int64_t base) {
  std::vector<std::vector<Value*>> begin(steps), end(steps);
  for (Value* v : values) {
    begin[at(v->first_step)].push_back(v);
    end[at(v->last_step)].push_back(v);
  }
  FreeRoom room;
  for (std::size_t s = 0; s < steps; ++s) {
    for (Value* v : begin[s])
      if (v->bytes > 0) v->offset = base + room.take(aligned(v->bytes));
    for (Value* v : end[s])
      if (v->bytes > 0) room.give_back(v->offset - base, aligned(v->bytes));
  }
  return base + room.end();
}

/// Places values, which stand by descending size; where they end.
std::int64_t place_together(std::span<Value* const> values, std::size_t steps) {
  Places places;
  std::int64_t top = 0;
  const std::size_t pairs = std::min(values.size(), kMostPairs);
  for (Value* v : values.first(pairs)) {
    v->offset = places.take_lowest(*v);
    top = std::max(top, v->offset + aligned(v->bytes));
  }
  if (pairs == values.size()) return top;
  top = place_by_time(values.subspan(pairs), steps, top);
  // Many of much the same size lie closest as they come.
  std::vector<std::int64_t> offsets;
  for (const Value* v : values) offsets.push_back(v->offset);
  const std::int64_t as_they_come = place_by_time(values, steps, 0);
  if (as_they_come <= top) return as_they_come;
  for (std::size_t k = 0; k < values.size(); ++k) values[k]->offset = offsets[k];
  return top;
}

// Bytes of the arena when nothing shares a place.
std::int64_t bytes_apart(const Program& p) {
  std::int64_t bytes = 0;
  for (const Value& v : p.values)
    if (v.kind == Value::Kind::Arena) bytes += aligned(v.bytes);
  for (const Step& s : p.steps)
    if (s.kernel != nullptr) bytes += aligned(static_cast<std::int64_t>(s.kernel->workspace_bytes));
  return bytes;
}

// Where steps that do not depend on each other run side by side, sharing memory would make
// them wait. Small arenas and workspaces therefore share none.
bool shares_no_memory(const Program& p) {
  return p.traits.overlaps_steps && bytes_apart(p) <= kApart;
}

// Of each step, with what waits for it: contractions count for several launches.
std::vector<int> longest_paths(const Program& p, const std::vector<std::vector<int>>& after,
                               std::vector<int> waiting) {
  constexpr int kContractionTime = 4;
  std::vector<int> order, path(p.steps.size(), 0);
  for (std::size_t s = 0; s < waiting.size(); ++s)
    if (waiting[s] == 0) order.push_back(static_cast<int>(s));
  for (std::size_t k = 0; k < order.size(); ++k)
    for (int next : after[static_cast<std::size_t>(order[k])])
      if (--waiting[static_cast<std::size_t>(next)] == 0) order.push_back(next);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto s = static_cast<std::size_t>(*it);
    for (int next : after[s]) path[s] = std::max(path[s], path[static_cast<std::size_t>(next)]);
    path[s] += p.steps[s].region.kind == RegionKind::Contraction ? kContractionTime : 1;
  }
  return path;
}

void check_limit(const Program& p, std::int64_t limit) {
  if (limit <= 0 || p.peak_bytes() <= limit) return;
  throw MemoryError(cat("this would take ", size_text(p.peak_bytes()),
                        " at its peak, more than the limit of ", size_text(limit), " (largest: ",
                        largest_values(p), "): use a smaller batch or raise the limit"));
}

// False when the advice does not serve; it is then gone.
bool follow(Step& step, TuneAdvice& advice, const Program& program, const PlanOptions& options) {
  if (!advice.choice) return false;
  const TuneChoice& choice = *advice.choice;
  const Engine* engine = engine_of(choice, options.engines, step.region, program.values);
  try {
    if (engine != nullptr) {
      step.kernel =
          engine->prepare_as(choice.configuration, step.region, program.values, options.threads);
      step.engine = engine;
      step.configuration = choice.configuration;
      return true;
    }
  } catch (const NotSupported& e) {  // a table of another version of this library
    step.passed_over = cat(engine->name(), ": ", e.what());
  }
  advice.choice.reset();
  return false;
}

}  // namespace

void choose_by_estimate(Step& step, std::span<const Value> values, const PlanOptions& options) {
  std::string& passed_over = step.passed_over;
  for (const Engine* engine : by_estimate(options.engines, step.region, values, &passed_over)) {
    try {
      step.kernel = engine->prepare(step.region, values, options.threads);
      step.engine = engine;
      return;
    } catch (const NotSupported& e) {  // a library that turned out to have nothing for it
      passed_over += cat(passed_over.empty() ? "" : "; ", engine->name(), ": ", e.what());
    }
  }
  throw NotSupported(cat("no engine runs ", step.region.title, " (", label_text(step.region.label),
                         "): ", step.passed_over));
}

void choose_engines(Program& program, const PlanOptions& options) {
  std::vector<TuneAdvice> advice(program.steps.size());
  if (options.tuning != nullptr) advice = options.tuning->advise(program, options);
  std::optional<SharedKernels> shared;
  if (SharedKernels::serves(program, options)) shared.emplace(program.values, options);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    Step& step = program.steps[s];
    if (shared && shared->choose(step)) continue;
    if (!follow(step, advice[s], program, options))
      choose_by_estimate(step, program.values, options);
    if (advice[s].key.empty()) continue;
    step.choice = choice_text(advice[s]);
    TuneChoice taken = advice[s].choice.value_or(TuneChoice());
    taken.engine = step.engine->name();
    taken.configuration = step.configuration;
    taken.version = step.engine->version();
    if (taken.configuration.empty() && taken.version.empty()) {
      // Its own choice, by name: an incomplete batch is to take the same.
      const std::vector<std::string> names =
          step.engine->configurations(step.region, program.values);
      if (!names.empty()) taken.configuration = names.front();
    }
    options.tuning->taken(advice[s].key, taken);
    program.taken.push_back({std::move(advice[s].key), std::move(taken)});
  }
}

namespace {

/// Of each value: how many steps are still to read it, and the sum of their numbers.
struct ReadersLeft {
  std::vector<int> count;
  std::vector<std::int64_t> sum;
};

/// By how much more memory is live behind a step than before it.
std::int64_t growth(const Program& program, int s, const ReadersLeft& left) {
  const Region& r = program.steps[at(s)].region;
  std::int64_t bytes = 0;
  for (ValueId id : r.writes)
    if (const Value& v = program.values[at(id)]; v.kind == Value::Kind::Arena) bytes += v.bytes;
  for (ValueId id : r.reads)
    if (const Value& v = program.values[at(id)];
        v.kind == Value::Kind::Arena && left.count[at(id)] == 1)
      bytes -= v.bytes;
  return bytes;
}

}  // namespace

namespace {

/// Steps that refuse an index that is outside, and that assign without a look at the data: a count
/// of steps. Where a call does the work, the former come first, or a refused call would leave its
/// count behind. Only those that need no product are waited for: memory is as it was.
class Checks {
 public:
  Checks(const Program& program, const std::vector<std::vector<int>>& after,
         std::vector<int> waiting)
      : assigns_ahead_(program.steps.size(), 0), checks_(program.steps.size(), 0) {
    if (program.traits.is_queued) return;
    std::vector<int> order;
    for (std::size_t s = 0; s < waiting.size(); ++s)
      if (waiting[s] == 0) order.push_back(static_cast<int>(s));
    for (std::size_t k = 0; k < order.size(); ++k) {
      const Region& region = program.steps[at(order[k])].region;
      if (region.kind == RegionKind::Contraction || region.kind == RegionKind::Chain) continue;
      if (region.kind == RegionKind::Opaque && has_trait(region.opaque.op, kIndexed)) {
        checks_[at(order[k])] = 1;
        ++left_;
      }
      for (int next : after[at(order[k])])
        if (--waiting[at(next)] == 0) order.push_back(next);
    }
    for (std::size_t s = 0; s < program.steps.size(); ++s)
      assigns_ahead_[s] = assigns_ahead(program, program.steps[s].region) ? 1 : 0;
  }

  /// Whether the step is to wait as long as others are ready.
  bool holds(int s) const { return left_ > 0 && assigns_ahead_[at(s)] != 0; }
  void done(int s) { left_ -= checks_[at(s)]; }
  bool all_done() const { return left_ == 0; }
  void give_up() { left_ = 0; }

 private:
  static bool assigns_ahead(const Program& program, const Region& region) {
    const auto is = [&](ValueId id, Value::Kind kind) {
      return program.values[at(id)].kind == kind;
    };
    return std::any_of(region.writes.begin(), region.writes.end(),
                       [&](ValueId id) { return is(id, Value::Kind::Variable); }) &&
           std::none_of(region.reads.begin(), region.reads.end(),
                        [&](ValueId id) { return is(id, Value::Kind::Arena); });
  }
  std::vector<char> assigns_ahead_, checks_;
  int left_ = 0;
};

}  // namespace

void order_steps(Program& program, std::vector<std::vector<int>> before, bool greedy) {
  const std::size_t n = program.steps.size();
  ReadersLeft left{std::vector<int>(program.values.size(), 0),
                   std::vector<std::int64_t>(program.values.size(), 0)};
  for (std::size_t s = 0; s < n; ++s)
    for (ValueId id : program.steps[s].region.reads) {
      ++left.count[at(id)];
      left.sum[at(id)] += static_cast<std::int64_t>(s);
    }
  std::vector<std::vector<int>> after(n);
  std::vector<int> waiting(n);
  for (std::size_t s = 0; s < n; ++s) {
    waiting[s] = static_cast<int>(before[s].size());
    for (int b : before[s]) after[at(b)].push_back(static_cast<int>(s));
  }
  const bool by_path = greedy && shares_no_memory(program);
  std::vector<int> path;
  if (by_path) path = longest_paths(program, after, waiting);
  const auto cost = [&](int s) -> std::int64_t {
    return by_path ? -path[at(s)] : greedy ? growth(program, s, left) : 0;
  };
  // Of equal ones the first. An entry whose cost has changed since is passed over.
  using Entry = std::pair<std::int64_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<std::int64_t> costs(n, 0);
  std::vector<char> state(n, 0);  // 1: ready, 2: done
  const auto offer = [&](int s) {
    costs[at(s)] = cost(s);
    state[at(s)] = 1;
    ready.emplace(costs[at(s)], s);
  };
  Checks checks(program, after, waiting);
  std::vector<int> order, held;
  for (std::size_t s = 0; s < n; ++s)
    if (waiting[s] == 0) offer(static_cast<int>(s));
  for (;;) {
    if (ready.empty()) checks.give_up();
    if (checks.all_done())
      for (int s : std::exchange(held, {})) offer(s);
    if (ready.empty()) break;
    const auto [asked, s] = ready.top();
    ready.pop();
    if (state[at(s)] == 2 || asked != costs[at(s)]) continue;
    if (checks.holds(s)) {
      held.push_back(s);
      continue;
    }
    state[at(s)] = 2;
    order.push_back(s);
    checks.done(s);
    for (ValueId id : program.steps[at(s)].region.reads) {
      left.sum[at(id)] -= s;
      // Its last reader is what would free it.
      if (--left.count[at(id)] == 1)
        if (const auto last = static_cast<int>(left.sum[at(id)]); state[at(last)] == 1 && !by_path)
          offer(last);
    }
    for (int next : after[at(s)])
      if (--waiting[at(next)] == 0) offer(next);
  }
  if (order.size() != n)
    throw InternalError("the steps of a program depend on each other in a circle");
  std::vector<Step> sorted;
  sorted.reserve(n);
  for (int s : order) sorted.push_back(std::move(program.steps[static_cast<std::size_t>(s)]));
  program.steps = std::move(sorted);
  program.before = std::move(before);
  program.order = std::move(order);
}

void plan_memory(Program& program, const PlanOptions& options) {
  find_lifetimes(program);
  const bool apart = shares_no_memory(program);
  std::vector<Value*> values;
  for (Value& v : program.values)
    if (v.kind == Value::Kind::Arena) values.push_back(&v);
  std::stable_sort(values.begin(), values.end(),
                   [](const Value* a, const Value* b) { return a->bytes > b->bytes; });
  std::int64_t top = 0;
  if (options.enabled(kPlanMemory) && !apart) {
    top = place_together(values, program.steps.size());
  } else {
    for (Value* v : values) {
      v->offset = top;
      top += aligned(v->bytes);
    }
  }
  program.workspace_offset = top;
  std::int64_t end = top;
  for (Step& s : program.steps) {
    s.workspace_offset = apart ? end : top;
    end = std::max(
        end, s.workspace_offset + aligned(static_cast<std::int64_t>(s.kernel->workspace_bytes)));
  }
  program.arena_bytes = end;
  list_calls(program);
  check_limit(program, options.memory_limit);
}

}  // namespace tenon
