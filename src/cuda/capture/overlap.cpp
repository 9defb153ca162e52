// Programmatic dependent launch in graphs.
//
// A normal edge between kernels launches the second when the first has ended. A programmatic edge
// lets the second be launched earlier, so that its launch costs no extra time; the second then
// waits itself before it touches memory (jit.h: kAwaits). Copies, fills and library kernels do not
// wait, so edges to them stay normal. All edges to one kernel have one kind: if one must stay
// normal, all stay normal.
#include "cuda/capture/overlap.h"

#include <map>
#include <set>
#include <vector>

#include "base/system/env.h"
#include "cuda/device/driver.h"
#include "cuda/jit/jit.h"

namespace tenon::cuda {
namespace {

constexpr const char* kReading = "reading a graph";

bool is_kernel(CUgraphNode node) {
  CUgraphNodeType type{};
  check(driver().cuGraphNodeGetType(node, &type), kReading);
  return type == CU_GRAPH_NODE_TYPE_KERNEL;
}

bool waits_itself(CUgraphNode node) {
  if (!is_kernel(node)) return false;
  CUDA_KERNEL_NODE_PARAMS params;
  check(driver().cuGraphKernelNodeGetParams(node, &params), kReading);
  return awaits_kernels(params.func);
}

}  // namespace

std::vector<GraphEdge> edges_of(CUgraph graph) {
  std::size_t count = 0;
  check(driver().cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count), kReading);
  std::vector<CUgraphNode> from(count), to(count);
  std::vector<CUgraphEdgeData> data(count);
  if (count > 0)
    check(driver().cuGraphGetEdges(graph, from.data(), to.data(), data.data(), &count), kReading);
  std::vector<GraphEdge> edges;
  for (std::size_t k = 0; k < count; ++k) edges.push_back({from[k], to[k], data[k]});
  return edges;
}

bool can_overlap() {
  static const bool wanted = env_flag("TENON_CUDA_PDL", true);
  const Driver& d = driver();
  return wanted && d.cuGraphGetEdges != nullptr && d.cuGraphAddDependencies != nullptr &&
         d.cuGraphRemoveDependencies != nullptr && d.cuGraphKernelNodeGetParams != nullptr;
}

void overlap_kernels(CUgraph graph, const std::vector<CUgraphNode>& apart) {
  const std::set<CUgraphNode> alone(apart.begin(), apart.end());
  const std::vector<GraphEdge> edges = edges_of(graph);
  std::map<CUgraphNode, bool> may;  // nodes that wait for others
  for (const GraphEdge& edge : edges) {
    const auto [found, fresh] = may.try_emplace(edge.to, false);
    if (fresh) found->second = alone.count(edge.to) == 0 && waits_itself(edge.to);
    found->second = found->second && is_kernel(edge.from) && alone.count(edge.from) == 0;
  }
  std::vector<CUgraphNode> from, to;
  std::vector<CUgraphEdgeData> old;
  for (const GraphEdge& edge : edges) {
    if (!may[edge.to]) continue;
    from.push_back(edge.from);
    to.push_back(edge.to);
    old.push_back(edge.data);
  }
  if (to.empty()) return;
  CUgraphEdgeData programmatic;
  programmatic.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  programmatic.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  const std::vector<CUgraphEdgeData> changed(to.size(), programmatic);
  constexpr const char* kChanging = "changing the edges of a graph";
  check(driver().cuGraphRemoveDependencies(graph, from.data(), to.data(), old.data(), to.size()),
        kChanging);
  check(driver().cuGraphAddDependencies(graph, from.data(), to.data(), changed.data(), to.size()),
        kChanging);
}

}  // namespace tenon::cuda
