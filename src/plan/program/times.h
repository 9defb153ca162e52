// A graph of steps with times, in units of a launch: dependencies, the earliest start and the
// latest start of each step. Steps may be contracted into one node, side by side or one after
// another; times are updated only where a contraction changes them.
//
// For passes between fusion and the choice of engines. It knows kinds of regions, not kernels.
#pragma once

#include <vector>

#include "plan/graph/plan_graph.h"
#include "plan/program/program.h"

namespace tenon {

/// Duration of a contraction in units of another step: the time of several launches.
inline constexpr int kContractionTime = 4;

/// The most elements of a short vector.
inline constexpr std::int64_t kShortVector = 4096;
/// Whether a map computes few elements, each independently.
bool is_short(const MapProgram& map);

/// The steps. Contracted steps are one node: the node of their first member.
class Times {
 public:
  Times(const Program& program, const Lists& before);

  PlanGraph& graph() { return graph_; }
  int node(int step) const { return graph_.node(step); }
  /// The earliest start of a node, and the latest start that does not delay the program's end.
  /// Steps are delayed only if all steps that wait for them are maps, because more steps may be
  /// ready than can run concurrently. Only short vectors are delayed, as long as their readers are
  /// far away.
  int earliest(int node) const { return earliest_[at(node)]; }
  int latest(int node);
  /// Duration of the node.
  int time(int node) const { return time_[at(node)]; }
  /// Nodes that directly wait for the node, and nodes that the node directly waits for.
  const SmallIntVector& after(int node) const { return graph_.after(node); }
  const SmallIntVector& needs(int node) const { return graph_.needs(node); }
  /// Whether everything that waits for a also waits for b.
  bool followers_also_wait_for(int a, int b);

  /// Contracts two independent nodes; returns false, without a change, if one may depend on the
  /// other.
  bool contract(int a, int b);
  /// Contracts two nodes, the second waiting for the first; returns false if a third node may be
  /// between them.
  bool contract_in_a_row(int first, int second);

 private:
  void delay_starts(int node);
  void advance_ends(int node);
  void update_latest_end(int node);
  int begin_of(int node);

  PlanGraph graph_;
  std::vector<int> time_, earliest_;
  std::vector<int> tail_;  // time from its start to the end of all nodes that wait for it
  std::vector<char> is_map_;
  std::vector<char> may_wait_;  // all nodes that wait for it are maps that may be delayed too
  std::vector<char> is_short_;  // computes short vectors from short vectors
  int end_ = 0;
};

}  // namespace tenon
