// Default implementations of Engine, for engines with a single configuration, and the selection of
// engines by estimate.
#include "plan/program/engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <tenon/error.h>

#include "base/sort.h"
#include "base/str.h"

namespace tenon {

std::unique_ptr<Kernel> Engine::prepare_as(const std::string& configuration, const Region& region,
                                           std::span<const Value> values, int threads) const {
  if (!configuration.empty())
    throw NotSupported(cat(name(), " has no configuration '", configuration, "'"));
  return prepare(region, values, threads);
}

namespace {

bool takes_all(const Engine& engine, const Region& region, std::span<const Value> values,
               std::string* why) {
  const bool reduces = region.kind == RegionKind::Contraction && !region.map.reduces.empty();
  if (!region.has_prologue() && !reduces) return true;
  const Capabilities can = engine.capabilities(region, values);
  const char* refusal = region.has_prologue() ? can.no_prologues : nullptr;
  if (refusal == nullptr && reduces)
    for (const MapReduce& reduce : region.map.reduces)
      if (reduce.rows == 0 ? can.no_reductions != nullptr : reduce.rows != can.reduced_rows)
        refusal =
            reduce.rows == 0 ? can.no_reductions : "does not reduce groups of rows of its result";
  if (refusal != nullptr) *why = refusal;
  return refusal == nullptr;
}

}  // namespace

bool runs(const Engine& engine, const Region& region, std::span<const Value> values,
          std::string* why) {
  return takes_all(engine, region, values, why) && engine.claims(region, values, why);
}

bool can_run(const Engine& engine, const Region& region, std::span<const Value> values) {
  std::string why;
  return takes_all(engine, region, values, &why) && engine.is_able(region, values);
}

std::vector<const Engine*> by_estimate(std::span<const Engine* const> engines, const Region& region,
                                       std::span<const Value> values, std::string* passed_over) {
  std::vector<const Engine*> found;
  for (const Engine* engine : engines) {
    std::string why;
    if (runs(*engine, region, values, &why))
      found.push_back(engine);
    else if (passed_over != nullptr)
      *passed_over += cat(passed_over->empty() ? "" : "; ", engine->name(), " ", why);
  }
  if (found.size() < 2) return found;
  std::vector<std::pair<double, const Engine*>> timed;
  for (const Engine* engine : found) {
    const double us = engine->estimate(region, values);
    timed.emplace_back(us > 0 ? us : std::numeric_limits<double>::infinity(), engine);
  }
  sort_stably(timed, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(timed.begin(), timed.end(), found.begin(), [](const auto& t) { return t.second; });
  return found;
}

const Engine* preferred(std::span<const Engine* const> engines, const Region& region,
                        std::span<const Value> values) {
  const std::vector<const Engine*> found = by_estimate(engines, region, values);
  return found.empty() ? nullptr : found.front();
}

const Engine* first_that_claims(std::span<const Engine* const> engines, const Region& region,
                                std::span<const Value> values) {
  std::string why;
  for (const Engine* engine : engines)
    if (engine->claims(region, values, &why)) return engine;
  return nullptr;
}

}  // namespace tenon
