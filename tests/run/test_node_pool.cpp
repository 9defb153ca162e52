// Node memory: numbers that no two living nodes share, blocks that move between threads, and a
// bound on idle blocks.
#include "graph/node_pool.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>
#include <vector>

#include <tenon/compute.h>
#include <tenon/ops.h>

#include "graph/node.h"

using namespace tenon;

TEST_CASE("node pool: living nodes have unique numbers, which are reused") {
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

TEST_CASE("node pool: blocks of nodes made by one thread and freed by others are reused") {
  clear_caches();  // blocks of other tests would be used first
  std::set<std::uint32_t> ever;
  for (int round = 0; round < 40; ++round) {
    std::vector<Tensor> made;
    for (int k = 0; k < 2000; ++k) made.push_back(zeros({2}));
    for (const Tensor& t : made) ever.insert(t.node()->number);
    std::thread([&made] { made.clear(); }).join();
  }
  CHECK(ever.size() < 10000);  // 80,000 were made, 2,000 of them at once
}

TEST_CASE("node pool: idle memory is bounded, and clear_caches() frees it") {
  clear_caches();
  const std::int64_t before = node_bytes();
  {
    std::vector<Tensor> many;
    for (int k = 0; k < 100000; ++k) many.push_back(zeros({2}));
    CHECK(node_bytes() - before > std::int64_t{8} << 20);
  }
  CHECK(idle_node_bytes() <= std::int64_t{16} << 20);
  CHECK(node_bytes() - before <= std::int64_t{16} << 20);
  clear_caches();
  CHECK(idle_node_bytes() == 0);
  CHECK(node_bytes() - before <= std::int64_t{1} << 20);  // blocks that the thread keeps
}

TEST_CASE("node pool: unused blocks of live slabs are used before new slabs") {
  clear_caches();
  std::vector<Tensor> nodes;
  for (int k = 0; k < 100000; ++k) nodes.push_back(zeros({2}));
  const std::int64_t most = node_bytes();
  // One in a hundred stays alive, so that almost no slab is freed.
  for (std::size_t k = 0; k < nodes.size(); ++k)
    if (k % 100 != 0) nodes[k] = Tensor();
  clear_caches();
  for (Tensor& t : nodes)
    if (!t.defined()) t = zeros({2});
  CHECK(node_bytes() <= most + (std::int64_t{1} << 20));
  for (const Tensor& t : nodes) CHECK(t.to_vector<float>() == std::vector<float>{0, 0});
}
