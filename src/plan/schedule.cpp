// Engines and order of a program.
#include "plan/schedule.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include <tenon/error.h>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "plan/calls.h"
#include "plan/late_sweeps.h"
#include "plan/tune.h"

namespace tenon {
namespace {

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
    if (const Value& v = program.values[at(id)];
        v.kind == Value::Kind::Arena && !contains(r.reads, id))
      bytes += v.bytes;
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
  if (greedy && !by_path) delay_sweeps(program, after, order);
  std::vector<Step> sorted;
  sorted.reserve(n);
  for (int s : order) sorted.push_back(std::move(program.steps[static_cast<std::size_t>(s)]));
  program.steps = std::move(sorted);
  program.before = std::move(before);
  program.order = std::move(order);
}

}  // namespace tenon
