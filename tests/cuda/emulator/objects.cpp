// Executes work: kernels, copies, fills; and keeps track of handles and captures.
#include "objects.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "block.h"

namespace tenon_emulator {
namespace {

std::unordered_set<const void*>& handles() {
  static auto* const all = new std::unordered_set<const void*>;
  return *all;
}

/// Pointers that a kernel takes must be null or point into memory of the GPU that runs it.
CUresult check_pointers(const Entry& entry, void* const* params, int gpu) {
  for (int i = 0; i < entry.count; ++i) {
    if (!entry.is_pointer[i]) continue;
    void* pointer = nullptr;
    std::memcpy(&pointer, params[i], sizeof pointer);
    if (pointer == nullptr) continue;
    const Range* range = memory().find(pointer, 0);
    if (range == nullptr) {
      return fail(CUDA_ERROR_ILLEGAL_ADDRESS, std::string(entry.name) + ": parameter " +
                                                  std::to_string(i) +
                                                  " points to memory that is not the GPU's");
    }
    if (range->gpu >= 0 && range->gpu != gpu) {
      return fail(CUDA_ERROR_ILLEGAL_ADDRESS, std::string(entry.name) + ": parameter " +
                                                  std::to_string(i) +
                                                  " points to memory of another GPU");
    }
  }
  return CUDA_SUCCESS;
}

CUresult run_kernel(KernelWork& work, int gpu) {
  const Entry& entry = *work.function->entry;
  std::vector<void*> params;
  std::size_t offset = 0;
  for (int i = 0; i < entry.count; ++i) {
    params.push_back(work.params.data() + offset);
    offset += (entry.sizes[i] + 63u) / 64 * 64;
  }
  if (const CUresult result = check_pointers(entry, params.data(), gpu); result != CUDA_SUCCESS) {
    return result;
  }
  Launch launch;
  launch.module = &work.function->owner->module;
  launch.entry = &entry;
  launch.grid = work.grid;
  launch.block = work.block;
  launch.shared_bytes = work.shared_bytes;
  launch.params = params.data();
  bool illegal = false;
  const std::string failure = run_grid(launch, &illegal);
  if (!failure.empty()) {
    return fail(illegal ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_LAUNCH_FAILED,
                std::string(entry.name) + ": " + failure);
  }
  return memory().check_guards(entry.name);
}

unsigned char* end_of_copy(CUmemorytype type, const void* host, CUdeviceptr device) {
  const bool is_host = type == CU_MEMORYTYPE_HOST;
  return is_host ? static_cast<unsigned char*>(const_cast<void*>(host))
                 : reinterpret_cast<unsigned char*>(device);
}

CUresult run_copy(const CUDA_MEMCPY3D& copy) {
  if (const CUresult result = check_copy(copy); result != CUDA_SUCCESS) return result;
  const unsigned char* from = end_of_copy(copy.srcMemoryType, copy.srcHost, copy.srcDevice);
  unsigned char* to = end_of_copy(copy.dstMemoryType, copy.dstHost, copy.dstDevice);
  for (std::size_t z = 0; z < copy.Depth; ++z) {
    for (std::size_t y = 0; y < copy.Height; ++y) {
      const std::size_t source = (copy.srcZ + z) * copy.srcHeight + copy.srcY + y;
      const std::size_t target = (copy.dstZ + z) * copy.dstHeight + copy.dstY + y;
      std::memmove(to + target * copy.dstPitch + copy.dstXInBytes,
                   from + source * copy.srcPitch + copy.srcXInBytes, copy.WidthInBytes);
    }
  }
  return CUDA_SUCCESS;
}

CUresult run_fill(const FillWork& fill_work) {
  auto* to = reinterpret_cast<unsigned char*>(fill_work.to);
  const auto element = static_cast<std::size_t>(fill_work.element);
  const Range* range = memory().find(to, fill_work.count * element);
  if (range == nullptr) {
    return fail(CUDA_ERROR_INVALID_VALUE, "a fill outside of device memory");
  }
  if (fill_work.to % element != 0) {
    return fail(CUDA_ERROR_INVALID_VALUE, "a fill that is not aligned to its elements");
  }
  for (std::size_t i = 0; i < fill_work.count; ++i) {
    std::memcpy(to + i * element, &fill_work.value, element);
  }
  return CUDA_SUCCESS;
}

/// One side of a copy must be in memory of its kind.
CUresult check_side(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t bytes,
                    const char* side) {
  const std::string name =
      std::string("the ") + side + " of a copy of " + std::to_string(bytes) + " bytes ";
  const unsigned char* memory_at = end_of_copy(type, host, device);
  const Range* range = memory().find(memory_at, bytes);
  if (type == CU_MEMORYTYPE_HOST) {
    if (range == nullptr || range->gpu < 0) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, name + "is device memory, host memory is expected");
  }
  if (range != nullptr && range->gpu >= 0) return CUDA_SUCCESS;
  const bool begins_inside = memory().find(memory_at, 1) != nullptr;
  return fail(CUDA_ERROR_INVALID_VALUE,
              name + (begins_inside ? "goes beyond its allocation" : "is not device memory"));
}

/// The number of the allocation at the address, or 0.
std::uint64_t allocation_at(CUdeviceptr address) {
  const Range* range = memory().find(reinterpret_cast<const void*>(address), 1);
  return range == nullptr ? 0 : range->number;
}

bool gone(std::uint64_t allocation, CUdeviceptr address) {
  return allocation != 0 && allocation_at(address) != allocation;
}

}  // namespace

