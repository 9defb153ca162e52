// Builds regions by hand and compares a CUDA engine with the reference engine on them. Without a
// GPU, real or emulated, nothing is compared.
#pragma once

#include <tenon/error.h>

#include "../cpu/region_check.h"
#include "cuda/cuda.h"
#include "gpu.h"

namespace tenon::test {

class DeviceCheck : public RegionCheck {
 public:
  /// True if there is a GPU to run on; reports once if there is none.
  static bool can_run() {
    static const bool found = has_gpu();
    return found;
  }

  void check_device(const Engine& engine, double tolerance = 2e-6) {
    std::string why;
    const bool claimed = engine.claims(region, values, &why);
    CHECK_MESSAGE(claimed, why);
    if (!claimed || !can_run()) return;
    const auto kernel = engine.prepare(region, values, 1);
    const auto expected = run(cpu::reference_engine(), 1);
    const auto got = run_on_gpu(*kernel);
    compare_all(expected, got, tolerance);
    CHECK(run_on_gpu(*kernel) == got);
  }

  /// Prepares map regions as one step. The engine must claim it.
  std::unique_ptr<Kernel> together(const Engine& engine, const std::vector<Region>& regions) const {
    Region joined;
    joined.kind = RegionKind::Joined;
    joined.parts = regions;
    std::string why;
    for (const Region& part : regions)
      CHECK(engine.capabilities(part, values).no_shared_launch == nullptr);
    CHECK_MESSAGE(engine.claims(joined, values, &why), why);
    return engine.prepare(joined, values, 1);
  }

  /// Compares the outputs of two runs.
  void compare_all(const std::vector<std::vector<std::byte>>& expected,
                   const std::vector<std::vector<std::byte>>& got, double tolerance) const {
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      compare(outputs_[k], expected[k], got[k], tolerance);
  }

  /// Bytes of the outputs after a run on GPU 0.
  std::vector<std::vector<std::byte>> run_on_gpu(const Kernel& kernel) const {
    DeviceMemory& memory = cuda::memory();
    std::vector<std::byte*> pointers;
    for (const auto& bytes : initial_) {
      pointers.push_back(static_cast<std::byte*>(memory.allocate(bytes.size() + 1, 0)));
      memory.from_host(pointers.back(), bytes.data(), bytes.size(), 0);
    }
    const std::size_t workspace_bytes = kernel.workspace_bytes + 64;
    auto* workspace = static_cast<std::byte*>(memory.allocate(workspace_bytes, 0));
    std::vector<std::byte> poison(workspace_bytes, std::byte{0xCD});
    memory.from_host(workspace, poison.data(), workspace_bytes, 0);
    kernel.run({pointers.data(), workspace, cuda::stream(0)});
    cuda::synchronize(0);
    memory.to_host(poison.data(), workspace, workspace_bytes, 0);
    bool guard = true;
    for (std::size_t i = kernel.workspace_bytes; i < workspace_bytes; ++i)
      guard = guard && poison[i] == std::byte{0xCD};
    CHECK(guard);
    std::vector<std::vector<std::byte>> result;
    for (const ValueId id : outputs_) {
      const auto k = static_cast<std::size_t>(id);
      result.emplace_back(initial_[k].size());
      memory.to_host(result.back().data(), pointers[k], result.back().size(), 0);
    }
    for (std::size_t k = 0; k < pointers.size(); ++k)
      memory.release(pointers[k], initial_[k].size() + 1, 0);
    memory.release(workspace, workspace_bytes, 0);
    return result;
  }
};

}  // namespace tenon::test
