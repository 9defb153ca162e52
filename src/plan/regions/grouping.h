// Groups of items while fusion merges them: the state that its passes share.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "plan/graph/plan_graph.h"
#include "plan/regions/groups.h"

namespace tenon {

constexpr std::size_t kMaxItems = 48;  // bounds the tile registers of a region

class Grouping {
 public:
  /// Without `merges` nothing waits for anything, because no groups are merged.
  Grouping(const Lowered& graph, bool merges);

  int item_count() const { return static_cast<int>(graph_.items.size()); }
  const Item& item(int k) const { return graph_.items[at(k)]; }
  bool stores_rounded() const { return graph_.stores_rounded; }

  int group_count() const { return static_cast<int>(fused_.groups.size()); }
  Group& group(int number) { return fused_.groups[at(number)]; }
  const Group& group(int number) const { return fused_.groups[at(number)]; }
  /// The number of the item's group; -1 for leaves and numbers.
  int owner(int item) const { return fused_.group_of[at(item)]; }
  Group& group_of(int item) { return group(owner(item)); }
  Role& role(int item) { return fused_.role[at(item)]; }
  Role role(int item) const { return fused_.role[at(item)]; }
  void add_limit(SizeLimit limit) { fused_.limits.push_back(limit); }
  void note(int number, std::string text);

  /// Opens a group with one item.
  Group& open(int item, RegionKind kind);
  /// Adds an item to a group, at its end.
  void add(int number, int item);
  /// Moves an item from its group to another one, in order.
  void move(int item, int to);
  /// Moves all items and notes of group `from` to group `to`.
  void absorb(int to, int from);

  /// Puts two items' groups next to each other in the order. Returns false, without a change, if a
  /// third group is or may be between them.
  bool make_adjacent(int a, int b) { return waits_.merge(waits_.node(a), waits_.node(b)); }
  /// Whether neither of two groups computes what the reference reads.
  bool external(const Ref& arg, int a, int b) const;
  /// Whether two groups may share a loop nest although it assigns variables: they must read exactly
  /// the element that an assignment writes.
  bool assignments_allow(int a, int b) const;

  /// The groups that have items.
  Fused take();

 private:
  bool reads_assigned(int item, const Item& assignment) const;

  const Lowered& graph_;
  PlanGraph waits_;  // over items, merged as their groups are merged
  Fused fused_;
};

}  // namespace tenon
