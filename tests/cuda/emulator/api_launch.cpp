// The driver's functions for modules, launches, stream capture and graphs.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "block.h"
#include "objects.h"

using namespace tenon_emulator;

namespace {

/// Loads the library in an image. Each time from a file with a new name, because the loader would
/// return the old library for an old name.
void* load_library(const Image& image, std::string* why) {
  std::string path = (std::filesystem::temp_directory_path() / "tenon-module-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) {
    *why = "no temporary file";
    return nullptr;
  }
  close(file);
  const char* bytes = reinterpret_cast<const char*>(&image);
  std::ofstream out(path, std::ios::binary);
  out.write(bytes + sizeof image, static_cast<std::streamsize>(image.size - sizeof image));
  out.close();
  if (!out) {
    *why = "cannot write " + path;
    unlink(path.c_str());
    return nullptr;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) *why = dlerror();
  unlink(path.c_str());
  return library;
}

bool runs_on_gpu(const Image& image) {
  const auto capability = static_cast<unsigned>(setting("TENON_FAKE_CUDA_CAPABILITY", 90));
  if (image.exact != 0) return image.arch == capability;
  return image.arch / 10 == capability / 10 && image.arch <= capability;
}

CUresult check_launch(const CUfunc_st& function, const KernelWork& work) {
  const Index3 g = work.grid, b = work.block;
  const std::string name = function.entry->name;
  const std::uint64_t threads = std::uint64_t{b.x} * b.y * b.z;
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 2147483647u || g.y > 65535 || g.z > 65535) {
    return fail(CUDA_ERROR_INVALID_VALUE, name + ": a grid of " + std::to_string(g.x) + " x " +
                                              std::to_string(g.y) + " x " + std::to_string(g.z));
  }
  if (threads == 0 || threads > 1024 || b.z > 64) {
    return fail(CUDA_ERROR_INVALID_VALUE, name + ": a block of " + std::to_string(threads));
  }
  if (threads > function.entry->max_threads) {
    return fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, name + ": more threads than __launch_bounds__");
  }
  if (static_cast<int>(work.shared_bytes) > function.dynamic_limit ||
      static_cast<int>(work.shared_bytes) + function.static_bytes() > 227 * 1024) {
    return fail(CUDA_ERROR_INVALID_VALUE,
                name + ": " + std::to_string(work.shared_bytes) + " bytes of shared memory");
  }
  return CUDA_SUCCESS;
}

std::uint64_t next_capture_id() {
  static std::uint64_t last = 0;
  return ++last;
}

CUresult begin_capture(CUstream stream, CUgraph graph, bool adopted, CUstreamCaptureMode mode) {
  if (!alive(stream)) return dead_handle("cuStreamBeginCapture");
  if (stream->capture != nullptr) {
    return fail(CUDA_ERROR_INVALID_VALUE, "the stream is being captured already");
  }
  stream->capture = graph;
  stream->adopted = adopted;
  stream->origin = stream;
  stream->mode = mode;
  stream->thread = std::this_thread::get_id();
  stream->invalidated = false;
  stream->depends.clear();
  stream->how.clear();
  stream->capture_id = next_capture_id();
  captures().push_back(stream);
  return CUDA_SUCCESS;
}

CUgraph new_graph() {
  auto* graph = new CUgraph_st;
  enter(graph);
  return graph;
}

void destroy_graph(CUgraph graph) {
  for (const auto& node : graph->nodes) leave(node.get());
  leave(graph);
  delete graph;
}

CUgraphExec_st::Item* find_item(CUgraphExec executable, CUgraphNode node) {
  for (CUgraphExec_st::Item& item : executable->items) {
    if (item.node == node) return &item;
  }
  return nullptr;
}

}  // namespace

