// SizedPlan: a plan as a function of one size of its graph, usually the batch size.
//
// It is learned from two plans of one graph at two sizes that have the same structure: every number
// in them (extents, strides, offsets, bytes) is a line through its two values. It is used once a
// third plan agrees with the prediction. Then numbers are computed from the lines, engines prepare
// kernels again, steps are ordered and memory is laid out; graph passes and fusion do not run.
//
// The result is the program that planning would have made. Passes decide by comparing sizes with
// each other and with constants. Comparisons between sizes give the same answer as long as no two
// different sizes or numbers of the graph become equal by chance (a batch of 10 beside 10 classes,
// a batch of 1 beside a broadcast axis, a batch of 8 beside a sum divided by 8). Comparisons with
// constants are recorded in the plan (Program::limits). A size at which two expressions of the
// graph become equal, or a limit is crossed, is refused and planned. So a result does not depend on
// the sizes that came before.
//
// On a GPU passes also decide by estimated microseconds, which cannot be recorded as limits. There
// a plan serves only sizes of one class, between sizes that were planned
// (run/tuning/known_plans.cpp).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/form.h"
#include "plan/program/program.h"

namespace tenon {

class SizedPlan {
 public:
  /// Learns from two plans of graphs with equal `fixed`; null if the plans differ in structure.
  static std::shared_ptr<const SizedPlan> learn(const GraphForm& a, const Program& plan_a,
                                                const GraphForm& b, const Program& plan_b);

  /// The size at which this graph has the sizes of `form`; none if there is no such size, or if
  /// planning may decide differently there.
  std::optional<std::int64_t> size_of(const GraphForm& form) const;

  /// Whether a plan made at this size equals the prediction.
  bool predicts(std::int64_t size, const Program& plan) const;

  /// The program at that size. `options` must be those of the plans that it was learned from.
  std::shared_ptr<const Program> at_size(std::int64_t size, const PlanOptions& options) const;

  /// Approximate bytes of host memory.
  std::int64_t bytes() const;

 private:
  /// A number that depends on the size, by its index among all numbers.
  struct Line {
    std::uint32_t place = 0;
    std::int64_t base = 0, slope = 0;
    std::int64_t at(std::int64_t size) const { return base + slope * size; }
  };
  /// All numbers, some of which depend on the size.
  struct Lines {
    std::vector<std::int64_t> first;  // their values at the first size
    std::vector<Line> varying;
  };
  /// An extent, or the product of neighbouring extents of a tensor, as a line in the size. Tensors
  /// with two axes that change are left to planning.
  struct Extent {
    std::int64_t base = 0, slope = 0;
    bool operator<(const Extent& o) const {
      return base != o.base ? base < o.base : slope < o.slope;
    }
  };
  /// A recorded comparison with a constant, which must have the same outcome.
  struct Limit {
    Line size;
    SizeLimit of;
    bool holds = false;
  };
  struct Sample {
    std::int64_t size = 0;
    const Program* plan = nullptr;
  };

  static std::optional<Lines> fit(const std::vector<std::int64_t>& a,
                                  const std::vector<std::int64_t>& b, std::int64_t size_a,
                                  std::int64_t size_b);
  bool learn_program(const Sample& a, const Sample& b);
  bool learn_limits(const Sample& a, const Sample& b);
  bool learn_extents(const GraphForm& form);
  void list_extents(const std::vector<Extent>& all);
  bool has_same_choices_at(std::int64_t size) const;

  std::size_t symbol_ = 0;  // index of the varying size among the graph's sizes
  Lines graph_;
  std::vector<std::int64_t> constants_;  // numbers and extents that never change, in order
  std::vector<Extent> extents_;          // extents that change
  std::vector<Limit> limits_;
  Program plan_;               // the plan of the first size, with steps in planning order
  std::vector<Line> numbers_;  // varying numbers of the plan
  struct Inner {               // a body of a loop or a branch
    std::size_t step = 0, body = 0;
    std::shared_ptr<const SizedPlan> plan;
  };
  std::vector<Inner> inner_;
};

/// Approximate bytes of host memory that a region takes.
std::int64_t footprint(const Region& region);

}  // namespace tenon
