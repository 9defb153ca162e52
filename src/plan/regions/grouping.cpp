// Moves items between groups and keeps what waits for what.
#include "plan/regions/grouping.h"

#include <algorithm>
#include <utility>

#include "base/index.h"
#include "plan/regions/rows.h"

namespace tenon {

Grouping::Grouping(const Lowered& graph, bool merges)
    : graph_(graph), waits_(static_cast<int>(graph.items.size())) {
  fused_.groups.reserve(graph.items.size());
  fused_.group_of.assign(graph.items.size(), -1);
  fused_.role.assign(graph.items.size(), Role::Element);
  if (!merges) return;
  for (int k = 0; k < item_count(); ++k) {
    for (const Ref& arg : item(k).args)
      if (!item(arg.item).args.empty()) waits_.add_edge(arg.item, k);  // not leaves
    for (int before : item(k).after) waits_.add_edge(before, k);
  }
  waits_.sort();
}

void Grouping::note(int number, std::string text) {
  if (!text.empty()) group(number).notes.push_back(std::move(text));
}

Group& Grouping::open(int item, RegionKind kind) {
  Group fresh;
  fresh.kind = kind;
  fused_.groups.push_back(std::move(fresh));
  add(group_count() - 1, item);
  return fused_.groups.back();
}

void Grouping::add(int number, int item) {
  fused_.group_of[at(item)] = number;
  group(number).items.push_back(item);
}

void Grouping::move(int item, int to) {
  std::vector<int>& from = group_of(item).items;
  from.erase(std::find(from.begin(), from.end(), item));
  add(to, item);
  std::sort(group(to).items.begin(), group(to).items.end());
}

void Grouping::absorb(int to, int from) {
  Group &theirs = group(to), &ours = group(from);
  for (int k : ours.items) {
    fused_.group_of[at(k)] = to;
    theirs.items.push_back(k);
  }
  std::sort(theirs.items.begin(), theirs.items.end());
  for (std::string& n : ours.notes) theirs.notes.push_back(std::move(n));
  ours = Group{};
}

bool Grouping::external(const Ref& arg, int a, int b) const {
  const int from = owner(arg.item);
  return from != a && from != b && item(arg.item).op != Op::Constant;
}

bool Grouping::assignments_allow(int a, int b) const {
  for (int side : {a, b})
    for (int i : group(side).items) {
      if (item(i).op != Op::Assign) continue;
      for (int other : {a, b})
        for (int j : group(other).items)
          if (reads_assigned(j, item(i))) return false;
    }
  return true;
}

// Whether the item reads other elements of the assigned variable than the one being written.
bool Grouping::reads_assigned(int k, const Item& assignment) const {
  for (const Ref& arg : item(k).args)
    if (arg.item == assignment.target &&
        (!is_map(item(k)) || !identity(arg, item(assignment.target).shape)))
      return true;
  return false;
}

Fused Grouping::take() {
  std::vector<int> index(fused_.groups.size(), -1);
  std::vector<Group> kept;
  kept.reserve(
      static_cast<std::size_t>(std::count_if(fused_.groups.begin(), fused_.groups.end(),
                                             [](const Group& g) { return !g.items.empty(); })));
  for (std::size_t k = 0; k < fused_.groups.size(); ++k) {
    if (fused_.groups[k].items.empty()) continue;
    index[k] = static_cast<int>(kept.size());
    kept.push_back(std::move(fused_.groups[k]));
  }
  fused_.groups = std::move(kept);
  for (int& owner : fused_.group_of)
    if (owner >= 0) owner = index[at(owner)];
  return std::move(fused_);
}

}  // namespace tenon
