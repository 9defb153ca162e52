// Chooses an engine for each step and orders the steps. The arena is laid out in memory.cpp.
#include "plan/steps/schedule.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include <tenon/error.h>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "plan/program/region_key.h"
#include "plan/program/times.h"
#include "plan/program/tune.h"
#include "plan/steps/calls.h"
#include "plan/steps/delay_leaf_steps.h"
#include "plan/steps/engine_choice.h"

namespace tenon {
namespace {

// By step: the longest path through the steps that wait for it. A contraction counts as several
// launches.
std::vector<int> longest_paths(const Program& p, const std::vector<std::vector<int>>& after,
                               std::vector<int> waiting) {
  std::vector<int> order, path(p.steps.size(), 0);
  for (std::size_t s = 0; s < waiting.size(); ++s)
    if (waiting[s] == 0) order.push_back(static_cast<int>(s));
  for (std::size_t k = 0; k < order.size(); ++k)
    for (int next : after[at(order[k])])
      if (--waiting[at(next)] == 0) order.push_back(next);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto s = at(*it);
    for (int next : after[s]) path[s] = std::max(path[s], path[at(next)]);
    path[s] += p.steps[s].region.kind == RegionKind::Contraction ? kContractionTime : 1;
  }
  return path;
}

// Applies the tuner's advice. Returns false if the advice cannot be used; it is then removed.
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
  } catch (const NotSupported& e) {  // for example, a table from another version of the library
    step.passed_over = cat(engine->name(), ": ", e.what());
  }
  advice.choice.reset();
  return false;
}

// Gives a step the engine of an equal step. Returns false if that engine cannot run it.
bool follow(Step& step, const Step& like, std::span<const ValueId> renamed, const Program& program,
            const PlanOptions& options) {
  try {
    step.kernel = like.kernel->on_values(renamed);
    if (step.kernel == nullptr)
      step.kernel =
          like.engine->prepare_as(like.configuration, step.region, program.values, options.threads);
  } catch (const NotSupported&) {  // for example, a library is out of memory
    return false;
  }
  step.engine = like.engine;
  step.configuration = like.configuration;
  step.passed_over = like.passed_over;
  step.choice = like.choice;
  return true;
}

/// Chooses engines and kernels for steps without an equal earlier step, in parallel if there are
/// many. The choices are independent, except for the block counters that kernels take.
void choose_side_by_side(Program& program, const EqualSteps& alike, std::span<TuneAdvice> advice,
                         const PlanOptions& options) {
  std::vector<std::size_t> firsts;
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    if (alike.is_first(s)) firsts.push_back(s);
  if (firsts.size() < kManyQuestions) return;
  parallel_for(static_cast<std::int64_t>(firsts.size()), [&](std::int64_t k, int) {
    const std::size_t s = firsts[at(k)];
    Step& step = program.steps[s];
    if (!follow(step, advice[s], program, options))
      choose_by_estimate(step, program.values, options);
  });
}

/// Counters are reused after a while, so they are assigned in the order of the steps.
void take_counters(Step& step, std::span<const ValueId> same) {
  if (std::unique_ptr<Kernel> copy = step.kernel->on_values(same)) step.kernel = std::move(copy);
}

/// Records the choice for the tuner and for the program's description.
void keep_choice(Program& program, Step& step, TuneAdvice& advice, const PlanOptions& options) {
  step.choice = choice_text(advice);
  TuneChoice taken = advice.choice.value_or(TuneChoice());
  taken.engine = step.engine->name();
  taken.configuration = step.configuration;
  taken.version = step.engine->version();
  if (taken.configuration.empty() && taken.version.empty()) {
    // The engine's own choice, by name: an incomplete batch must use the same configuration.
    const std::vector<std::string> names = step.engine->configurations(step.region, program.values);
    if (!names.empty()) taken.configuration = names.front();
  }
  options.tuning->taken(advice.key, taken);
  program.taken.push_back({std::move(advice.key), std::move(taken)});
}

}  // namespace

