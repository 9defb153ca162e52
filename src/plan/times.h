// Steps as a graph with times, in units of a launch: what waits for what, when a step may begin and
// when it must. Steps may be contracted to one, side by side or in a row.
//
// For passes between fusion and the choice of engines; it knows no kernels, only kinds of regions.
#pragma once

#include <functional>
#include <vector>

#include "base/index.h"
#include "plan/program.h"

namespace tenon {

/// The steps, of which some are contracted to one node: that of its first member.
class Times {
 public:
  /// `before` must outlive it.
  Times(const Program& program, const std::vector<std::vector<int>>& before);

  int node(int step) const { return node_[at(step)]; }
  /// When a node may begin at the earliest, and at the latest if nothing is to end later. What
  /// other steps than maps wait for is not put off at all: there may be more of them than run side
  /// by side.
  int earliest(int node) const { return earliest_[at(node)]; }
  int latest(int node) const { return latest_[at(node)]; }
  /// How long it takes.
  int time(int node) const { return time_[at(node)]; }
  /// Nodes that wait for it, and that it waits for, directly.
  const std::vector<int>& after(int node) const { return after_[at(node)]; }
  const std::vector<int>& needs(int node) const { return needs_[at(node)]; }
  /// Whether a delay of the node delays what waits for it, and so the whole.
  bool is_urgent(int node) const {
    return earliest(node) == latest(node) && !after_[at(node)].empty();
  }
  /// Whether all that waits for a waits for b too.
  bool serves_no_other(int a, int b) const;
  /// Whether `to` waits for `from`, directly or through others; every node waits for itself.
  bool reaches(int from, int to) const;
  bool depends(int a, int b) const { return reaches(a, b) || reaches(b, a); }

  /// Of two that do not depend on one another.
  void contract(int a, int b);
  /// Of two of which the second waits for the first, and no third stands between.
  void contract_in_a_row(int first, int second);

 private:
  int size() const { return static_cast<int>(node_.size()); }
  void update();
  std::vector<int> find_order();

  const std::vector<std::vector<int>>& before_;
  std::vector<int> node_, time_;
  std::vector<char> is_map_;
  std::vector<int> earliest_, latest_;
  std::vector<std::vector<int>> after_, needs_;
};

/// Makes each group of steps one, by `made` of its members; the others stay. Rewrites `before` (for
/// each step, the steps it waits for) likewise.
void replace_steps(Program& program, std::vector<std::vector<int>>& before,
                   const std::vector<std::vector<int>>& groups,
                   const std::function<Step(const std::vector<int>&)>& made);

/// Adds the values that are not there yet.
void merge(std::vector<ValueId>& to, const std::vector<ValueId>& from);

/// Adds to what is said about a region.
void note(Region& region, const std::string& text);

}  // namespace tenon