TENON_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* data) {
  TENON_ENTER("cuModuleLoadData");
  TENON_NEED_CONTEXT("cuModuleLoadData");
  if (const CUresult result = refuse_while_capturing("cuModuleLoadData"); result != CUDA_SUCCESS) {
    return result;
  }
  const auto& image = *static_cast<const Image*>(data);
  if (std::memcmp(image.magic, image_magic, sizeof image_magic) != 0) {
    return fail(CUDA_ERROR_INVALID_IMAGE, "not made by the emulated NVRTC");
  }
  if (!runs_on_gpu(image)) {
    return fail(CUDA_ERROR_NO_BINARY_FOR_GPU, "made for sm_" + std::to_string(image.arch));
  }
  std::string why;
  void* library = load_library(image, &why);
  if (library == nullptr) return fail(CUDA_ERROR_INVALID_IMAGE, why);
  auto* describe = reinterpret_cast<Module (*)()>(dlsym(library, "tenon_emulated_module"));
  if (describe == nullptr) return fail(CUDA_ERROR_INVALID_IMAGE, "no module in the library");
  auto* made = new CUmod_st;
  made->context = current_context();
  made->library = library;
  made->module = describe();
  attach_runtime(made->module);
  enter(made);
  *module = made;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuModuleUnload(CUmodule module) {
  TENON_ENTER("cuModuleUnload");
  if (!alive(module)) return dead_handle("cuModuleUnload");
  for (const CUfunc_st& function : module->functions) leave(&function);
  dlclose(module->library);
  leave(module);
  delete module;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  TENON_ENTER("cuModuleGetFunction");
  if (!alive(module)) return dead_handle("cuModuleGetFunction");
  for (CUfunc_st& known : module->functions) {
    if (std::strcmp(known.entry->name, name) == 0) {
      *function = &known;
      return CUDA_SUCCESS;
    }
  }
  for (const Entry* entry = *module->module.entries; entry != nullptr; entry = entry->next) {
    if (std::strcmp(entry->name, name) != 0) continue;
    CUfunc_st made;
    made.owner = module;
    made.entry = entry;
    module->functions.push_back(made);
    *function = &module->functions.back();
    enter(*function);
    return CUDA_SUCCESS;
  }
  std::string names;
  for (const Entry* entry = *module->module.entries; entry != nullptr; entry = entry->next) {
    names += std::string(" ") + entry->name;
  }
  return fail(CUDA_ERROR_NOT_FOUND, std::string(name) + " among:" + names);
}

TENON_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                         int value) {
  TENON_ENTER("cuFuncSetAttribute");
  if (!alive(function)) return dead_handle("cuFuncSetAttribute");
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value + function->static_bytes() > 227 * 1024) {
      return fail(CUDA_ERROR_INVALID_VALUE, "more shared memory than a block may have");
    }
    function->dynamic_limit = value;
  }
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                         CUfunction function) {
  TENON_ENTER("cuFuncGetAttribute");
  if (!alive(function)) return dead_handle("cuFuncGetAttribute");
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(function->entry->max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = function->static_bytes();
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 64;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->dynamic_limit;
      return CUDA_SUCCESS;
  }
  return fail(CUDA_ERROR_INVALID_VALUE, "an attribute that the emulator does not know");
}

TENON_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                                  int block_size,
                                                                  std::size_t shared_bytes) {
  TENON_ENTER("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  if (!alive(function)) return dead_handle("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  const int shared = static_cast<int>(shared_bytes) + function->static_bytes() + 1024;
  *blocks = std::min({32, 2048 / std::max(block_size, 1), 228 * 1024 / shared});
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared_bytes, CUstream handle,
                                     void** params, void** extra) {
  TENON_ENTER("cuLaunchKernel");
  CUstream_st* stream = stream_of(handle);
  if (!alive(function) || stream == nullptr) return dead_handle("cuLaunchKernel");
  if (function->owner->context != stream->context) {
    return fail(CUDA_ERROR_INVALID_CONTEXT, "a kernel that was loaded for another GPU");
  }
  const Entry& entry = *function->entry;
  if (extra != nullptr || (params == nullptr && entry.count > 0)) {
    return fail(CUDA_ERROR_INVALID_VALUE, "parameters are not given as a list");
  }
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_KERNEL;
  work.kernel.function = function;
  work.kernel.grid = {grid_x, grid_y, grid_z};
  work.kernel.block = {block_x, block_y, block_z};
  work.kernel.shared_bytes = shared_bytes;
  if (const CUresult result = check_launch(*function, work.kernel); result != CUDA_SUCCESS) {
    return result;
  }
  for (int i = 0; i < entry.count; ++i) {
    std::vector<unsigned char>& bytes = work.kernel.params;
    const std::size_t at = bytes.size();
    bytes.resize(at + (entry.sizes[i] + 63u) / 64 * 64);
    std::memcpy(bytes.data() + at, params[i], entry.sizes[i]);
  }
  return submit(stream, std::move(work));
}

TENON_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  TENON_ENTER("cuStreamBeginCapture_v2");
  if (!alive(stream)) return dead_handle("cuStreamBeginCapture");
  return begin_capture(stream, stream->capture != nullptr ? nullptr : new_graph(), false, mode);
}