void choose_engines(Program& program, const PlanOptions& options) {
  std::optional<SharedKernels> shared;
  std::optional<EqualSteps> alike;
  if (SharedKernels::serves(program, options))
    shared.emplace(program.values, options);
  else
    alike.emplace(program);
  std::vector<TuneAdvice> advice(program.steps.size());
  if (options.tuning != nullptr) advice = options.tuning->advise(program, *alike, options);
  std::vector<ValueId> same;
  if (alike && options.traits.launches_kernels) {
    choose_side_by_side(program, *alike, advice, options);
    same.resize(program.values.size());
    std::iota(same.begin(), same.end(), ValueId{0});
  }
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    Step& step = program.steps[s];
    if (shared && shared->choose(step)) continue;
    if (alike && !alike->is_first(s) &&
        follow(step, program.steps[at(alike->first(s))], alike->renamed(s), program, options))
      continue;
    if (step.engine != nullptr)
      take_counters(step, same);
    else if (!follow(step, advice[s], program, options))
      choose_by_estimate(step, program.values, options);
    if (!advice[s].key.empty()) keep_choice(program, step, advice[s], options);
  }
}

void repeat_choices(const Program& program, Tuning& tuning) {
  for (const Step& step : program.steps)
    for (const std::shared_ptr<const Program>& body : step.region.opaque.bodies)
      repeat_choices(*body, tuning);
  for (const TakenChoice& taken : program.taken) tuning.taken(taken.key, taken.choice);
}

namespace {

/// By value: the number of steps that still have to read it, and the sum of their step numbers.
struct ReadersLeft {
  std::vector<int> count;
  std::vector<std::int64_t> sum;
};

/// Live bytes after a step minus live bytes before it.
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

/// Keeps two kinds of steps in order: steps that may reject an out-of-range index, and steps that
/// assign a variable without depending on the data (such as a step counter). If the host sees
/// values during a call, the index checks run first; otherwise a rejected call would still advance
/// the counter. Only index checks that need no product are waited for, so the memory peak stays the
/// same.
class Checks {
 public:
  Checks(const Program& program, const std::vector<std::vector<int>>& after,
         std::vector<int> waiting)
      : assigns_ahead_(program.steps.size(), 0), checks_(program.steps.size(), 0) {
    if (!program.traits.host_sees_values) return;
    std::vector<int> order;
    for (std::size_t s = 0; s < waiting.size(); ++s)
      if (waiting[s] == 0) order.push_back(static_cast<int>(s));
    for (std::size_t k = 0; k < order.size(); ++k) {
      const Region& region = program.steps[at(order[k])].region;
      if (region.kind == RegionKind::Contraction || region.kind == RegionKind::Chain) continue;
      if (region.kind == RegionKind::Opaque && is_refused_late(region.opaque.op) &&
          !updates_rows(region.opaque, region.opaque.outs[0])) {
        checks_[at(order[k])] = 1;
        ++left_;
      }
      for (int next : after[at(order[k])])
        if (--waiting[at(next)] == 0) order.push_back(next);
    }
    for (std::size_t s = 0; s < program.steps.size(); ++s)
      assigns_ahead_[s] = assigns_ahead(program, program.steps[s].region) ? 1 : 0;
  }

  /// The number of steps that other steps may have to wait for.
  int left() const { return left_; }
  /// Whether the step must wait while other steps are ready.
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

/// The order of the steps: among steps that are ready, the one with the lowest cost runs next.
class Ordering {
 public:
  Ordering(const Program& program, const std::vector<std::vector<int>>& before,
           const PlanOptions& options, PassTally& tally)
      : program_(program),
        tally_(tally),
        greedy_(options.enabled(kOrder)),
        by_path_(greedy_ && shares_no_memory(program)),
        delays_(options.enabled(kDelayLeafSteps) && greedy_ && !by_path_),
        left_(readers_of(program)),
        after_(before.size()),
        waiting_(before.size()),
        costs_(before.size(), 0),
        states_(before.size(), State::Waiting) {
    for (std::size_t s = 0; s < before.size(); ++s) {
      waiting_[s] = static_cast<int>(before[s].size());
      for (int b : before[s]) after_[at(b)].push_back(static_cast<int>(s));
    }
    if (by_path_) path_ = longest_paths(program, after_, waiting_);
  }

