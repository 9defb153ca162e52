// Nodes that wait for one another, merged step by step, in an order that is kept up to date.
//
// Each node has a place in a topological order. Whether a third node stands between two is then a
// search among the places between theirs, from both ends at once (Pearce and Kelly, "A dynamic
// topological sort algorithm for directed acyclic graphs", 2007); it ends after a fixed number of
// edges with "there may be one", so that no question costs more in a larger graph. Merging moves
// only what the search has found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/index.h"
#include "base/small_int_vector.h"

namespace tenon {

/// Who writes and who reads each value, or what else is kept as lists by number.
using Lists = std::vector<std::vector<int>>;

/// In order, each once.
template <class List>
void sort_out(List& list) {
  if (list.size() < 2 || std::is_sorted(list.begin(), list.end(), std::less_equal<>())) return;
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

class PlanGraph {
 public:
  explicit PlanGraph(int nodes);
  /// From lists of what each node waits for.
  explicit PlanGraph(const Lists& before);

  /// `to` waits for `from`. Before sort() in any order; later only where `to` does not reach
  /// `from`, else throws InternalError.
  void add_edge(int from, int to);
  /// Places all nodes, as far as may be by their numbers. Throws InternalError for a circle.
  void sort();

  int size() const { return static_cast<int>(merged_into_.size()); }
  /// The node that a node has become part of.
  int node(int member) const {
    while (merged_into_[at(member)] != member)
      member = merged_into_[at(member)] = merged_into_[at(merged_into_[at(member)])];
    return member;
  }
  /// Grows from what others wait for to what waits for them.
  std::int64_t place(int node) const { return place_[at(node)]; }
  /// Nodes that wait for it, and that it waits for, directly; each once.
  const SmallIntVector& after(int node) const { return after_[at(node)]; }
  const SmallIntVector& needs(int node) const { return needs_[at(node)]; }

  /// Whether `to` waits for `from`, directly or through others; every node waits for itself.
  /// `unknown` is the answer of a search that was given up.
  bool reaches(int from, int to, bool unknown = true);
  bool depends(int a, int b) { return place(a) < place(b) ? reaches(a, b) : reaches(b, a); }
  /// Whether a third node waits for one of the two and is waited for by the other, or may.
  bool is_between(int a, int b);
  /// Makes two nodes one, the first; false, and nothing is done, where a third stands between.
  bool merge(int a, int b);

 private:
  enum class Path : std::uint8_t { None, Some, Unknown };
  Path search(int from, int to, bool direct_too);
  bool visit(int node, bool forward, int from, int to, bool direct_too);
  void take_neighbours(int a, int b);
  void unlink(int node);
  void link_behind(int node, int before);
  void replace(int old_node, int by);
  void put_behind(int node, std::vector<int>& moved);
  void renumber();

  mutable std::vector<int> merged_into_;       // shortened when looked through
  std::vector<SmallIntVector> after_, needs_;  // of nodes as they are now; ascending behind sort()
  std::vector<std::int64_t> place_;
  std::vector<int> next_, previous_;  // in the order; the last entry stands for both ends
  // Of searches: what the last one has seen from either end, and marks that hold while it lasts.
  std::vector<int> forward_, backward_;
  std::vector<int> both_;  // a list in the making
  std::vector<std::uint32_t> mark_;
  std::uint32_t epoch_ = 0;
  bool forward_done_ = false, sorted_ = false;
};

}  // namespace tenon
