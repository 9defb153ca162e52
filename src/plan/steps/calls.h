// Calls: the list of kernel calls that a run executes.
//
// Deep networks repeat layers: hundreds of steps compute the same on other values. On devices where
// a call does the work itself (DeviceTraits::is_queued is false), one kernel serves all equal
// steps. The kernel is prepared for a region whose values are numbered in the order in which the
// region names them. Each step lists its own values in that order (Step::bound). So a run reads
// only a few words of the plan for each step, and kernels stay in cache. In all other programs each
// step has a kernel of its own, bound directly to the program's values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/program/program.h"
#include "plan/program/region_key.h"

namespace tenon {

/// Upper limit on the number of values of a shared kernel.
inline constexpr std::size_t kMostBound = 64;

/// Kernels of the steps of one program. Equal steps share one kernel, which is prepared once.
class SharedKernels {
 public:
  /// `values` must outlive this object.
  SharedKernels(std::span<const Value> values, const PlanOptions& options);

  /// Whether sharing pays: small programs stay in cache without it.
  static bool serves(const Program& program, const PlanOptions& options);

  /// Gives the step an engine and a kernel, possibly shared with other steps. Returns false if the
  /// step needs a kernel of its own.
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

/// Fills Program::calls of a program whose steps have kernels and workspaces.
void list_calls(Program& program);

/// Runs the calls in order.
void run_calls(const Program& program, std::byte* const* values, std::byte* arena, void* stream);

/// The value table that a step's kernel is bound to, for the values of a program.
class BoundValues {
 public:
  BoundValues(const Step& step, std::byte* const* values);
  std::byte* const* data() const { return own_.empty() ? all_ : own_.data(); }

 private:
  std::byte* const* const all_;
  std::vector<std::byte*> own_;
};

}  // namespace tenon
