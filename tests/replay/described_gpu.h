// A GPU that is described and not present: an H100 with cuBLASLt and cuDNN. The planner plans for
// it on any machine.
//
// Nothing of the machine decides a plan: the model of the GPU, its engines and its libraries are
// fixed here, and engines are chosen by estimate, as with an empty tune table. The library's own
// table is not used, so that new measurements leave the recorded plans alone.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/cuda.h"
#include "plan/program/program.h"

namespace tenon::test {

inline cuda::Target described_target() {
  cuda::Target target;  // 132 multiprocessors of compute capability 9.0
  target.model.memory = 3.35e12;
  target.memory_bytes = std::int64_t{80} << 30;
  target.cublaslt = target.cudnn = true;
  return target;
}

/// A vendor library's engine, which claims and estimates as always and prepares no call: the
/// library is not needed. Its kernels have no workspace.
class WithoutLibrary final : public Engine {
 public:
  explicit WithoutLibrary(const Engine& engine) : engine_(engine) {}

  const char* name() const override { return engine_.name(); }
  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    return engine_.claims(region, values, why);
  }
  bool is_able(const Region& region, std::span<const Value> values) const override {
    return engine_.is_able(region, values);
  }
  Capabilities capabilities(const Region& region, std::span<const Value> values) const override {
    return engine_.capabilities(region, values);
  }
  double estimate(const Region& region, std::span<const Value> values) const override {
    return engine_.estimate(region, values);
  }
  std::unique_ptr<Kernel> prepare(const Region&, std::span<const Value>, int) const override {
    return std::make_unique<NoCall>();
  }

 private:
  struct NoCall final : Kernel {
    void run(const Binding&) const override {}
  };
  const Engine& engine_;
};

/// The engines of the described GPU, in the backend's order.
inline std::span<const Engine* const> described_engines() {
  static const std::vector<const Engine*> engines = [] {
    std::vector<const Engine*> list;
    for (const Engine* engine : cuda::engines(described_target())) {
      const std::string_view name = engine->name();
      const bool is_library = name == "cublaslt" || name == "cudnn";
      list.push_back(is_library ? new WithoutLibrary(*engine) : engine);
    }
    return list;
  }();
  return engines;
}

inline PlanOptions described_options() {
  PlanOptions options;
  options.device = {Device::Kind::Cuda, 0};
  options.traits = cuda::backend().traits();
  options.traits.convolves_channels_last = options.traits.has_product_library = true;
  options.engines = described_engines();
  options.checks_passes = true;
  return options;
}

}  // namespace tenon::test
