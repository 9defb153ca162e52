// Memory of nodes: numbers that no two living ones share, blocks that wander between threads, and a
// bound on what waits.
#include "graph/node_pool.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>
#include <vector>

#include <tenon/eval.h>
#include <tenon/ops.h>

#include "graph/node.h"

using namespace tenon;

TEST_CASE("node pool: living nodes have numbers of their own, which are used again") {
  std::set<std::uint32_t> ever;
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> nodes{zeros({2})};
    while (nodes.size() < 3000) nodes.push_back(nodes.back() + 1);
    std::set<std::uint32_t> now;
    for (const Tensor& t : nodes) {
      CHECK(now.insert(t.node()->number).second);
      ever.insert(t.node()->number);
    }
    CHECK(now.count(0) == 0);
  }
  CHECK(ever.size() < 15000);  // 60,000 were made
}

TEST_CASE("node pool: nodes made by one thread and dropped by others are used again") {
  std::set<std::uint32_t> ever;
  for (int round = 0; round < 40; ++round) {
    std::vector<Tensor> made;
    for (int k = 0; k < 2000; ++k) made.push_back(zeros({2}));
    for (const Tensor& t : made) ever.insert(t.node()->number);
    std::thread([&made] { made.clear(); }).join();
  }
  CHECK(ever.size() < 10000);  // 80,000 were made, 2,000 of them at once
}

TEST_CASE("node pool: what waits is bounded, and clear_caches() frees it") {
  {
    std::vector<Tensor> many;
    for (int k = 0; k < 100000; ++k) many.push_back(zeros({2}));
  }
  CHECK(idle_node_bytes() <= std::int64_t{16} << 20);
  clear_caches();
  CHECK(idle_node_bytes() == 0);
}
