// A graph of nodes that wait for each other, with merging of nodes, in a topological order that is
// kept up to date.
//
// Each node has a position in the order. Whether a third node stands between two nodes is a search
// among the positions between them, from both ends at once (Pearce and Kelly, "A dynamic
// topological sort algorithm for directed acyclic graphs", 2007). A search ends after a fixed
// number of edges with the answer "maybe", so a question costs no more in a larger graph. Merging
// moves only nodes that the search has visited.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/index.h"
#include "base/small_int_vector.h"

namespace tenon {

/// Lists of numbers by number, for example the readers of each value.
using Lists = std::vector<std::vector<int>>;

/// Sorts a list and removes duplicates.
template <class List>
void sort_out(List& list) {
  if (list.size() < 2 || std::is_sorted(list.begin(), list.end(), std::less_equal<>())) return;
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

class PlanGraph {
 public:
  explicit PlanGraph(int nodes);
  /// From lists of the nodes that each node waits for.
  explicit PlanGraph(const Lists& before);

  /// Makes `to` wait for `from`. Before sort(): in any order. After sort(): `to` must not reach
  /// `from`, else throws InternalError.
  void add_edge(int from, int to);
  /// Orders all nodes, as close to their numbers as dependencies allow. Throws InternalError if
  /// there is a cycle.
  void sort();

  int size() const { return static_cast<int>(merged_into_.size()); }
  /// The node that `member` has been merged into.
  int node(int member) const {
    while (merged_into_[at(member)] != member)
      member = merged_into_[at(member)] = merged_into_[at(merged_into_[at(member)])];
    return member;
  }
  /// The position in the order: smaller for a node than for the nodes that wait for it.
  std::int64_t place(int node) const { return place_[at(node)]; }
  /// The nodes that directly wait for the node, and those that the node directly waits for; each
  /// once.
  const SmallIntVector& after(int node) const { return after_[at(node)]; }
  const SmallIntVector& needs(int node) const { return needs_[at(node)]; }

  /// Whether `to` waits for `from`, directly or through other nodes; every node reaches itself.
  /// Returns `unknown` if the search gave up.
  bool reaches(int from, int to, bool unknown = true);
  bool depends(int a, int b) { return place(a) < place(b) ? reaches(a, b) : reaches(b, a); }
  /// Whether a third node is or may be on a path between the two, in either direction.
  bool is_between(int a, int b);
  /// Merges b into a. Returns false, without a change, if a third node is or may be between them.
  bool merge(int a, int b);

 private:
  enum class Path : std::uint8_t { None, Some, Unknown };
  Path search(int from, int to, bool direct_too);
  bool visit(int node, bool forward, int from, int to, bool direct_too);
  void take_neighbours(int a, int b);
  void unlink(int node);
  void insert_after(int node, int before);
  void replace(int old_node, int by);
  void move_after(int node, std::vector<int>& moved);
  void renumber();

  mutable std::vector<int> merged_into_;       // paths are shortened by look-ups
  std::vector<SmallIntVector> after_, needs_;  // edges of the present nodes; ascending after sort()
  std::vector<std::int64_t> place_;
  std::vector<int> next_, previous_;  // linked list in order; the last entry is both ends
  // State of the last search: nodes visited from either end, and marks valid until the next search.
  std::vector<int> forward_, backward_;
  std::vector<int> both_;  // scratch list for merging neighbours
  std::vector<std::uint32_t> mark_;
  std::uint32_t epoch_ = 0;
  bool forward_done_ = false, sorted_ = false;
};

}  // namespace tenon
