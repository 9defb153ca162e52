// SizedPlan: a plan as a function of one size of its graph, the batch as a rule.
//
// It is learned from two plans of one graph at two sizes that came out alike: every number in them
// (extents, strides, offsets, bytes) is a line through its two values. Once a third plan has come
// out as foretold it is used: numbers are read off, engines are asked and prepare kernels anew,
// steps are ordered and memory is laid out; passes over the graph and fusion are not run.
//
// The program is the one that planning would have made. Passes decide by comparing sizes with each
// other and with numbers of their own. The first turn out the same wherever no two different sizes
// or numbers of the graph happen to be equal (a batch of 10 beside 10 classes, a batch of 1 beside
// what broadcasts, a batch of 8 beside a sum that is divided by 8); the second are listed in the
// plan (Program::limits). A size at which two expressions of the graph meet, or a limit is passed,
// is refused, and planned. So a result does not depend on which sizes came before.
//
// On a GPU passes decide by microseconds too, which are no limits that could be listed: a plan
// serves sizes of one class there, between such as were planned (run/known_plans.cpp).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/form.h"
#include "plan/program.h"

namespace tenon {

class SizedPlan {
 public:
  /// From two plans of graphs of equal `fixed`; null where they did not come out alike.
  static std::shared_ptr<const SizedPlan> learn(const GraphForm& a, const Program& plan_a,
                                                const GraphForm& b, const Program& plan_b);

  /// The size at which its graph has these sizes; none where it never does, or planning may decide
  /// otherwise there.
  std::optional<std::int64_t> size_of(const GraphForm& form) const;

  /// Whether a plan that was made at the size is the one that it would give.
  bool foretells(std::int64_t size, const Program& plan) const;

  /// The program at that size. `options` are those of the plans that it was learned from.
  std::shared_ptr<const Program> at_size(std::int64_t size, const PlanOptions& options) const;

  /// Bytes of host memory that it takes, about.
  std::int64_t bytes() const;

 private:
  /// A number that depends on the size, by its place among all.
  struct Line {
    std::uint32_t place = 0;
    std::int64_t base = 0, slope = 0;
    std::int64_t at(std::int64_t size) const { return base + slope * size; }
  };
  /// Numbers of which some depend on the size.
  struct Lines {
    std::vector<std::int64_t> first;  // as they were in the first
    std::vector<Line> varying;
  };
  /// An extent, or the product of neighbouring ones of a tensor: a line in the size. Tensors of
  /// which two axes change with it are left to planning.
  struct Extent {
    std::int64_t base = 0, slope = 0;
    bool operator<(const Extent& o) const {
      return base != o.base ? base < o.base : slope < o.slope;
    }
  };
  /// A decision by a limit, which must come out as it did.
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
  bool is_alike_at(std::int64_t size) const;

  std::size_t symbol_ = 0;  // which of the graph's sizes is the size
  Lines graph_;
  std::vector<std::int64_t> constants_;  // extents that never change and numbers, in order
  std::vector<Extent> extents_;          // those that do
  std::vector<Limit> limits_;
  Program plan_;               // of the first size, steps as numbered before they were ordered
  std::vector<Line> numbers_;  // of the plan
  struct Inner {               // a body of a loop or a branch
    std::size_t step = 0, body = 0;
    std::shared_ptr<const SizedPlan> plan;
  };
  std::vector<Inner> inner_;
};

/// Bytes of host memory that a region takes, about.
std::int64_t footprint(const Region& region);

}  // namespace tenon
