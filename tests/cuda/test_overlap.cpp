// Kernels of a graph that may be launched before earlier ones have ended: which edges are
// programmatic, and that the results are the same. On a GPU, real or emulated.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/device.h>

#include "base/str.h"
#include "cuda/capture/graph.h"
#include "cuda/capture/overlap.h"
#include "cuda/jit/jit.h"
#include "device/buffer.h"
#include "gpu.h"

using namespace tenon;
using namespace tenon::cuda;
using test::has_gpu;

namespace {

constexpr int kCount = 1000;
constexpr std::size_t kBytes = kCount * sizeof(std::int32_t);

/// Adds 1 to each element, and counts elements below `least` in units of ten thousand.
std::shared_ptr<const CompiledKernel> kernel(bool waits) {
  return compile(target_of(0), {"add_one", cat("#include \"cuda/kernels/intrinsics.cuh\"\n"
                                               "extern \"C\" __global__ void add_one(int* x, int "
                                               "count, int least) {\n",
                                               waits ? kAwaitKernels : "",
                                               "  const int i = blockIdx.x * 128 + threadIdx.x;\n"
                                               "  if (i < count)\n"
                                               "    x[i] += x[i] < least ? 10000 : 1;\n}\n")});
}

/// A chain: a copy, two kernels, one that does not wait, a fill, two kernels.
struct Chain {
  explicit Chain(int index) : context(context_of(index)), graph(context) {}

  void launch(bool waits, int least) {
    int count = kCount;
    void* at = x->data();
    void* params[] = {&at, &count, &least};
    kernel(waits)->launch(stream.get(), {(kCount + 127) / 128}, {128}, 0, params);
  }

  /// Returns the last kernel.
  Nodes capture() {
    const Nodes copied{
        graph.add_copy({}, flat_copy(x->data(), zeros->data(), static_cast<std::int64_t>(kBytes)))};
    return graph.capture(stream.get(), copied, [&] {
      launch(true, 0);
      launch(true, 1);
      launch(false, 2);
      check(driver().cuMemsetD32Async(address(x->data()), 7, kCount, stream.get()), "filling");
      launch(true, 7);
      launch(true, 8);
    });
  }

  const cuda::Context& context;
  const std::shared_ptr<Buffer> x = Buffer::allocate(kBytes, device("cuda:0")),
                                zeros = Buffer::allocate(kBytes, device("cuda:0"));
  Graph graph;
  CaptureStream stream;
};

/// For each edge of the chain: true if it is programmatic.
std::vector<int> programmatic(const std::vector<GraphEdge>& edges) {
  const auto leads_to = [&](CUgraphNode node) {
    return std::any_of(edges.begin(), edges.end(),
                       [&](const GraphEdge& edge) { return edge.to == node; });
  };
  CUgraphNode node = nullptr;
  for (const GraphEdge& edge : edges)
    if (!leads_to(edge.from)) node = edge.from;
  std::vector<int> out;
  for (std::size_t k = 0; k < edges.size(); ++k)
    for (const GraphEdge& edge : edges)
      if (edge.from == node) {
        out.push_back(edge.data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ? 1 : 0);
        node = edge.to;
        break;
      }
  return out;
}

/// The result of a chain that starts with zeros.
void check_results(Chain& chain) {
  for (int round = 0; round < 50; ++round) {
    chain.graph.launch(chain.context.work);
    std::vector<std::int32_t> got(kCount);
    check(driver().cuMemcpyDtoHAsync(got.data(), address(chain.x->data()), kBytes,
                                     chain.context.work),
          "reading");
    check(driver().cuStreamSynchronize(chain.context.work), "waiting");
    CHECK(std::count(got.begin(), got.end(), 9) == kCount);
  }
}

}  // namespace

TEST_CASE("GPU overlap: edges between kernels that wait themselves, and the same results") {
  if (!has_gpu()) return;
  if (target_of(0).arch < 90 || !can_capture() || !can_overlap()) {
    MESSAGE("skipped: a GPU below 9.0, an older driver, or switched off");
    return;
  }
  kernel(true)->wait();
  kernel(false)->wait();
  for (const bool apart : {false, true}) {
    CAPTURE(apart);
    Chain chain(0);
    check(driver().cuMemsetD32Async(address(chain.zeros->data()), 0, kCount, chain.context.work),
          "filling");
    const Nodes last = chain.capture();
    if (apart) chain.graph.forbid_overlap(last);
    CHECK(programmatic(edges_of(chain.graph.handle())) == std::vector<int>(6, 0));
    chain.graph.instantiate();
    CHECK(programmatic(edges_of(chain.graph.handle())) ==
          std::vector<int>{0, 1, 0, 0, 0, apart ? 0 : 1});
    check_results(chain);
  }
}
