// Earliest times go forward through the graph, latest ones back.
#include "plan/times.h"

#include <algorithm>
#include <utility>

#include "base/str.h"

namespace tenon {
namespace {

// Duration of a contraction where that of another step is 1: several launches' time.
constexpr int kContractionTime = 4;

void sort_out(std::vector<int>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

Times::Times(const Program& program, const std::vector<std::vector<int>>& before)
    : before_(before),
      node_(program.steps.size()),
      time_(program.steps.size(), 1),
      is_map_(program.steps.size()) {
  for (int s = 0; s < size(); ++s) {
    const RegionKind kind = program.steps[at(s)].region.kind;
    node_[at(s)] = s;
    is_map_[at(s)] = kind == RegionKind::Map || kind == RegionKind::Joined ? 1 : 0;
    if (kind == RegionKind::Contraction) time_[at(s)] = kContractionTime;
  }
  update();
}

bool Times::serves_no_other(int a, int b) const {
  return std::includes(after_[at(b)].begin(), after_[at(b)].end(), after_[at(a)].begin(),
                       after_[at(a)].end());
}

bool Times::reaches(int from, int to) const {
  std::vector<char> seen(node_.size(), 0);
  std::vector<int> stack{from};
  while (!stack.empty()) {
    const int n = stack.back();
    stack.pop_back();
    if (n == to) return true;
    for (int next : after_[at(n)])
      if (!std::exchange(seen[at(next)], 1)) stack.push_back(next);
  }
  return false;
}

void Times::contract(int a, int b) {
  for (int& n : node_)
    if (n == b) n = a;
  update();
}

void Times::contract_in_a_row(int first, int second) {
  time_[at(first)] += time_[at(second)];
  contract(first, second);
}

// Fills in who waits for whom and the earliest times; gives the nodes in an order in which none
// comes before what it needs.
std::vector<int> Times::find_order() {
  after_.assign(node_.size(), {});
  needs_.assign(node_.size(), {});
  for (int s = 0; s < size(); ++s)
    for (int b : before_[at(s)])
      if (node(b) != node(s)) needs_[at(node(s))].push_back(node(b));
  std::vector<int> waiting(node_.size(), 0), order;
  for (int n = 0; n < size(); ++n) {
    sort_out(needs_[at(n)]);
    for (int b : needs_[at(n)]) after_[at(b)].push_back(n);
    waiting[at(n)] = static_cast<int>(needs_[at(n)].size());
    if (node(n) == n && needs_[at(n)].empty()) order.push_back(n);
  }
  earliest_.assign(node_.size(), 0);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const int n = order[k], done = earliest(n) + time(n);
    for (int next : after_[at(n)]) {
      earliest_[at(next)] = std::max(earliest(next), done);
      if (--waiting[at(next)] == 0) order.push_back(next);
    }
  }
  return order;
}

void Times::update() {
  const std::vector<int> order = find_order();
  int end = 0;
  for (int n : order) end = std::max(end, earliest(n) + time(n));
  latest_.assign(node_.size(), end);
  for (auto n = order.rbegin(); n != order.rend(); ++n) {
    for (int next : after_[at(*n)]) latest_[at(*n)] = std::min(latest(*n), latest(next));
    latest_[at(*n)] -= time(*n);
  }
  std::vector<char> waits(node_.size(), 1);
  for (auto n = order.rbegin(); n != order.rend(); ++n) {
    for (int next : after_[at(*n)])
      if (is_map_[at(next)] == 0 || waits[at(next)] == 0) waits[at(*n)] = 0;
    if (waits[at(*n)] == 0) latest_[at(*n)] = earliest(*n);
  }
}

void replace_steps(Program& program, std::vector<std::vector<int>>& before,
                   const std::vector<std::vector<int>>& groups,
                   const std::function<Step(const std::vector<int>&)>& made) {
  std::vector<Step> steps;
  std::vector<int> number(program.steps.size(), -1);
  for (const std::vector<int>& group : groups) {
    for (int s : group) number[at(s)] = static_cast<int>(steps.size());
    steps.push_back(made(group));
  }
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    if (number[s] < 0) {
      number[s] = static_cast<int>(steps.size());
      steps.push_back(std::move(program.steps[s]));
    }
  std::vector<std::vector<int>> waits(steps.size());
  for (std::size_t s = 0; s < before.size(); ++s)
    for (int b : before[s])
      if (number[at(b)] != number[s]) waits[at(number[s])].push_back(number[at(b)]);
  for (std::vector<int>& list : waits) sort_out(list);
  program.steps = std::move(steps);
  before = std::move(waits);
}

void merge(std::vector<ValueId>& to, const std::vector<ValueId>& from) {
  for (ValueId id : from)
    if (std::find(to.begin(), to.end(), id) == to.end()) to.push_back(id);
}

void note(Region& region, const std::string& text) {
  region.why += cat(region.why.empty() ? "" : "; ", text);
}

}  // namespace tenon
