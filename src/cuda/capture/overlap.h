// Kernels of a graph that may be launched before those that they wait for have ended.
#pragma once

#include <vector>

#include "cuda/device/driver_api.h"

namespace tenon::cuda {

struct GraphEdge {
  CUgraphNode from, to;
  CUgraphEdgeData data;
};
std::vector<GraphEdge> edges_of(CUgraph graph);

/// Whether the driver can overlap kernels of a graph (12.3) and TENON_CUDA_PDL is not off.
bool can_overlap();
/// Turns edges between kernels into programmatic ones where the later kernel waits itself, but
/// where it is one of the nodes `apart` or waits for one.
void overlap_kernels(CUgraph graph, const std::vector<CUgraphNode>& apart);

}  // namespace tenon::cuda