TENON_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                                  const CUgraphNode* depends,
                                                  const CUgraphEdgeData* how, std::size_t count,
                                                  CUstreamCaptureMode mode) {
  TENON_ENTER("cuStreamBeginCaptureToGraph");
  if (!alive(graph)) return dead_handle("cuStreamBeginCaptureToGraph");
  if (const CUresult result = begin_capture(stream, graph, true, mode); result != CUDA_SUCCESS) {
    return result;
  }
  stream->depends.assign(depends, depends + count);
  stream->how.assign(count, CUgraphEdgeData());
  if (how != nullptr) stream->how.assign(how, how + count);
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  TENON_ENTER("cuStreamEndCapture");
  if (!alive(stream)) return dead_handle("cuStreamEndCapture");
  if (stream->capture == nullptr || stream->origin != stream) {
    return fail(CUDA_ERROR_INVALID_VALUE, "the stream did not begin a capture");
  }
  CUgraph made = stream->capture;
  std::vector<CUstream_st*>& under_way = captures();
  under_way.erase(std::remove(under_way.begin(), under_way.end(), stream), under_way.end());
  stream->capture = nullptr;
  for (CUstream_st* other : stream->joined) other->capture = nullptr;
  stream->joined.clear();
  *graph = made;
  if (!stream->invalidated) return CUDA_SUCCESS;
  if (!stream->adopted) destroy_graph(made);
  *graph = nullptr;
  return fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, last_failure());
}

TENON_EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  TENON_ENTER("cuStreamIsCapturing");
  if (!alive(stream)) return dead_handle("cuStreamIsCapturing");
  *status = stream->capture == nullptr    ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->origin->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                          : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  TENON_ENTER("cuThreadExchangeStreamCaptureMode");
  std::swap(*mode, thread_capture_mode());
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status,
                                                std::uint64_t* id, CUgraph* graph,
                                                const CUgraphNode** dependencies,
                                                std::size_t* count) {
  if (!alive(stream)) return dead_handle("cuStreamGetCaptureInfo");
  const CUresult result = cuStreamIsCapturing(stream, status);
  if (result != CUDA_SUCCESS || *status == CU_STREAM_CAPTURE_STATUS_NONE) return result;
  const std::lock_guard<std::recursive_mutex> held(lock());
  if (id != nullptr) *id = stream->origin->capture_id;
  if (graph != nullptr) *graph = stream->capture;
  if (dependencies != nullptr) *dependencies = stream->depends.data();
  if (count != nullptr) *count = stream->depends.size();
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  TENON_ENTER("cuGraphCreate");
  *graph = new_graph();
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  TENON_ENTER("cuGraphDestroy");
  if (!alive(graph)) return dead_handle("cuGraphDestroy");
  destroy_graph(graph);
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                                  unsigned long long) {
  TENON_ENTER("cuGraphInstantiateWithFlags");
  TENON_NEED_CONTEXT("cuGraphInstantiateWithFlags");
  if (!alive(graph)) return dead_handle("cuGraphInstantiateWithFlags");
  auto* made = new CUgraphExec_st;
  made->context = current_context();
  for (const auto& node : graph->nodes) made->items.push_back({node.get(), node->work});
  enter(made);
  *executable = made;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphUpload(CUgraphExec executable, CUstream stream) {
  TENON_ENTER("cuGraphUpload");
  return alive(executable) && alive(stream) ? CUDA_SUCCESS : dead_handle("cuGraphUpload");
}

TENON_EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  TENON_ENTER("cuGraphLaunch");
  if (!alive(executable) || !alive(stream)) return dead_handle("cuGraphLaunch");
  if (stream->capture != nullptr) {
    return fail(CUDA_ERROR_NOT_SUPPORTED, "the emulator does not capture graphs in graphs");
  }
  for (const CUgraphExec_st::Item& item : executable->items) {
    if (const CUresult result = check_allocations(item.work); result != CUDA_SUCCESS) return result;
  }
  for (CUgraphExec_st::Item& item : executable->items) {
    const CUresult result = execute(item.work, stream->context->gpu);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  TENON_ENTER("cuGraphExecDestroy");
  if (!alive(executable)) return dead_handle("cuGraphExecDestroy");
  leave(executable);
  delete executable;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph,
                                           const CUgraphNode* depends, std::size_t count,
                                           const CUDA_MEMCPY3D* copy, CUcontext context) {
  TENON_ENTER("cuGraphAddMemcpyNode");
  if (!alive(graph)) return dead_handle("cuGraphAddMemcpyNode");
  if (context == nullptr) return fail(CUDA_ERROR_INVALID_CONTEXT, "a copy without a context");
  auto made = std::make_unique<CUgraphNode_st>();
  made->work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  if (const CUresult result = set_copy(made->work, *copy); result != CUDA_SUCCESS) return result;
  enter(made.get());
  *node = made.get();
  graph->nodes.push_back(std::move(made));
  const std::vector<CUgraphNode> to(count, *node);
  return add_edges(graph, depends, to.data(), nullptr, count);
}

TENON_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                     const CUDA_MEMCPY3D* copy, CUcontext) {
  TENON_ENTER("cuGraphExecMemcpyNodeSetParams");
  if (!alive(executable)) return dead_handle("cuGraphExecMemcpyNodeSetParams");
  CUgraphExec_st::Item* item = find_item(executable, node);
  if (item == nullptr || item->work.type != CU_GRAPH_NODE_TYPE_MEMCPY) {
    return fail(CUDA_ERROR_INVALID_VALUE, "no copy of this graph");
  }
  const CUDA_MEMCPY3D& old = item->work.copy;
  if (old.srcMemoryType != copy->srcMemoryType || old.dstMemoryType != copy->dstMemoryType ||
      old.Height != 1 || old.Depth != 1 || copy->Height != 1 || copy->Depth != 1) {
    return fail(CUDA_ERROR_INVALID_VALUE, "a copy of another kind than the node's");
  }
  return set_copy(item->work, *copy);
}

