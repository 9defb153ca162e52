// Calls: kernels as a run calls them.
//
// Deep networks repeat: hundreds of steps compute the same on other values. Where a call does the
// work (DeviceTraits::is_queued is false) one kernel serves all of them. It was prepared for a
// region whose values are numbered in the order in which it names them, and each step tells which
// values these are (Step::bound). So what a run reads of a plan is a few words a step, and kernels
// stay in cache. Of other programs each step has a kernel of its own, bound to the program's
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/program.h"
#include "plan/region_key.h"

namespace tenon {

/// Values that a shared kernel may have.
inline constexpr std::size_t kMostBound = 64;

/// Kernels of the steps of one program, each made once.
class SharedKernels {
 public:
  /// `values` outlive it.
  SharedKernels(std::span<const Value> values, const PlanOptions& options);

  /// Whether that is worth while: small programs stay in cache anyway.
  static bool serves(const Program& program, const PlanOptions& options);

  /// Gives the step an engine and a kernel that may be others' too; false where it needs its own.
  bool choose(Step& step);

 private:
  struct Made {
    const Engine* engine = nullptr;
    std::shared_ptr<const Kernel> kernel;
    std::string passed_over;
  };
  const std::span<const Value> values_;
  const PlanOptions& options_;
  RegionNumbering numbering_;
  std::unordered_map<RegionKey, Made, RegionKeyHash> made_;
};

/// Lists the calls of a program whose steps have kernels and workspaces.
void list_calls(Program& program);

/// Carries them out in order.
void run_calls(const Program& program, std::byte* const* values, std::byte* arena, void* stream);

/// The table that one step's kernel is bound to, for the values of a program.
class BoundValues {
 public:
  BoundValues(const Step& step, std::byte* const* values);
  std::byte* const* data() const { return own_.empty() ? all_ : own_.data(); }

 private:
  std::byte* const* const all_;
  std::vector<std::byte*> own_;
};

}  // namespace tenon
