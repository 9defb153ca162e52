// The process-wide settings behind set_threads, set_precision and the like.
#include "run/settings.h"

#include <mutex>

#include <tenon/error.h>

#include "base/str.h"
#include "base/thread_pool.h"
#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "run/tune.h"

namespace tenon {
namespace {

struct State {
  std::mutex mutex;
  Precision precision = Precision::Fp32;
  Tune tune = Tune::Read;
  std::int64_t memory_limit = 0;
  bool reference = false;
  std::uint32_t disabled = 0;
  std::uint64_t version = 1;
};

State& state() {
  static State* instance = new State;
  return *instance;
}

template <class F>
void change(F&& f) {
  std::lock_guard lock(state().mutex);
  f(state());
  ++state().version;
}

std::span<const Engine* const> engines(Device device, bool reference) {
  if (device.kind == Device::Kind::Cuda) {
    if (reference)
      throw NotSupported("the reference engine runs on the CPU: use set_engine(\"fast\") on cards");
    return cuda::engines(cuda::target_of(device.index));
  }
  // The last of each list claims every region.
  static const Engine* const parts[] = {&cpu::contraction_engine(), &cpu::map_engine(),
                                        &cpu::opaque_engine()};
  static const auto* const chains = cpu::chain_engine(parts).release();
  static const Engine* const fast[] = {parts[0], parts[1], parts[2], chains,
                                       &cpu::reference_engine()};
  static const Engine* const plain[] = {&cpu::reference_engine()};
  return reference ? std::span<const Engine* const>(plain) : std::span<const Engine* const>(fast);
}

Arithmetic arithmetic_on(Device device, Precision precision) {
  switch (precision) {
    case Precision::Bf16:
      return Arithmetic::Bf16;
    case Precision::Tf32:
      return device.kind == Device::Kind::Cuda ? Arithmetic::Tf32 : Arithmetic::Fp32;
    case Precision::Fp16:
      return device.kind == Device::Kind::Cuda ? Arithmetic::Fp16 : Arithmetic::Fp32;
    case Precision::Fp32:
      break;
  }
  return Arithmetic::Fp32;
}

constexpr const char* kTuneNames[] = {"off", "read", "write"};

}  // namespace

Settings current_settings(Device device) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  Settings out;
  out.options.device = device;
  out.options.engines = engines(device, s.reference);
  out.options.threads = num_threads();
  out.options.arithmetic = arithmetic_on(device, s.precision);
  out.options.disabled = s.disabled;
  out.options.memory_limit = s.memory_limit;
  out.options.tuning = tuning_of(device, s.tune);
  // What a card cannot hold is refused before anything runs.
  if (device.kind == Device::Kind::Cuda && s.memory_limit == 0)
    out.options.memory_limit = cuda::target_of(device.index).memory_bytes;
  out.version = s.version;
  return out;
}

std::uint64_t settings_version() {
  std::lock_guard lock(state().mutex);
  return state().version;
}

void plan_anew() {
  change([](State&) {});
}

const char* name(Tune value) { return kTuneNames[static_cast<int>(value)]; }

Tune tune_from_name(const std::string& text) {
  for (int k = 0; k < 3; ++k)
    if (text == kTuneNames[k]) return static_cast<Tune>(k);
  throw ValueError(cat("tune '", text, "' is unknown: use off, read or write"));
}

void set_tune(Tune value) {
  change([&](State& s) { s.tune = value; });
}
Tune tune() {
  std::lock_guard lock(state().mutex);
  return state().tune;
}

void set_threads(int count) {
  if (count < 0 || count > 1024)
    throw ValueError(cat("threads = ", count, ": use 1 to 1024, or 0 for all CPUs"));
  change([&](State&) { set_num_threads(count == 0 ? available_cpus() : count); });
}
int threads() { return num_threads(); }

void set_precision(Precision value) {
  change([&](State& s) { s.precision = value; });
}
Precision precision() {
  std::lock_guard lock(state().mutex);
  return state().precision;
}

void set_memory_limit(std::int64_t bytes) {
  if (bytes < 0)
    throw ValueError(cat("memory limit = ", bytes, ": use a number of bytes, or 0 for none"));
  change([&](State& s) { s.memory_limit = bytes; });
}

void set_engine(const std::string& engine_name) {
  if (engine_name != "fast" && engine_name != "reference")
    throw ValueError(cat("engine '", engine_name, "' is unknown: use fast or reference"));
  change([&](State& s) { s.reference = engine_name == "reference"; });
}
std::string engine() {
  std::lock_guard lock(state().mutex);
  return state().reference ? "reference" : "fast";
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
    if (!pass_info(k).optional && !enabled)
      throw ValueError(cat("pass '", pass, "' cannot be switched off: nothing runs without it"));
    change(
        [&](State& s) { s.disabled = enabled ? s.disabled & ~(1u << k) : s.disabled | 1u << k; });
    return;
  }
  const std::string near = nearest(pass, names.data(), static_cast<int>(names.size()));
  throw ValueError(
      cat("pass '", pass, "' is unknown", near.empty() ? "" : cat(": did you mean '", near, "'?")));
}

}  // namespace tenon