TENON_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  TENON_ENTER("cuGraphGetNodes");
  if (!alive(graph)) return dead_handle("cuGraphGetNodes");
  const std::size_t room = nodes == nullptr ? 0 : *count;
  for (std::size_t i = 0; i < std::min(room, graph->nodes.size()); ++i) {
    nodes[i] = graph->nodes[i].get();
  }
  *count = nodes == nullptr ? graph->nodes.size() : std::min(room, graph->nodes.size());
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                         CUgraphEdgeData* how, std::size_t* count) {
  TENON_ENTER("cuGraphGetEdges_v2");
  if (!alive(graph)) return dead_handle("cuGraphGetEdges");
  const std::size_t all = graph->edges.size(), room = from == nullptr ? all : std::min(*count, all);
  for (std::size_t i = 0; from != nullptr && i < room; ++i) {
    from[i] = graph->edges[i].from;
    to[i] = graph->edges[i].to;
    how[i] = graph->edges[i].how;
  }
  *count = room;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                                const CUgraphNode* to, const CUgraphEdgeData* how,
                                                std::size_t count) {
  TENON_ENTER("cuGraphAddDependencies_v2");
  if (!alive(graph)) return dead_handle("cuGraphAddDependencies");
  return add_edges(graph, from, to, how, count);
}

TENON_EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                                   const CUgraphNode* to,
                                                   const CUgraphEdgeData* how, std::size_t count) {
  TENON_ENTER("cuGraphRemoveDependencies_v2");
  if (!alive(graph)) return dead_handle("cuGraphRemoveDependencies");
  for (std::size_t i = 0; i < count; ++i) {
    const CUgraphEdgeData asked = how == nullptr ? CUgraphEdgeData() : how[i];
    const auto found =
        std::find_if(graph->edges.begin(), graph->edges.end(), [&](const CUgraph_st::Edge& edge) {
          return edge.from == from[i] && edge.to == to[i] && edge.how.type == asked.type &&
                 edge.how.from_port == asked.from_port;
        });
    if (found == graph->edges.end()) {
      return fail(CUDA_ERROR_INVALID_VALUE, "no such edge to take away");
    }
    graph->edges.erase(found);
  }
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node,
                                                    CUDA_KERNEL_NODE_PARAMS* params) {
  TENON_ENTER("cuGraphKernelNodeGetParams_v2");
  if (!alive(node)) return dead_handle("cuGraphKernelNodeGetParams");
  if (node->work.type != CU_GRAPH_NODE_TYPE_KERNEL) {
    return fail(CUDA_ERROR_INVALID_VALUE, "a node that is not a kernel");
  }
  *params = {};
  params->func = node->work.kernel.function;
  return CUDA_SUCCESS;
}

TENON_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  TENON_ENTER("cuGraphNodeGetType");
  if (!alive(node)) return dead_handle("cuGraphNodeGetType");
  *type = node->work.type;
  return CUDA_SUCCESS;
}
