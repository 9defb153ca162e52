// The order is a linked list whose members carry numbers with gaps. A node that moves takes a
// number between its new neighbours. If no number is left between them, all nodes are renumbered.
#include "plan/graph/plan_graph.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include <tenon/error.h>

namespace tenon {
namespace {

// Edges that one search may cross. This covers all edges of a small network; in a large one it
// bounds the cost of a search.
constexpr int kMostEdges = 2048;

// Inserts into a sorted list.
void insert(SmallIntVector& list, int number) {
  const auto place = std::lower_bound(list.begin(), list.end(), number);
  if (place == list.end() || *place != number) list.insert(place, number);
}
void erase(SmallIntVector& list, int number) {
  const auto place = std::lower_bound(list.begin(), list.end(), number);
  if (place != list.end() && *place == number) list.erase(place);
}

}  // namespace

PlanGraph::PlanGraph(int nodes)
    : merged_into_(at(nodes)),
      after_(at(nodes)),
      needs_(at(nodes)),
      place_(at(nodes) + 1, 0),
      next_(at(nodes) + 1),
      previous_(at(nodes) + 1),
      mark_(at(nodes), 0) {
  for (int n = 0; n < nodes; ++n) merged_into_[at(n)] = n;
}

PlanGraph::PlanGraph(const Lists& before) : PlanGraph(static_cast<int>(before.size())) {
  for (int n = 0; n < size(); ++n)
    for (int b : before[at(n)]) add_edge(b, n);
  sort();
}

void PlanGraph::add_edge(int from, int to) {
  from = node(from);
  to = node(to);
  if (from == to) return;
  if (sorted_ && place(from) > place(to)) {
    // `to` is in front of `from`: nodes in front of `from` that wait for `to` move behind `from`.
    if (search(to, from, true) == Path::Some) throw InternalError("a step would depend on itself");
    std::vector<int> stack{to}, moved;
    ++epoch_;
    mark_[at(to)] = 2 * epoch_;
    while (!stack.empty()) {
      const int n = stack.back();
      stack.pop_back();
      moved.push_back(n);
      if (n == from) throw InternalError("a step would depend on itself");
      for (int next : after_[at(n)])
        if (place(next) <= place(from) && std::exchange(mark_[at(next)], 2 * epoch_) != 2 * epoch_)
          stack.push_back(next);
    }
    move_after(from, moved);
  }
  if (!sorted_) {
    after_[at(from)].push_back(to);
    needs_[at(to)].push_back(from);
    return;
  }
  insert(after_[at(from)], to);
  insert(needs_[at(to)], from);
}

void PlanGraph::sort() {
  // Depth first over each node's operands, in order of their numbers, so that related nodes stay
  // together.
  std::vector<int> order;
  order.reserve(at(size()));
  std::vector<std::size_t> seen(at(size()), 0);  // number of operands already visited, plus 1
  std::vector<int> stack;
  for (int first = 0; first < size(); ++first) {
    if (seen[at(first)] == 0) stack.push_back(first);
    while (!stack.empty()) {
      const int n = stack.back();
      std::size_t& next = seen[at(n)];
      if (next == 0) next = 1;
      if (next > needs_[at(n)].size()) {
        if (next == needs_[at(n)].size() + 1) order.push_back(n);
        next = needs_[at(n)].size() + 2;
        stack.pop_back();
        continue;
      }
      const int need = needs_[at(n)][next++ - 1];
      if (seen[at(need)] == 0) {
        stack.push_back(need);
      } else if (seen[at(need)] < needs_[at(need)].size() + 2) {
        throw InternalError("the steps of a program have a cyclic dependency");
      }
    }
  }
  const int ends = size();
  int last = ends;
  for (int n : order) {
    next_[at(last)] = n;
    previous_[at(n)] = last;
    last = n;
  }
  next_[at(last)] = ends;
  previous_[at(ends)] = last;
  sorted_ = true;
  renumber();
  for (std::vector<SmallIntVector>* lists : {&after_, &needs_})
    for (SmallIntVector& list : *lists) sort_out(list);
}

void PlanGraph::renumber() {
  const int ends = size();
  const std::int64_t room = (std::int64_t{1} << 62) / (ends + 1);
  std::int64_t number = 0;
  for (int n = next_[at(ends)]; n != ends; n = next_[at(n)]) place_[at(n)] = number += room;
}

// Marks the neighbours of a node that are between `from` and `to`. Returns whether one of them
// closes a path.
bool PlanGraph::visit(int n, bool forward, int from, int to, bool direct_too) {
  const std::uint32_t own = 2 * epoch_ + (forward ? 0 : 1), other = 2 * epoch_ + (forward ? 1 : 0);
  const int start = forward ? from : to, goal = forward ? to : from;
  for (int x : (forward ? after_ : needs_)[at(n)]) {
    if (x == goal) {
      if (n == start && !direct_too) continue;
      return true;
    }
    if (forward ? place(x) > place(to) : place(x) < place(from)) continue;
    if (mark_[at(x)] == other) return true;
    if (std::exchange(mark_[at(x)], own) != own) (forward ? forward_ : backward_).push_back(x);
  }
  return false;
}

PlanGraph::Path PlanGraph::search(int from, int to, bool direct_too) {
  forward_.assign(1, from);
  backward_.assign(1, to);
  if (place(from) > place(to)) return Path::None;
  ++epoch_;
  std::size_t next[2] = {0, 0};
  std::size_t work[2] = {0, 0};
  while (true) {
    if (next[0] == forward_.size() || next[1] == backward_.size()) {
      forward_done_ = next[0] == forward_.size();
      return Path::None;
    }
    const std::size_t ahead = work[0] + after_[at(forward_[next[0]])].size();
    const std::size_t back = work[1] + needs_[at(backward_[next[1]])].size();
    const bool forward = ahead <= back;
    work[forward ? 0 : 1] = (forward ? ahead : back) + 1;
    if (work[0] + work[1] > kMostEdges) return Path::Unknown;
    const int n = forward ? forward_[next[0]++] : backward_[next[1]++];
    if (visit(n, forward, from, to, direct_too)) return Path::Some;
  }
}

bool PlanGraph::reaches(int from, int to, bool unknown) {
  if (from == to) return true;
  const Path path = search(from, to, true);
  return path == Path::Some || (path == Path::Unknown && unknown);
}

bool PlanGraph::is_between(int a, int b) {
  return (place(a) < place(b) ? search(a, b, false) : search(b, a, false)) != Path::None;
}

void PlanGraph::unlink(int n) {
  next_[at(previous_[at(n)])] = next_[at(n)];
  previous_[at(next_[at(n)])] = previous_[at(n)];
}

void PlanGraph::insert_after(int n, int before) {
  const int next = next_[at(before)];
  next_[at(before)] = previous_[at(next)] = n;
  previous_[at(n)] = before;
  next_[at(n)] = next;
}

void PlanGraph::replace(int old_node, int by) {
  place_[at(by)] = place_[at(old_node)];
  insert_after(by, old_node);
  unlink(old_node);
}

// Moves nodes behind node `n`, or to the front if the list's end is given, in their current order.
void PlanGraph::move_after(int n, std::vector<int>& moved) {
  std::sort(moved.begin(), moved.end(), [this](int a, int b) { return place(a) < place(b); });
  for (int m : moved) unlink(m);
  const int next = next_[at(n)];
  const std::int64_t low = n == size() ? 0 : place(n);
  const std::int64_t high = next == size() ? low + (std::int64_t{1} << 40) : place(next);
  const auto count = static_cast<std::int64_t>(moved.size());
  const std::int64_t room = (high - low) / (count + 1);
  int last = n;
  std::int64_t number = low;
  for (int m : moved) {
    insert_after(m, last);
    place_[at(m)] = number += room;
    last = m;
  }
  if (room == 0 || number > (std::int64_t{1} << 62) + (std::int64_t{1} << 61)) renumber();
}

bool PlanGraph::merge(int a, int b) {
  const bool in_order = place(a) < place(b);
  const int first = in_order ? a : b, second = in_order ? b : a;
  if (search(first, second, false) != Path::None) return false;
  // The merged node takes the place of the second node, and nodes that wait for the first node move
  // behind it. Or it takes the place of the first node, and nodes that the second node waits for
  // move in front of it.
  std::vector<int>& moved = forward_done_ ? forward_ : backward_;
  moved.erase(moved.begin());
  const int stays = forward_done_ ? second : first;
  unlink(forward_done_ ? first : second);
  if (stays != a) replace(stays, a);
  if (!moved.empty()) move_after(forward_done_ ? a : previous_[at(a)], moved);
  merged_into_[at(b)] = a;
  take_neighbours(a, b);
  return true;
}

// Takes over the neighbours of a node that was merged. Lists stay sorted.
void PlanGraph::take_neighbours(int a, int b) {
  for (const auto& [lists, back] : {std::pair(&after_, &needs_), std::pair(&needs_, &after_)}) {
    SmallIntVector &of_a = (*lists)[at(a)], &of_b = (*lists)[at(b)];
    for (int n : of_b) {
      SmallIntVector& other = (*back)[at(n)];
      erase(other, b);
      if (n != a) insert(other, a);
    }
    both_.clear();
    std::set_union(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(both_));
    of_a.assign(both_.data(), both_.data() + both_.size());
    of_b.clear();
  }
  erase(after_[at(a)], a);
  erase(needs_[at(a)], a);
}

}  // namespace tenon
