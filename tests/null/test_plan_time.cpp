// Planning takes a time in proportion to the graph, on either device: deep networks, long unrolled
// ones, and twice as much of each. A neighbour on the machine makes an attempt slow, so a case that
// does not hold is tried again.
#include <doctest/doctest.h>
#include <malloc.h>

#include <string>
#include <vector>

#include <tenon/eval.h>

#include "big_graphs.h"
#include "planning.h"
#include "thread_time.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr double kRatio = 3;  // a pass that asks all pairs takes 4

/// Graphs of a size and of twice that, planned in turn: the larger one in so many seconds, and not
/// in much more than twice what the smaller one takes.
void check_linear(const std::string& name, const std::vector<Tensor>& one,
                  const std::vector<Tensor>& two, double most_seconds) {
  for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda}) {
    CAPTURE(name);
    CAPTURE((kind == Device::Kind::Cuda));
    Twice times;
    for (int k = 0; k < kMostAttempts; ++k) {
      times.attempt([&] { planned(one, {.kind = kind}); }, [&] { planned(two, {.kind = kind}); });
      if (k > 1 && times.seconds() < kCrowded * most_seconds && times.ratio() < kRatio) break;
    }
    CHECK(times.seconds() < kCrowded * most_seconds);
    CHECK(times.ratio() < kRatio);
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
  check_linear("mlp", deep_mlp(230), deep_mlp(460), 0.2);
}

TEST_CASE("plan time: the step of 152 convolutions with batch norm written by hand") {
  check_linear("resnet", deep_resnet(25), deep_resnet(51), 0.3);
}

TEST_CASE("plan time: the step of a thousand layers") {
  const std::vector<Tensor> step = deep_mlp(1000);
  for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda}) {
    Least least;
    for (int k = 0; k < kMostAttempts && !(least.seconds() < kCrowded * 0.3); ++k)
      least.attempt([&] { planned(step, {.kind = kind}); });
    CAPTURE((kind == Device::Kind::Cuda));
    CHECK(least.seconds() < kCrowded * 0.3);
  }
}

// Values that no cache holds: chains grow from each of them, and the arena is worth sharing.
TEST_CASE("plan time: the steps of large batches, 10,000 nodes") {
  check_linear("mlp", deep_mlp(230, 16, 1 << 17), deep_mlp(460, 16, 1 << 17), 0.2);
  check_linear("resnet", deep_resnet(25, 8, 1 << 12), deep_resnet(51, 8, 1 << 12), 0.3);
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

TEST_CASE("plan time: the step of 104 convolutions of which two in three are products on a card") {
  set_precision(Precision::Bf16);
  const std::vector<Tensor> one = deep_resnet(17, 16), two = deep_resnet(34, 16);
  set_precision(Precision::Fp32);
  check_linear("resnet in bf16", one, two, 0.3);
}
