// Steps as a graph with times, in units of a launch: what waits for what, when a step may begin and
// when it must. Steps may be contracted to one, side by side or in a row; times change only where a
// contraction is felt.
//
// For passes between fusion and the choice of engines; it knows no kernels, only kinds of regions.
#pragma once

#include <vector>

#include "plan/plan_graph.h"
#include "plan/program.h"

namespace tenon {

/// Duration of a contraction where that of another step is 1: several launches' time.
inline constexpr int kContractionTime = 4;

/// Elements of a short vector at most.
inline constexpr std::int64_t kShortVector = 4096;
/// Whether a map computes few elements, each by itself.
bool is_short(const MapProgram& map);

/// The steps, of which some are contracted to one node: that of its first member.
class Times {
 public:
  Times(const Program& program, const Lists& before);

  PlanGraph& graph() { return graph_; }
  int node(int step) const { return graph_.node(step); }
  /// When a node may begin at the earliest, and at the latest if nothing is to end later. What
  /// other steps than maps wait for is not put off: there may be more of them than run side by
  /// side. Only short vectors are, as long as what reads them is far away.
  int earliest(int node) const { return earliest_[at(node)]; }
  int latest(int node);
  /// How long it takes.
  int time(int node) const { return time_[at(node)]; }
  /// Nodes that wait for it, and that it waits for, directly.
  const SmallIntVector& after(int node) const { return graph_.after(node); }
  const SmallIntVector& needs(int node) const { return graph_.needs(node); }
  /// Whether all that waits for a waits for b too.
  bool serves_no_other(int a, int b);

  /// Of two that do not depend on one another; false, and nothing is done, where they may.
  bool contract(int a, int b);
  /// Of two of which the second waits for the first; false where a third may stand between.
  bool contract_in_a_row(int first, int second);

 private:
  void begin_later(int node);
  void end_sooner(int node);
  void put_off(int node);
  int begin_of(int node);

  PlanGraph graph_;
  std::vector<int> time_, earliest_;
  std::vector<int> tail_;  // from its begin to the end of all that waits for it
  std::vector<char> is_map_;
  std::vector<char> may_wait_;  // only maps that may wait as well wait for it
  std::vector<char> is_short_;  // makes short vectors of such
  int end_ = 0;
};

}  // namespace tenon
