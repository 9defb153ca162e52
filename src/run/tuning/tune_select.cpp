// The rules of the competition. See tune_select.h.
#include "run/tuning/tune_select.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <tenon/error.h>

#include "base/str.h"
#include "base/system/log.h"

namespace tenon {
namespace {

constexpr double kDrop = 1.25, kSame = 1.02, kHopeless = 3, kMuchMemoryFactor = 2;
constexpr int kRounds = 4;

using Clock = std::chrono::steady_clock;

double factor_of(const Candidate& candidate) {
  return candidate.configuration.starts_with(kMuchMemory) ? kMuchMemoryFactor : 1;
}

struct Runner {
  const Candidate* candidate;
  /// The minimum over all rounds, used for comparisons; doubled for a configuration that needs much
  /// memory.
  double us = std::numeric_limits<double>::infinity();
  double measured() const { return us / factor_of(*candidate); }
};

// A candidate that fails is dropped; the others continue.
bool is_right(const Candidate& candidate, Bench& bench) {
  std::string why;
  try {
    if (bench.agrees(*candidate.kernel, &why)) return true;
  } catch (const Error& error) {
    why = error.what();
  }
  log_message(LogLevel::Warning,
              cat("tuning ", bench.title(), ": ", candidate.title(), " is left out: ", why));
  return false;
}

double timed(const Candidate& candidate, Bench& bench) {
  try {
    return factor_of(candidate) * bench.microseconds(*candidate.kernel);
  } catch (const Error& error) {
    log_message(LogLevel::Warning, cat("tuning ", bench.title(), ": ", candidate.title(),
                                       " cannot be timed: ", error.what()));
    return std::numeric_limits<double>::infinity();
  }
}

double least(const std::vector<Runner>& runners) {
  double us = std::numeric_limits<double>::infinity();
  for (const Runner& r : runners) us = std::min(us, r.us);
  return us;
}

// Whether the first configurations of an engine are so slow that the others are not worth timing.
// Not applied to libraries, whose configurations may differ a lot.
bool is_too_slow(const std::vector<Runner>& runners, const Engine* engine) {
  if (!engine->version().empty()) return false;
  int tried = 0;
  double us = std::numeric_limits<double>::infinity();
  for (const Runner& r : runners)
    if (r.candidate->engine == engine && !std::isinf(r.us)) ++tried, us = std::min(us, r.us);
  return tried >= 2 && us > kHopeless * least(runners);
}

// The best candidate of another engine; if there is none, the second best of the same engine.
const Runner* second(const std::vector<Runner>& runners, const Runner& winner) {
  const Runner* found = nullptr;
  const auto elsewhere = [&](const Runner& r) {
    return r.candidate->engine != winner.candidate->engine;
  };
  for (const Runner& r : runners) {
    if (r.candidate == winner.candidate || std::isinf(r.us)) continue;
    const bool better = found == nullptr || (elsewhere(r) && !elsewhere(*found)) ||
                        (elsewhere(r) == elsewhere(*found) && r.us < found->us);
    if (better) found = &r;
  }
  return found;
}

}  // namespace

std::string Candidate::title() const {
  return configuration.empty() ? std::string(engine->name())
                               : cat(engine->name(), " ", configuration);
}

std::vector<Candidate> candidates_of(const Region& region, std::span<const Value> values,
                                     const PlanOptions& options) {
  struct Ways {
    const Engine* engine;
    std::vector<std::string> names;
  };
  std::vector<Ways> all;
  std::size_t most = 0;
  for (const Engine* engine : by_estimate(options.engines, region, values)) {
    std::vector<std::string> names = engine->configurations(region, values);
    if (names.empty()) names.emplace_back();
    most = std::max(most, names.size());
    all.push_back({engine, std::move(names)});
  }
  std::vector<Candidate> out;
  for (std::size_t rank = 0; rank < most; ++rank)
    for (const Ways& ways : all) {
      if (rank >= ways.names.size()) continue;
      try {
        out.push_back({ways.engine, ways.names[rank],
                       ways.engine->prepare_as(ways.names[rank], region, values, options.threads)});
      } catch (const NotSupported&) {  // a library with fewer configurations
        continue;
      }
    }
  return out;
}

std::string claiming_engines(const Region& region, std::span<const Value> values,
                             std::span<const Engine* const> engines) {
  std::string text;
  for (const Engine* engine : engines) {
    std::string why;
    if (!runs(*engine, region, values, &why)) continue;
    const std::string version = engine->version();
    text += cat(text.empty() ? "" : ", ", engine->name(), version.empty() ? "" : " ", version);
  }
  return text;
}

std::optional<TuneChoice> fastest(std::vector<Candidate>& candidates, Bench& bench,
                                  double seconds) {
  std::vector<Runner> all, running;
  for (const Candidate& candidate : candidates)
    if (is_right(candidate, bench)) running.push_back({&candidate});
  const Clock::time_point start = Clock::now();
  const auto in_time = [&] {
    return std::chrono::duration<double>(Clock::now() - start).count() < seconds;
  };
  for (int round = 0; round < kRounds && running.size() > (round == 0 ? 0 : 1); ++round) {
    for (Runner& r : running)
      if ((in_time() || std::isinf(least(running))) &&
          (round > 0 || !is_too_slow(running, r.candidate->engine)))
        r.us = std::min(r.us, timed(*r.candidate, bench));
    const double limit = kDrop * least(running);
    for (const Runner& r : running)
      if (r.us > limit) all.push_back(r);
    std::erase_if(running, [&](const Runner& r) { return std::isinf(r.us) || r.us > limit; });
  }
  if (running.empty()) return std::nullopt;
  const double best = least(running);
  const Runner winner = *std::find_if(running.begin(), running.end(),
                                      [&](const Runner& r) { return r.us <= kSame * best; });
  all.insert(all.end(), running.begin(), running.end());
  TuneChoice choice;
  choice.engine = winner.candidate->engine->name();
  choice.configuration = winner.candidate->configuration;
  choice.version = winner.candidate->engine->version();
  choice.microseconds = winner.measured();
  if (const Runner* other = second(all, winner)) {
    choice.next = other->candidate->title();
    choice.next_microseconds = other->measured();
  }
  return choice;
}

}  // namespace tenon
