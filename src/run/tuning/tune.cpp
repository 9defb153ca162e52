// Sources of advice, in this order: the run's record, the disk, the table built into the library, a
// measurement.
#include "run/tuning/tune.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include <tenon/shapes_only.h>
#include "base/index.h"
#include "base/str.h"
#include "base/system/log.h"
#include "plan/program/program.h"
#include "plan/program/region_key.h"
#include "run/devices.h"

namespace tenon {
namespace {

constexpr double kSecondsARegion = 1;
// Loading a library takes 0.1 to 0.2 seconds. A smaller gain per step does not make up for it
// within 40,000 steps.
constexpr double kMicrosecondsToStart = 4;

// The innermost record that this thread's plans write their choices to.
thread_local TuneRecord* t_record = nullptr;

struct Listener {
  std::mutex mutex;
  std::function<void(const TuneProgress&)> function;
};
Listener& listener() {
  static Listener* const instance = new Listener;
  return *instance;
}

void report(const TuneProgress& progress) {
  Listener& l = listener();
  const std::lock_guard lock(l.mutex);
  if (l.function) l.function(progress);
}

// The second-best choice, if it is one of our own engines and can run the region.
std::optional<TuneChoice> second_of(const TuneChoice& first, const Region& region,
                                    std::span<const Value> values, const PlanOptions& options) {
  TuneChoice second;
  const std::size_t end = first.next.find(' ');
  second.engine = first.next.substr(0, end);
  if (end != std::string::npos) second.configuration = first.next.substr(end + 1);
  second.microseconds = first.next_microseconds;
  second.next = cat(first.engine, first.configuration.empty() ? "" : " ", first.configuration);
  second.next_microseconds = first.microseconds;
  second.rivals = first.rivals;
  if (engine_of(second, options.engines, region, values) == nullptr) return std::nullopt;
  return second;
}

// An empty table leaves the digest unchanged.
std::uint64_t with_digest(const TuneTable& table, std::uint64_t before) {
  if (table.size() == 0) return before;
  return (before + std::hash<std::string>()(table.text())) * 0x9E3779B97F4A7C15ull | 1u;
}

// The gain of a library's engine (an engine with a version) for the program.
struct Use {
  double gain = 0;  // microseconds less than the second-best choice
  std::vector<std::size_t> steps;
};

void spare_libraries(std::vector<TuneAdvice>& advice, const Program& program,
                     const EqualSteps& alike, const PlanOptions& options) {
  constexpr double kNeeded = std::numeric_limits<double>::infinity();
  std::map<std::string, Use> uses;
  std::vector<std::optional<TuneChoice>> seconds(advice.size());
  for (std::size_t s = 0; s < advice.size(); ++s) {
    const TuneAdvice& a = advice[s];
    if (a.key.empty()) continue;
    const Region& region = program.steps[s].region;
    if (!a.choice) {
      if (!alike.is_first(s)) continue;
      if (const Engine* engine = preferred(options.engines, region, program.values))
        uses[engine->name()].gain = kNeeded;
      continue;
    }
    if (a.choice->version.empty()) continue;
    if (!alike.is_first(s))
      seconds[s] = seconds[at(alike.first(s))];
    else if (!a.repeats)
      seconds[s] = second_of(*a.choice, region, program.values, options);
    Use& use = uses[a.choice->engine];
    if (seconds[s])
      use.gain += a.choice->next_microseconds - a.choice->microseconds;
    else
      use.gain = kNeeded;
    use.steps.push_back(s);
  }
  for (const auto& [engine, use] : uses)
    if (use.gain < kMicrosecondsToStart)
      for (const std::size_t s : use.steps) {
        advice[s].choice = std::move(seconds[s]);
        advice[s].source = "no library is started for this";
      }
}

}  // namespace

void on_tune(std::function<void(const TuneProgress&)> function) {
  Listener& l = listener();
  const std::lock_guard lock(l.mutex);
  l.function = std::move(function);
}

TuneRecord::TuneRecord(TuneTable kept)
    : table_(std::move(kept)), outer_(std::exchange(t_record, this)) {
  given_ = with_digest(table_, outer_ == nullptr ? 0 : outer_->given_);
}

TuneRecord::~TuneRecord() { t_record = outer_; }

std::uint64_t current_tune_record() noexcept { return t_record == nullptr ? 0 : t_record->given_; }

std::uint64_t tuning_state() {
  std::uint64_t state = TuneStore::shared().changes();
  for (const TuneRecord* record = t_record; record != nullptr; record = record->outer_)
    state = with_digest(record->table_, state);
  return state;
}

struct Tuner::Unknown {
  TuneAdvice* advice;
  const Region* region;
  std::vector<Candidate> candidates;
};

TuneAdvice Tuner::look_up(const std::string& key, const Region& region,
                          std::span<const Value> values, const PlanOptions& options) {
  const auto serves = [&](const TuneChoice& choice) {
    return engine_of(choice, options.engines, region, values) != nullptr;
  };
  for (const TuneRecord* record = t_record; record != nullptr; record = record->outer_)
    if (const TuneChoice* row = record->table_.find(key); row != nullptr && serves(*row))
      return {key, *row, "as before in this run", true, true};
  for (const TuneRecord* record = t_record; record != nullptr; record = record->outer_)
    if (const TuneChoice* row = record->table_.find_larger(key); row != nullptr && serves(*row)) {
      TuneChoice choice = *row;
      // A library numbers its algorithms anew for every size.
      if (!choice.version.empty()) choice.configuration.clear();
      return {key, std::move(choice), "as for the whole batch", true};
    }
  if (mode_ == Tune::Off) return {key, std::nullopt, ""};
  const auto holds = [&](const TuneChoice& choice) {
    return serves(choice) && all_were_measured(choice, options.engines, region, values);
  };
  const std::optional<TuneChoice> row = store_.find(key);
  // With measurements requested, a row is used only if the installed engines and versions competed.
  if (row && holds(*row) &&
      (mode_ == Tune::Read || row->rivals == claiming_engines(region, values, options.engines)))
    return {key, row, "tuned"};
  const TuneChoice* ours = mode_ == Tune::Read ? built_in_choices().find(key) : nullptr;
  if (ours != nullptr && holds(*ours)) return {key, *ours, "built in"};
  return {key, std::nullopt, ""};
}

std::vector<TuneAdvice> Tuner::advise(const Program& program, const EqualSteps& alike,
                                      const PlanOptions& options) {
  std::vector<TuneAdvice> advice(program.steps.size());
  std::vector<Unknown> unknown;
  for (std::size_t s = 0; s < advice.size(); ++s) {
    const Region& region = program.steps[s].region;
    if (region.kind != RegionKind::Contraction || region.contraction.out_shape.numel() == 0)
      continue;
    if (!alike.is_first(s)) {
      advice[s] = advice[at(alike.first(s))];
      continue;
    }
    advice[s] = look_up(tune_key(gpu_, region, program.values), region, program.values, options);
    if (mode_ != Tune::Write || advice[s].choice) continue;
    const auto same = [&](const Unknown& u) { return u.advice->key == advice[s].key; };
    if (std::none_of(unknown.begin(), unknown.end(), same))
      unknown.push_back({&advice[s], &region, {}});
  }
  if (!unknown.empty()) measure(unknown, program.values, options);
  for (TuneAdvice& a : advice)  // regions with an equal key
    for (const Unknown& u : unknown)
      if (a.key == u.advice->key) a = *u.advice;
  spare_libraries(advice, program, alike, options);
  return advice;
}

TuneAdvice Tuner::known(const Region& region, std::span<const Value> values,
                        const PlanOptions& options) {
  if (region.contraction.out_shape.numel() == 0) return {};
  return look_up(tune_key(gpu_, region, values), region, values, options);
}

void Tuner::measure(std::span<Unknown> unknown, std::span<const Value> values,
                    const PlanOptions& options) {
  const std::lock_guard lock(measuring_);
  // All candidates are prepared first, so that their kernels compile in parallel.
  for (Unknown& u : unknown) u.candidates = candidates_of(*u.region, values, options);
  int done = 0;
  for (Unknown& u : unknown) {
    report({done++, static_cast<int>(unknown.size()), u.region->title});
    try {
      const auto make = [&] { return make_bench_(*u.region, values, options, u.candidates); };
      std::unique_ptr<Bench> bench;
      try {
        bench = make();
      } catch (const MemoryError&) {  // try again without candidates that need a large workspace
        constexpr std::size_t kLarge = std::size_t{64} << 20;
        const auto is_large = [](const Candidate& c) { return c.kernel->workspace_bytes > kLarge; };
        if (std::erase_if(u.candidates, is_large) == 0) throw;
        bench = make();
      }
      std::optional<TuneChoice> choice = fastest(u.candidates, *bench, kSecondsARegion);
      if (!choice) continue;
      choice->rivals = claiming_engines(*u.region, values, options.engines);
      store_.put(u.advice->key, *choice);
      u.advice->choice = std::move(choice);
      u.advice->source = "tuned now";
    } catch (const Error& error) {  // for example, the GPU's memory is full
      log_message(LogLevel::Warning,
                  cat("tuning: ", u.region->title, " is chosen by the cost model: ", error.what()));
    }
    u.candidates.clear();
  }
  report({done, done, {}});
}

void Tuner::taken(const std::string& key, const TuneChoice& choice) {
  if (ShapesOnly::is_on() || t_record == nullptr) return;  // ShapesOnly: planned, not run
  TuneTable& table = t_record->table_;
  if (table.find(key) == nullptr) table.put(key, choice);
}

Tuning* tuning_of(Device device, Tune mode) {
  Backend& backend = backend_for(device);
  if (backend.trials() == nullptr) return nullptr;
  static std::mutex mutex;
  using Key = std::tuple<Device::Kind, int, Tune>;
  static auto& tuners = *new std::deque<std::pair<Key, Tuner>>;
  const std::lock_guard lock(mutex);
  const Key key{device.kind, device.index, mode};
  for (auto& [known, tuner] : tuners)
    if (known == key) return &tuner;
  return &tuners
              .emplace_back(std::piecewise_construct, std::forward_as_tuple(key),
                            std::forward_as_tuple(backend.facts(device.index).model, mode,
                                                  TuneStore::shared(), make_gpu_bench))
              .second;
}

}  // namespace tenon
