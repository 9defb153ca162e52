// The host as a backend: calls do the work, so there is no queue and nothing to prepare.
#include <chrono>

#include "base/thread_pool.h"
#include "cpu/cpu.h"
#include "device/backend.h"
#include "device/cpu_model.h"
#include "plan/steps/calls.h"
#include "plan/steps/loop_engine.h"

namespace tenon::cpu {
namespace {

class HostBackend final : public Backend {
 public:
  Device::Kind kind() const override { return Device::Kind::Cpu; }
  const char* name() const override { return "cpu"; }
  DeviceTraits traits() const override {
    DeviceTraits traits;
    traits.keeps_bf16_matrices = true;
    traits.runs_in_order = true;
    traits.recompute = {.most_cost = kCpu.recompute_cost, .store = 1};
    traits.attention = {.largest_size = std::int64_t{1} << 30, .size_step = 1};
    return traits;
  }
  void open(int) override {}
  DeviceFacts facts(int) override { return {cpu::facts().model, 0, {}}; }
  DeviceMemory* memory() override { return nullptr; }

  std::span<const Engine* const> engines(int, bool reference) override {
    // The last engine of each list claims every region.
    static const Engine* const parts[] = {&contraction_engine(), &map_engine(), &opaque_engine(),
                                          &attention_engine()};
    static const auto* const chains = chain_engine(parts).release();
    static const Engine* const fast[] = {parts[0],
                                         parts[1],
                                         parts[2],
                                         parts[3],
                                         chains,
                                         &loop_engine(),
                                         &host_call_engine(),
                                         &reference_engine()};
    static const Engine* const plain[] = {&loop_engine(), &host_call_engine(), &reference_engine()};
    if (reference) return plain;
    return fast;
  }

  void* stream(int) override { return nullptr; }
  void synchronize() override {}

  void run_once(const Program& program, std::byte* const* values, std::byte* arena) override {
    const ThreadCount count(program.threads);
    run_calls(program, values, arena, nullptr);
  }
  std::unique_ptr<Replay> make_replay(std::shared_ptr<const Program>) override { return nullptr; }

  double measure(const Kernel& kernel, const Binding& binding, int, int) override {
    const auto start = std::chrono::steady_clock::now();
    kernel.run(binding);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }
};

}  // namespace

Backend& backend() {
  static HostBackend* const instance = new HostBackend;  // tensors in static storage outlive it
  return *instance;
}

}  // namespace tenon::cpu
