// Implements set_threads, set_precision and the like, which change the calling thread's context,
// and derives planner options from a context.
#include "run/api/settings.h"

#include <tenon/compute.h>
#include <tenon/error.h>

#include "base/str.h"
#include "base/thread_pool.h"
#include "graph/context.h"
#include "run/devices.h"
#include "run/tuning/tune.h"

namespace tenon {
namespace {

int threads_of(const Context& context) {
  return context.threads > 0 ? context.threads : num_threads_by_default();
}

}  // namespace

PlanOptions plan_options(const Context& context, Device device) {
  PlanOptions out;
  out.device = device;
  Backend& backend = backend_for(device);
  out.traits = backend.traits();
  const bool reference = context.engines == EngineSet::Reference;
  out.engines = backend.engines(device.index, reference);
  if (reference) out.traits.runs_in_order = false;
  out.threads = threads_of(context);
  out.disabled = PassSet::of_bits(context.disabled_passes);
  out.memory_limit = context.memory_limit;
  out.tuning = tuning_of(device, context.tune);
  // A program that does not fit the GPU's memory is refused before it runs.
  if (device.kind != Device::Kind::Cpu)
    out.device_memory = backend.facts(device.index).memory_bytes;
  return out;
}

std::uint64_t planning_key(const Context& context) {
  std::uint64_t key = current_tune_record();
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(threads_of(context)), static_cast<std::uint64_t>(context.tune),
        static_cast<std::uint64_t>(context.engines), context.disabled_passes,
        static_cast<std::uint64_t>(context.memory_limit)})
    key = (key + part) * 0x9E3779B97F4A7C15ull ^ part;
  return key;
}

void set_tune(Tune value) { this_context().tune = value; }
Tune tune() { return this_context().tune; }

void set_threads(int count) {
  check_threads(count);
  this_context().threads = count;
  set_num_threads(count);
}
int threads() { return threads_of(this_context()); }

void set_precision(Precision value) { this_context().precision = value; }
Precision precision() { return this_context().precision; }

void set_memory_limit(std::int64_t bytes) {
  check_memory_limit(bytes);
  this_context().memory_limit = bytes;
}

void set_engine(const std::string& engine_name) {
  if (engine_name != "fast" && engine_name != "reference")
    throw ValueError(cat("engine '", engine_name, "' is unknown: use fast or reference"));
  this_context().engines = engine_name == "reference" ? EngineSet::Reference : EngineSet::Fast;
}
std::string engine() {
  return this_context().engines == EngineSet::Reference ? "reference" : "fast";
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  names.reserve(std::size_t{kPassCount});
  for (int k = 0; k < int{kPassCount}; ++k) names.emplace_back(pass_info(k).name);
  return names;
}

void set_pass_enabled(const std::string& pass, bool enabled) {
  const std::vector<std::string> names = pass_names();
  for (int k = 0; k < int{kPassCount}; ++k) {
    if (pass != names[static_cast<std::size_t>(k)]) continue;
    if (pass_info(k).required != nullptr && !enabled)
      throw ValueError(cat("pass '", pass, "' cannot be switched off: ", pass_info(k).required));
    std::uint64_t& disabled = this_context().disabled_passes;
    disabled = enabled ? disabled & ~PassSet::bit(k) : disabled | PassSet::bit(k);
    return;
  }
  const std::string near = nearest(pass, names.data(), static_cast<int>(names.size()));
  std::string optional;
  for (int k = 0; k < int{kPassCount}; ++k)
    if (pass_info(k).required == nullptr)
      optional += cat(optional.empty() ? "" : ", ", pass_info(k).name);
  throw ValueError(cat("pass '", pass, "' is unknown",
                       near.empty() ? "" : cat("; did you mean '", near, "'?"),
                       " (those that can be switched off: ", optional, ")"));
}

}  // namespace tenon
