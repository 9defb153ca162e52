// Planning time grows linearly with the graph on either device, and is a small multiple of the time
// to build the nodes. Cases: deep networks, long unrolled ones, and four times as much of each.
//
// Only alternating measurements on the thread's own clock are compared, because neighbours on the
// machine slow both. A failing case is tried again.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <string>
#include <vector>

#include <tenon/compute.h>

#include "big_graphs.h"
#include "graph/tracing/body.h"
#include "planning.h"
#include "thread_time.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr double kGrowth = 10;      // 4 to 8, as caches hold the graph; 16 where pairs are asked
constexpr double kMostBuilds = 60;  // 10 to 25; 10,000 nodes are built in 5 ms

/// Rebuilds the graph node by node, as the simplest pass would.
void build_again(const std::vector<Tensor>& roots) {
  substitute(roots, {}, [](const Node& node, const std::vector<Tensor>& inputs) {
    return node.realised() ? Tensor()
                           : make_node(node.op, node.dtype, node.shape, node.attrs, inputs);
  });
}

/// Compares graphs of a size and of four times that size.
void check_linear(const std::string& name, const std::vector<Tensor>& one,
                  const std::vector<Tensor>& four) {
  for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda}) {
    CAPTURE(name);
    CAPTURE((kind == Device::Kind::Cuda));
    const auto plan = [kind](const std::vector<Tensor>& roots) {
      planned(roots, {.kind = kind, .checks_passes = false});
    };
    InTurn growth, builds;
    for (int k = 0; k < kMostAttempts; ++k) {
      growth.attempt([&] { plan(one); }, [&] { plan(four); });
      builds.attempt([&] { build_again(four); }, [&] { plan(four); });
      if (k > 1 && growth.ratio() < kGrowth && builds.ratio() < kMostBuilds) break;
    }
    CHECK(growth.ratio() < kGrowth);
    CHECK(builds.ratio() < kMostBuilds);
  }
}

/// Bytes of a plan, kernels included, for each node of its graph.
double bytes_a_node(const std::vector<Tensor>& roots) {
  const std::size_t before = mallinfo2().uordblks;
  const auto p = planned(roots, {.kind = Device::Kind::Cpu, .checks_passes = false});
  return static_cast<double>(mallinfo2().uordblks - before) / p->node_count;
}

}  // namespace

TEST_CASE("plan time: the step of a deep network of products, 10,000 nodes") {
  check_linear("mlp", deep_mlp(115), deep_mlp(460));
}

TEST_CASE("plan time: the step of 152 convolutions with batch norm written by hand") {
  check_linear("resnet", deep_resnet(13), deep_resnet(51));
}

TEST_CASE("plan time: the step of a thousand layers") {
  check_linear("mlp", deep_mlp(250), deep_mlp(1000));
}

// Every weight gradient is a product whose transpose is requested, and its operand is a product of
// all following layers: each is transposed once.
TEST_CASE("plan time: the step of a plain chain of linear layers") {
  check_linear("chain", linear_chain(500), linear_chain(2000));
}

TEST_CASE("plan time: no pass makes more nodes of a longer chain than its layers explain") {
  for (const Device::Kind kind : {Device::Kind::Cpu, Device::Kind::Cuda}) {
    std::vector<double> most_a_layer;
    for (const int layers : {2000, 4000, 8000}) {
      const auto plan = planned(linear_chain(layers), {.kind = kind, .checks_passes = false});
      int most = 0;
      for (const PassRecord& pass : plan->passes)
        if (pass.unit == std::string("nodes")) most = std::max({most, pass.before, pass.after});
      most_a_layer.push_back(double(most) / layers);
    }
    CAPTURE((kind == Device::Kind::Cuda));
    CHECK(most_a_layer[0] < 40);
    CHECK(most_a_layer[1] < 1.01 * most_a_layer[0]);
    CHECK(most_a_layer[2] < 1.01 * most_a_layer[1]);
  }
}

// Values larger than the caches: chains grow from each of them, and sharing the arena pays.
TEST_CASE("plan time: the steps of large batches, 10,000 nodes") {
  check_linear("mlp", deep_mlp(115, 16, 1 << 17), deep_mlp(460, 16, 1 << 17));
  check_linear("resnet", deep_resnet(13, 8, 1 << 12), deep_resnet(51, 8, 1 << 12));
}

TEST_CASE("plan time: an unrolled LSTM") {
  check_linear("lstm", unrolled_lstm(50), unrolled_lstm(200));
}

TEST_CASE("plan memory: in proportion to the graph") {
  for (const auto graph : {+[](int layers) { return deep_mlp(layers); },
                           +[](int layers) { return linear_chain(layers); }}) {
    const double one = bytes_a_node(graph(100)), two = bytes_a_node(graph(200));
    CAPTURE(one);
    CHECK(two < 1.1 * one);
    CHECK(two < 4096);
  }
}

TEST_CASE("plan time: the step of 104 convolutions of which two in three are products on a GPU") {
  set_precision(Precision::Bf16);
  const std::vector<Tensor> one = deep_resnet(8, 16), four = deep_resnet(34, 16);
  set_precision(Precision::Fp32);
  check_linear("resnet in bf16", one, four);
}
