// Planning takes a time in proportion to the graph, on either device: deep networks, long unrolled
// ones, and twice as much of each. The processor's time for this program, with room of two to three
// times for slow machines and loud neighbours, but not for a pass that asks all pairs.
#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

#include "big_graphs.h"
#include "planning.h"

using namespace tenon;
using namespace tenon::test;

namespace {

double user_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

/// Seconds for a plan, the least of some.
double seconds_to_plan(const std::vector<Tensor>& roots, Device::Kind kind, int times = 3) {
  double least = 1e9;
  for (int k = 0; k < times; ++k) {
    const double start = user_seconds();
    const auto p = planned(roots, {.kind = kind});
    least = std::min(least, user_seconds() - start);
  }
  return least;
}

void check_linear(const std::string& name, const std::vector<Tensor>& one,
                  const std::vector<Tensor>& two, double most_seconds) {
  for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda}) {
    CAPTURE(name);
    CAPTURE((kind == Device::Kind::Cuda));
    const double half = seconds_to_plan(one, kind), whole = seconds_to_plan(two, kind);
    CHECK(whole < most_seconds);
    CHECK(whole < 3.5 * half);
  }
}

/// Bytes that a plan holds, kernels included, for each node of its graph.
double bytes_a_node(const std::vector<Tensor>& roots) {
  const std::size_t before = mallinfo2().uordblks;
  const auto p = planned(roots, {.kind = Device::Kind::Cpu});
  return static_cast<double>(mallinfo2().uordblks - before) / p->node_count;
}

}  // namespace

TEST_CASE("plan time: the step of a deep network of products, 10,000 nodes") {
  check_linear("mlp", deep_mlp(230), deep_mlp(460), 0.3);
}

TEST_CASE("plan time: the step of 152 convolutions with batch norm written by hand") {
  check_linear("resnet", deep_resnet(25), deep_resnet(51), 0.45);
}

TEST_CASE("plan time: an unrolled LSTM") {
  check_linear("lstm", unrolled_lstm(100), unrolled_lstm(200), 0.3);
}

TEST_CASE("plan memory: in proportion to the graph") {
  const double one = bytes_a_node(deep_mlp(100)), two = bytes_a_node(deep_mlp(200));
  CAPTURE(one);
  CHECK(two < 1.1 * one);
  CHECK(two < 4096);
}
