// The driver calls of a graph.
#include "cuda/capture/graph.h"

#include "cuda/capture/overlap.h"

namespace tenon::cuda {

CUDA_MEMCPY3D flat_copy(const void* to, const void* from, std::int64_t bytes) {
  CUDA_MEMCPY3D copy;
  copy.srcDevice = address(from);
  copy.dstDevice = address(to);
  copy.WidthInBytes = static_cast<std::size_t>(bytes);
  return copy;
}

CUDA_MEMCPY3D rows_copy(void* to, std::int64_t to_pitch, const void* from, std::int64_t from_pitch,
                        std::int64_t bytes, int rows) {
  CUDA_MEMCPY3D copy = flat_copy(to, from, bytes);
  copy.srcPitch = static_cast<std::size_t>(from_pitch);
  copy.dstPitch = static_cast<std::size_t>(to_pitch);
  copy.Height = static_cast<std::size_t>(rows);
  return copy;
}

Graph::Graph(const Context& context) : context_(context) {
  check(driver().cuGraphCreate(&graph_, 0), "making a graph on ", context.title());
}

Graph::~Graph() {
  if (executable_ != nullptr) driver().cuGraphExecDestroy(executable_);
  driver().cuGraphDestroy(graph_);
}

void Graph::begin_capture(CUstream stream, const Nodes& before) {
  check(driver().cuStreamBeginCaptureToGraph(stream, graph_, before.data(), nullptr, before.size(),
                                             CU_STREAM_CAPTURE_MODE_RELAXED),
        "capturing a step");
}

Nodes Graph::captured(CUstream stream) {
  CUstreamCaptureStatus status{};
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  check(driver().cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &count),
        "capturing a step");
  return {nodes, nodes + count};
}

void Graph::end_capture(CUstream stream) {
  CUgraph same = nullptr;
  check(driver().cuStreamEndCapture(stream, &same), "capturing a step");
}

CUgraphNode Graph::add_copy(const Nodes& before, const CUDA_MEMCPY3D& copy) {
  CUgraphNode node = nullptr;
  check(driver().cuGraphAddMemcpyNode(&node, graph_, before.data(), before.size(), &copy,
                                      context_.context),
        "adding a copy to a graph");
  return node;
}

void Graph::patch_copy(CUgraphNode node, const CUDA_MEMCPY3D& copy) {
  check(driver().cuGraphExecMemcpyNodeSetParams(executable_, node, &copy, context_.context),
        "patching a copy of a graph");
}

void Graph::instantiate() {
  if (context_.gpu->target.arch >= 90 && can_overlap()) overlap_kernels(graph_, apart_);
  check(driver().cuGraphInstantiateWithFlags(&executable_, graph_, 0), "instantiating a graph on ",
        context_.title());
}

void Graph::launch(CUstream stream) {
  check(driver().cuGraphLaunch(executable_, stream), "launching a captured program on ",
        context_.title());
}

}  // namespace tenon::cuda
