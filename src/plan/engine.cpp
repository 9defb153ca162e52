// What engines with a single configuration need not write.
#include "plan/engine.h"

#include <tenon/error.h>

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
  if (region.has_prologue() && !engine.takes_prologues(region, values, why)) return false;
  const bool reduces = region.kind == RegionKind::Contraction && !region.map.reduces.empty();
  return !reduces || engine.takes_reductions(region, values, why);
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

const Engine* preferred(std::span<const Engine* const> engines, const Region& region,
                        std::span<const Value> values) {
  const Engine* best = nullptr;
  std::string why;
  for (const Engine* engine : engines)
    if (runs(*engine, region, values, &why) &&
        (best == nullptr || engine->preference(region) > best->preference(region)))
      best = engine;
  return best;
}

const Engine* first_that_claims(std::span<const Engine* const> engines, const Region& region,
                                std::span<const Value> values) {
  std::string why;
  for (const Engine* engine : engines)
    if (engine->claims(region, values, &why)) return engine;
  return nullptr;
}

}  // namespace tenon
