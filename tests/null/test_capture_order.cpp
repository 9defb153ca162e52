// The order in which a program's steps enter a captured CUDA graph. Needs no device.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <tenon/ops.h>

#include "cuda/capture/order.h"
#include "planning.h"

using namespace tenon;
using test::leaf;
using test::planned;

namespace {

/// The position, among the entries of a run, of the step that writes the program's k-th output.
std::ptrdiff_t place_of(const Program& p, const std::vector<int>& order, std::size_t k) {
  const ValueId id = p.outputs[k].value;
  const auto writes = [&](int entry) {
    const std::vector<ValueId>& all =
        p.steps[static_cast<std::size_t>(entry) % p.steps.size()].region.writes;
    return std::find(all.begin(), all.end(), id) != all.end();
  };
  return std::find_if(order.begin(), order.end(), writes) - order.begin();
}

}  // namespace

TEST_CASE("capture order: short paths last, each step after its dependencies") {
  const Tensor x = leaf({512, 512}), w = leaf({512, 512});
  Tensor chain = x;
  for (int k = 0; k < 5; ++k) chain = matmul(chain, w);
  // Planned first, and no step waits for it.
  const auto p = planned({matmul(w, x), chain});
  REQUIRE(p->steps.size() == 6);
  for (const int runs : {1, 3}) {
    const std::vector<std::vector<int>> before = cuda::waits(*p, runs);
    const std::vector<int> order = cuda::short_paths_last(*p, before);
    std::vector<char> done(before.size(), 0);
    for (const int entry : order) {
      for (const int needed : before[static_cast<std::size_t>(entry)])
        CHECK(done[static_cast<std::size_t>(needed)] != 0);
      done[static_cast<std::size_t>(entry)] = 1;
    }
    CHECK(order.size() == before.size());
    CHECK(std::count(done.begin(), done.end(), 1) == std::ssize(before));
    // The side step comes after the chain's steps that have a long path behind them.
    CHECK(place_of(*p, order, 0) >= 2);
    CHECK(place_of(*p, order, 1) >= 4);
  }
}
