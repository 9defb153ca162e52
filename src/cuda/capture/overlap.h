// Lets kernels of a graph be launched before the kernels that they wait for have ended.
#pragma once

#include <vector>

#include "cuda/device/opening/driver_api.h"

namespace tenon::cuda {

struct GraphEdge {
  CUgraphNode from, to;
  CUgraphEdgeData data;
};
std::vector<GraphEdge> edges_of(CUgraph graph);

/// True if the driver can overlap kernels of a graph (12.3) and TENON_CUDA_PDL is not off.
bool can_overlap();
/// Makes edges between kernels programmatic if the later kernel waits itself. Edges of the nodes
/// `apart`, and of kernels that wait for one of them, stay normal.
void overlap_kernels(CUgraph graph, const std::vector<CUgraphNode>& apart);

}  // namespace tenon::cuda
