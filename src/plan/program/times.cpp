// Earliest starts are computed forward through the graph; the remaining time after a node is
// computed backward.
#include "plan/program/times.h"

#include <algorithm>
#include <utility>

namespace tenon {
namespace {

// Minimum time between a short vector and its reader. A short vector is not delayed further.
constexpr int kAhead = 4 * kContractionTime;

// Whether delaying a step keeps no large value in memory. A step that reads a few elements of a
// large value would keep the whole value until it runs.
bool makes_short_of_short(const Region& region, std::span<const Value> values) {
  return region.kind == RegionKind::Map && is_short(region.map) &&
         std::all_of(region.reads.begin(), region.reads.end(),
                     [values](ValueId id) { return values[at(id)].shape.numel() <= kShortVector; });
}

}  // namespace

bool is_short(const MapProgram& map) {
  return map.reduces.empty() && !map.has_rows && map.space.numel() <= kShortVector;
}

Times::Times(const Program& program, const Lists& before)
    : graph_(before),
      time_(program.steps.size(), 1),
      earliest_(program.steps.size(), 0),
      tail_(program.steps.size(), 0),
      is_map_(program.steps.size()),
      may_wait_(program.steps.size(), 1),
      is_short_(program.steps.size()) {
  const int steps = static_cast<int>(program.steps.size());
  std::vector<int> order(at(steps));
  for (int s = 0; s < steps; ++s) {
    const RegionKind kind = program.steps[at(s)].region.kind;
    is_map_[at(s)] = kind == RegionKind::Map || kind == RegionKind::Joined ? 1 : 0;
    if (kind == RegionKind::Contraction) time_[at(s)] = kContractionTime;
    is_short_[at(s)] = makes_short_of_short(program.steps[at(s)].region, program.values) ? 1 : 0;
    order[at(s)] = s;
  }
  std::sort(order.begin(), order.end(),
            [this](int a, int b) { return graph_.place(a) < graph_.place(b); });
  for (int n : order) {
    earliest_[at(n)] = begin_of(n);
    end_ = std::max(end_, earliest(n) + time(n));
  }
  for (auto n = order.rbegin(); n != order.rend(); ++n) update_latest_end(*n);
}

int Times::latest(int node) {
  if (may_wait_[at(node)] != 0) return end_ - tail_[at(node)];
  // Steps without operands run before everything else.
  if (is_short_[at(node)] == 0 || needs(node).empty()) return earliest(node);
  int read = end_;
  for (const int reader : after(node)) read = std::min(read, earliest(reader));
  return std::max(earliest(node), read - kAhead - time(node));
}

bool Times::followers_also_wait_for(int a, int b) {
  const SmallIntVector &of_a = after(a), &of_b = after(b);
  return of_a.size() <= of_b.size() &&
         std::includes(of_b.begin(), of_b.end(), of_a.begin(), of_a.end());
}

bool Times::contract(int a, int b) {
  const bool alike = time(a) == time(b) && is_map_[at(a)] == is_map_[at(b)];
  const bool same_begin = alike && earliest(a) == earliest(b);
  const bool same_end =
      alike && tail_[at(a)] == tail_[at(b)] && may_wait_[at(a)] == may_wait_[at(b)];
  if (!graph_.merge(a, b)) return false;
  is_short_[at(a)] = std::min(is_short_[at(a)], is_short_[at(b)]);
  // If start and end agree, nothing changes for other nodes, and a merged node has many neighbours
  // to update.
  if (!same_begin) delay_starts(a);
  if (!same_end) advance_ends(a);
  return true;
}

bool Times::contract_in_a_row(int first, int second) {
  if (!graph_.merge(first, second)) return false;
  is_short_[at(first)] = 0;
  time_[at(first)] += time_[at(second)];
  delay_starts(first);
  advance_ends(first);
  return true;
}

int Times::begin_of(int n) {
  int begin = 0;
  for (int b : needs(n)) begin = std::max(begin, earliest(b) + time(b));
  return begin;
}

// Updates a node's latest end from the nodes that wait for it.
void Times::update_latest_end(int n) {
  int tail = 0;
  char may_wait = 1;
  for (int next : after(n)) {
    tail = std::max(tail, tail_[at(next)]);
    if (is_map_[at(next)] == 0) may_wait = 0;
    may_wait = std::min(may_wait, may_wait_[at(next)]);
  }
  tail_[at(n)] = tail + time(n);
  may_wait_[at(n)] = may_wait;
}

// Propagates later starts forward from a merged node.
void Times::delay_starts(int n) {
  const auto later = [this](int a, int b) { return graph_.place(a) > graph_.place(b); };
  std::vector<int> heap{n};
  bool first = true;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const int x = heap.back();
    heap.pop_back();
    const int begin = begin_of(x);
    if (!std::exchange(first, false) && begin == earliest(x)) continue;
    earliest_[at(x)] = begin;
    end_ = std::max(end_, begin + time(x));
    for (int next : after(x)) {
      heap.push_back(next);
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
}

// Propagates earlier ends backward from a merged node.
void Times::advance_ends(int n) {
  const auto sooner = [this](int a, int b) { return graph_.place(a) < graph_.place(b); };
  std::vector<int> heap{n};
  bool first = true;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), sooner);
    const int x = heap.back();
    heap.pop_back();
    const int tail = tail_[at(x)];
    const char may_wait = may_wait_[at(x)];
    update_latest_end(x);
    if (!std::exchange(first, false) && tail == tail_[at(x)] && may_wait == may_wait_[at(x)])
      continue;
    for (int need : needs(x)) {
      heap.push_back(need);
      std::push_heap(heap.begin(), heap.end(), sooner);
    }
  }
}

}  // namespace tenon
