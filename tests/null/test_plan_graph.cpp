// PlanGraph against plain searches over the same edges, with random merges.
#include "plan/graph/plan_graph.h"

#include <doctest/doctest.h>

#include <tenon/error.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/philox.h"

using namespace tenon;

namespace {

/// Nodes and edges as sets.
class Plain {
 public:
  explicit Plain(int nodes) : node_(at(nodes)), after_(at(nodes)) {
    for (int n = 0; n < nodes; ++n) node_[at(n)] = n;
  }
  void add_edge(int from, int to) { after_[at(from)].insert(to); }
  int node(int n) const { return node_[at(n)]; }
  /// Whether a path of at least this many edges leads from one to the other.
  bool reaches(int from, int to, bool direct) const {
    std::set<int> seen;
    std::vector<int> stack;
    for (int next : next_of(from))
      if (next != to || direct) stack.push_back(next);
    while (!stack.empty()) {
      const int n = stack.back();
      stack.pop_back();
      if (n == to) return true;
      if (!seen.insert(n).second) continue;
      for (int next : next_of(n)) stack.push_back(next);
    }
    return false;
  }
  void merge(int a, int b) {
    for (int& n : node_)
      if (n == b) n = a;
  }
  std::set<int> next_of(int n) const {
    std::set<int> out;
    for (std::size_t m = 0; m < node_.size(); ++m)
      if (node_[m] == n)
        for (int next : after_[m])
          if (node(next) != n) out.insert(node(next));
    return out;
  }

 private:
  std::vector<int> node_;
  std::vector<std::set<int>> after_;
};

void check_order(PlanGraph& graph, const Plain& plain) {
  for (int n = 0; n < graph.size(); ++n) {
    if (graph.node(n) != n) continue;
    const std::set<int> next = plain.next_of(n);
    CHECK(std::equal(graph.after(n).begin(), graph.after(n).end(), next.begin(), next.end()));
    for (int m : next) CHECK(graph.place(n) < graph.place(m));
  }
}

}  // namespace

TEST_CASE("plan graph: merges nodes that have no node between them, and keeps an order") {
  constexpr int kNodes = 40;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::uint64_t count = 0;
    const auto below = [&](int n) {
      return static_cast<int>(philox(seed, count++, 9).v[0] % static_cast<std::uint32_t>(n));
    };
    // Node numbers are unrelated to the order.
    std::vector<int> number;
    for (int n = 0; n < kNodes; ++n) number.insert(number.begin() + below(n + 1), n);
    PlanGraph graph(kNodes);
    Plain plain(kNodes);
    const auto edge = [&](int a, int b) {
      graph.add_edge(a, b);
      plain.add_edge(a, b);
    };
    for (int k = 0; k < 55; ++k)
      if (const int a = below(kNodes), b = below(kNodes); a < b) edge(number[at(a)], number[at(b)]);
    graph.sort();
    check_order(graph, plain);
    for (int k = 0; k < 60; ++k) {
      const int a = graph.node(below(kNodes)), b = graph.node(below(kNodes));
      if (a == b) continue;
      const bool between = plain.reaches(a, b, false) || plain.reaches(b, a, false);
      CHECK(graph.is_between(a, b) == between);
      CHECK(graph.reaches(a, b) == plain.reaches(a, b, true));
      CHECK(graph.depends(a, b) == (plain.reaches(a, b, true) || plain.reaches(b, a, true)));
      if (below(4) == 0 && !plain.reaches(b, a, true)) edge(a, b);
      if (below(3) != 0 || plain.reaches(a, b, false) || plain.reaches(b, a, false)) continue;
      CHECK(graph.merge(a, b));
      plain.merge(a, b);
      CHECK(graph.node(b) == a);
      check_order(graph, plain);
    }
  }
}

TEST_CASE("plan graph: repeated moves to one position keep the order") {
  constexpr int kNodes = 400;
  PlanGraph graph(kNodes);
  graph.add_edge(0, 1);
  graph.sort();
  for (int n = 2; n < kNodes; ++n) graph.add_edge(n, n - 1);  // each before the one before it
  for (int n = 2; n < kNodes; ++n) CHECK(graph.place(n) < graph.place(n - 1));
}

TEST_CASE("plan graph: cycles are refused, and searches end") {
  PlanGraph circle(2);
  circle.add_edge(0, 1);
  circle.add_edge(1, 0);
  CHECK_THROWS_AS(circle.sort(), InternalError);

  constexpr int kNodes = 100000;
  PlanGraph row(kNodes);
  for (int n = 1; n < kNodes; ++n) row.add_edge(n - 1, n);
  row.add_edge(0, kNodes - 1);
  row.sort();
  CHECK_THROWS_AS(row.add_edge(kNodes - 1, 0), InternalError);
  CHECK(row.reaches(0, kNodes / 2));  // "maybe": the search is limited
  CHECK_FALSE(row.reaches(0, kNodes / 2, false));
  CHECK_FALSE(row.merge(0, kNodes - 1));
  CHECK(row.merge(0, 1));
}