std::recursive_mutex& lock() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}

CUctx_st*& current_context() {
  thread_local CUctx_st* context = nullptr;
  return context;
}

CUstreamCaptureMode& thread_capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

CUstream_st* stream_of(CUstream handle) {
  static CUstream_st defaults[gpu_limit];
  if (handle != nullptr) return alive(handle) ? handle : nullptr;
  CUctx_st* context = current_context();
  if (context == nullptr) return nullptr;
  defaults[context->gpu].context = context;
  return &defaults[context->gpu];
}

void enter(const void* handle) { handles().insert(handle); }
void leave(const void* handle) { handles().erase(handle); }
bool alive(const void* handle) { return handles().count(handle) != 0; }

CUresult dead_handle(const char* function) {
  constexpr int invalid_handle = 400;
  return fail(static_cast<CUresult>(invalid_handle),
              std::string(function) + " of a handle that is not alive");
}

std::vector<CUstream_st*>& captures() {
  static auto* const all = new std::vector<CUstream_st*>;
  return *all;
}

CUresult spoil(CUstream_st* stream, const char* function) {
  stream->origin->invalidated = true;
  return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              std::string(function) + " while the stream is captured");
}

CUresult refuse_while_capturing(const char* function) {
  for (CUstream_st* stream : captures()) {
    const bool own = stream->thread == std::this_thread::get_id();
    const bool minded = own ? stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                            : stream->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    const CUstreamCaptureMode caller = thread_capture_mode();
    const bool minds = caller == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                       (caller == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && own);
    if (minded && minds) return spoil(stream, function);
  }
  return CUDA_SUCCESS;
}

CUresult check_copy(const CUDA_MEMCPY3D& copy) {
  const bool flat = copy.Height == 1 && copy.Depth == 1;
  const std::size_t rows = copy.Height * copy.Depth;
  if (copy.WidthInBytes == 0 || rows == 0) return CUDA_SUCCESS;
  if (!flat && (copy.srcPitch < copy.WidthInBytes || copy.dstPitch < copy.WidthInBytes)) {
    return fail(CUDA_ERROR_INVALID_VALUE, "a copy of rows whose pitch is less than their width");
  }
  const std::size_t from =
      flat ? copy.WidthInBytes : copy.srcPitch * (rows - 1) + copy.WidthInBytes;
  const std::size_t to = flat ? copy.WidthInBytes : copy.dstPitch * (rows - 1) + copy.WidthInBytes;
  const CUresult source =
      check_side(copy.srcMemoryType, copy.srcHost, copy.srcDevice, from, "source");
  if (source != CUDA_SUCCESS) return source;
  return check_side(copy.dstMemoryType, copy.dstHost, copy.dstDevice, to, "target");
}

CUresult set_copy(Work& node, const CUDA_MEMCPY3D& copy) {
  if (const CUresult result = check_copy(copy); result != CUDA_SUCCESS) return result;
  node.copy = copy;
  node.source = allocation_at(copy.srcDevice);
  node.target = allocation_at(copy.dstDevice);
  return CUDA_SUCCESS;
}

CUresult check_allocations(const Work& node) {
  if (!gone(node.source, node.copy.srcDevice) && !gone(node.target, node.copy.dstDevice))
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE, "a copy node whose allocation was freed since it was set");
}

CUresult execute(Work& work, int gpu) {
  switch (work.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return run_kernel(work.kernel, gpu);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return run_copy(work.copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return run_fill(work.fill);
    default:
      return CUDA_SUCCESS;
  }
}

CUresult add_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                   const CUgraphEdgeData* how, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!alive(from[i]) || !alive(to[i])) return dead_handle("an edge");
    const CUgraph_st::Edge edge{from[i], to[i], how == nullptr ? CUgraphEdgeData() : how[i]};
    const bool known =
        std::any_of(graph->edges.begin(), graph->edges.end(), [&](const CUgraph_st::Edge& other) {
          return other.from == edge.from && other.to == edge.to;
        });
    if (known) return fail(CUDA_ERROR_INVALID_VALUE, "an edge that is there already");
    const bool kernels = edge.from->work.type == CU_GRAPH_NODE_TYPE_KERNEL &&
                         edge.to->work.type == CU_GRAPH_NODE_TYPE_KERNEL;
    const bool programmatic = edge.how.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    if (programmatic && (!kernels || edge.how.from_port == 0)) {
      return fail(CUDA_ERROR_INVALID_VALUE, "a programmatic edge that is not between kernels");
    }
    graph->edges.push_back(edge);
  }
  return CUDA_SUCCESS;
}

CUresult submit(CUstream_st* stream, Work work) {
  if (stream->context != current_context()) {
    return fail(CUDA_ERROR_INVALID_CONTEXT, "work for a stream of another context");
  }
  if (stream->capture == nullptr) return execute(work, stream->context->gpu);
  if (stream->origin->invalidated) {
    return fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "work for a capture that failed before");
  }
  auto made = std::make_unique<CUgraphNode_st>();
  CUgraphNode node = made.get();
  node->work = std::move(work);
  enter(node);
  stream->capture->nodes.push_back(std::move(made));
  const std::vector<CUgraphNode> to(stream->depends.size(), node);
  const CUresult result =
      add_edges(stream->capture, stream->depends.data(), to.data(), stream->how.data(), to.size());
  stream->depends = {node};
  stream->how = {CUgraphEdgeData()};
  return result;
}

}  // namespace tenon_emulator
