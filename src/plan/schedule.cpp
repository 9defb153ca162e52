// Engines, order and memory of a program.
#include "plan/schedule.h"

#include <algorithm>
#include <numeric>

#include <tenon/error.h>

#include "base/str.h"
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

// Lowest offset at which `value` fits beside those already placed whose lives meet its own.
std::int64_t lowest_fit(const Value& value, const std::vector<const Value*>& placed) {
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const Value* o : placed)
    if (o->first_step <= value.last_step && value.first_step <= o->last_step)
      taken.emplace_back(o->offset, o->offset + aligned(o->bytes));
  std::sort(taken.begin(), taken.end());
  std::int64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (at + aligned(value.bytes) <= begin) break;
    at = std::max(at, end);
  }
  return at;
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

// On a card, steps that do not depend on each other run side by side; sharing memory would make
// them wait. Small arenas and workspaces therefore share none.
bool shares_no_memory(const Program& p) {
  return p.device.kind == Device::Kind::Cuda && bytes_apart(p) <= kApart;
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

void choose_by_estimate(Step& step, const Program& program, const PlanOptions& options) {
  std::string& passed_over = step.passed_over;
  for (const Engine* engine :
       by_estimate(options.engines, step.region, program.values, &passed_over)) {
    try {
      step.kernel = engine->prepare(step.region, program.values, options.threads);
      step.engine = engine;
      return;
    } catch (const NotSupported& e) {  // a library that turned out to have nothing for it
      passed_over += cat(passed_over.empty() ? "" : "; ", engine->name(), ": ", e.what());
    }
  }
  throw NotSupported(cat("no engine runs ", step.region.title, " (", label_text(step.region.label),
                         "): ", step.passed_over));
}

}  // namespace

void choose_engines(Program& program, const PlanOptions& options) {
  std::vector<TuneAdvice> advice(program.steps.size());
  if (options.tuning != nullptr) advice = options.tuning->advise(program, options);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    Step& step = program.steps[s];
    if (!follow(step, advice[s], program, options)) choose_by_estimate(step, program, options);
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
  }
}

void order_steps(Program& program, std::vector<std::vector<int>> before, bool greedy) {
  const std::size_t n = program.steps.size();
  std::vector<int> readers_left(program.values.size(), 0);
  for (const Step& s : program.steps)
    for (ValueId id : s.region.reads) ++readers_left[static_cast<std::size_t>(id)];
  std::vector<std::vector<int>> after(n);
  std::vector<int> waiting(n);
  for (std::size_t s = 0; s < n; ++s) {
    waiting[s] = static_cast<int>(before[s].size());
    for (int b : before[s]) after[static_cast<std::size_t>(b)].push_back(static_cast<int>(s));
  }
  std::vector<int> ready, order;
  for (std::size_t s = 0; s < n; ++s)
    if (waiting[s] == 0) ready.push_back(static_cast<int>(s));
  auto growth = [&](int s) {
    const Region& r = program.steps[static_cast<std::size_t>(s)].region;
    std::int64_t bytes = 0;
    for (ValueId id : r.writes) {
      const Value& v = program.values[static_cast<std::size_t>(id)];
      if (v.kind == Value::Kind::Arena) bytes += v.bytes;
    }
    for (ValueId id : r.reads) {
      const Value& v = program.values[static_cast<std::size_t>(id)];
      if (v.kind == Value::Kind::Arena && readers_left[static_cast<std::size_t>(id)] == 1)
        bytes -= v.bytes;
    }
    return bytes;
  };
  const bool by_path = greedy && shares_no_memory(program);
  const std::vector<int> path = longest_paths(program, after, waiting);
  const auto cost = [&](int s) -> std::int64_t {
    return by_path ? -path[static_cast<std::size_t>(s)] : greedy ? growth(s) : 0;
  };
  while (!ready.empty()) {
    auto pick = ready.begin();
    std::int64_t best = cost(*pick);
    for (auto it = ready.begin() + 1; it != ready.end(); ++it) {
      const std::int64_t other = cost(*it);
      if (other > best || (other == best && *it > *pick)) continue;
      best = other;
      pick = it;
    }
    const int s = *pick;
    ready.erase(pick);
    order.push_back(s);
    for (ValueId id : program.steps[static_cast<std::size_t>(s)].region.reads)
      --readers_left[static_cast<std::size_t>(id)];
    for (int next : after[static_cast<std::size_t>(s)])
      if (--waiting[static_cast<std::size_t>(next)] == 0) ready.push_back(next);
  }
  if (order.size() != n)
    throw InternalError("the steps of a program depend on each other in a circle");
  std::vector<Step> sorted;
  sorted.reserve(n);
  for (int s : order) sorted.push_back(std::move(program.steps[static_cast<std::size_t>(s)]));
  program.steps = std::move(sorted);
}

void plan_memory(Program& program, const PlanOptions& options) {
  find_lifetimes(program);
  const bool apart = shares_no_memory(program);
  std::vector<Value*> values;
  for (Value& v : program.values)
    if (v.kind == Value::Kind::Arena) values.push_back(&v);
  std::stable_sort(values.begin(), values.end(),
                   [](const Value* a, const Value* b) { return a->bytes > b->bytes; });
  std::vector<const Value*> placed;
  std::int64_t top = 0;
  for (Value* v : values) {
    v->offset = options.enabled(kPlanMemory) && !apart ? lowest_fit(*v, placed) : top;
    top = std::max(top, v->offset + aligned(v->bytes));
    placed.push_back(v);
  }
  program.workspace_offset = top;
  std::int64_t end = top;
  for (Step& s : program.steps) {
    s.workspace_offset = apart ? end : top;
    end = std::max(
        end, s.workspace_offset + aligned(static_cast<std::int64_t>(s.kernel->workspace_bytes)));
  }
  program.arena_bytes = end;
  check_limit(program, options.memory_limit);
}

}  // namespace tenon