  std::vector<int> run() {
    std::vector<int> order = one_by_one();
    if (order.size() != program_.steps.size())
      throw InternalError("the steps of a program have a cyclic dependency");
    if (delays_)
      tally_.count(
          kDelayLeafSteps,
          tally_.timed(
              kDelayLeafSteps, [&] { return delay_leaf_steps(program_, after_, order); }, 0));
    return order;
  }

 private:
  enum class State : std::uint8_t { Waiting, Ready, Done };
  using Entry = std::pair<std::int64_t, int>;  // cost and step; ties go to the first step

  std::vector<int> one_by_one() {
    Checks checks = tally_.timed(
        kChecksFirst, [this] { return Checks(program_, after_, waiting_); }, 0);
    tally_.count(kChecksFirst, checks.left());
    std::vector<int> order, held;
    for (std::size_t s = 0; s < waiting_.size(); ++s)
      if (waiting_[s] == 0) offer(static_cast<int>(s));
    for (;;) {
      if (ready_.empty()) checks.give_up();
      if (checks.all_done())
        for (int s : std::exchange(held, {})) offer(s);
      if (ready_.empty()) return order;
      const auto [asked, s] = ready_.top();
      ready_.pop();
      if (states_[at(s)] == State::Done || asked != costs_[at(s)]) continue;
      if (checks.holds(s)) {
        held.push_back(s);
        continue;
      }
      order.push_back(s);
      checks.done(s);
      finish(s);
    }
  }

  static ReadersLeft readers_of(const Program& program) {
    ReadersLeft left{std::vector<int>(program.values.size(), 0),
                     std::vector<std::int64_t>(program.values.size(), 0)};
    for (std::size_t s = 0; s < program.steps.size(); ++s)
      for (ValueId id : program.steps[s].region.reads) {
        ++left.count[at(id)];
        left.sum[at(id)] += static_cast<std::int64_t>(s);
      }
    return left;
  }

  std::int64_t cost(int s) const {
    if (by_path_) return -path_[at(s)];
    return greedy_ ? growth(program_, s, left_) : 0;
  }

  /// Queue entries of a step whose cost has changed since are skipped.
  void offer(int s) {
    costs_[at(s)] = cost(s);
    states_[at(s)] = State::Ready;
    ready_.emplace(costs_[at(s)], s);
  }

  void finish(int s) {
    states_[at(s)] = State::Done;
    for (ValueId id : program_.steps[at(s)].region.reads) {
      left_.sum[at(id)] -= s;
      if (--left_.count[at(id)] != 1 || by_path_) continue;
      // Only the last reader frees the value.
      const auto last = static_cast<int>(left_.sum[at(id)]);
      if (states_[at(last)] == State::Ready) offer(last);
    }
    for (int next : after_[at(s)])
      if (--waiting_[at(next)] == 0) offer(next);
  }

  const Program& program_;
  PassTally& tally_;
  const bool greedy_, by_path_, delays_;
  ReadersLeft left_;
  std::vector<std::vector<int>> after_;
  // Number of steps that each step still waits for; longest path behind each step.
  std::vector<int> waiting_, path_;
  std::vector<std::int64_t> costs_;
  std::vector<State> states_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
};

}  // namespace

void order_steps(Program& program, std::vector<std::vector<int>> before, const PlanOptions& options,
                 PassTally& tally) {
  std::vector<int> order = Ordering(program, before, options, tally).run();
  std::vector<Step> sorted;
  sorted.reserve(order.size());
  for (int s : order) sorted.push_back(std::move(program.steps[at(s)]));
  program.steps = std::move(sorted);
  program.before = std::move(before);
  program.order = std::move(order);
}

}  // namespace tenon
