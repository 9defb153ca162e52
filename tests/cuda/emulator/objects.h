// The objects behind the emulated driver's handles, and how work is submitted to a stream.
//
// Work runs at once, in the order of the calls. A stream that is being captured collects its work
// in a graph instead. Every function of the interface holds one lock, so nothing here locks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "abi.h"
#include "cuda/device/opening/driver_api.h"
#include "gpu.h"

#define TENON_EXPORT extern "C" __attribute__((visibility("default")))

namespace tenon::cuda {

struct CUctx_st {
  int gpu = 0;
  int users = 0;
};

struct CUmod_st {
  CUctx_st* context = nullptr;
  void* library = nullptr;
  tenon_emulator::Module module{};
  std::deque<CUfunc_st> functions;
};

struct CUfunc_st {
  CUmod_st* owner = nullptr;
  const tenon_emulator::Entry* entry = nullptr;
  int dynamic_limit = 48 * 1024;
  int static_bytes() const {
    return static_cast<int>(owner->module.shared_end - owner->module.shared_begin);
  }
};

struct CUstream_st {
  CUctx_st* context = nullptr;
  CUgraph_st* capture = nullptr;  // the graph that collects its work
  CUstream_st* origin = nullptr;  // the stream whose capture it joined; itself when it began one
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;  // the thread that began the capture
  bool invalidated = false;
  bool adopted = false;  // captures into a graph of the caller
  std::uint64_t capture_id = 0;
  std::vector<CUgraphNode> depends;  // nodes that its next node waits for
  std::vector<CUgraphEdgeData> how;  // likewise
  std::vector<CUstream_st*> joined;  // streams that waited for an event of this capture
};

struct CUevent_st {
  bool timing = true, recorded = false;
  std::chrono::steady_clock::time_point time;
  CUgraph_st* capture = nullptr;  // recorded in a capture
  CUstream_st* origin = nullptr;
  std::vector<CUgraphNode> depends;  // the stream's dependencies at the record
};

}  // namespace tenon::cuda

namespace tenon_emulator {

using namespace tenon::cuda;

struct KernelWork {
  CUfunc_st* function = nullptr;
  Index3 grid{1, 1, 1}, block{1, 1, 1};
  unsigned shared_bytes = 0;
  std::vector<unsigned char> params;  // copies, one after another
};

struct FillWork {
  CUdeviceptr to = 0;
  unsigned value = 0;
  int element = 1;  // bytes
  std::size_t count = 0;
};

struct Work {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  KernelWork kernel;
  CUDA_MEMCPY3D copy;
  /// Numbers of the allocations that a copy node was made for; 0: any.
  std::uint64_t source = 0, target = 0;
  FillWork fill;
};

/// Runs it now, on the GPU.
CUresult execute(Work& work, int gpu);
/// Adds edges to a graph; `how` may be null. Fails for what a driver refuses.
CUresult add_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                   const CUgraphEdgeData* how, std::size_t count);
/// Runs it or adds it to the graph that the stream collects.
CUresult submit(CUstream_st* stream, Work work);
CUresult check_copy(const CUDA_MEMCPY3D& copy);
/// Makes a node copy so, for the current allocations at these addresses.
CUresult set_copy(Work& node, const CUDA_MEMCPY3D& copy);
/// Fails if the address now belongs to another allocation. A driver would copy, but tools that
/// check a node's allocations at each launch, such as compute-sanitizer, crash.
CUresult check_allocations(const Work& node);

/// The context of the calling thread; null when it has none.
CUctx_st*& current_context();

/// The calling thread's capture mode; global at first.
CUstreamCaptureMode& thread_capture_mode();

/// The stream of a handle; a null handle is the context's default stream. Null for a dead stream.
CUstream_st* stream_of(CUstream handle);

/// Registers a live handle. Every other handle is refused.
void enter(const void* handle);
void leave(const void* handle);
bool alive(const void* handle);
CUresult dead_handle(const char* function);

/// Streams with a capture under way.
std::vector<CUstream_st*>& captures();
/// For calls that a capture forbids (allocation, synchronization): fails and invalidates the
/// capture.
CUresult refuse_while_capturing(const char* function);
CUresult spoil(CUstream_st* stream, const char* function);

std::recursive_mutex& lock();

}  // namespace tenon_emulator

namespace tenon::cuda {

struct CUgraphNode_st {
  tenon_emulator::Work work;
};

/// Work runs in the order of `nodes`; edges are stored but not used.
struct CUgraph_st {
  struct Edge {
    CUgraphNode from, to;
    CUgraphEdgeData how;
  };
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<Edge> edges;
};

struct CUgraphExec_st {
  CUctx_st* context = nullptr;
  struct Item {
    const CUgraphNode_st* node;
    tenon_emulator::Work work;
  };
  std::vector<Item> items;
};

}  // namespace tenon::cuda

/// First statement of every function of the interface.
#define TENON_ENTER(name)                                                   \
  const std::lock_guard<std::recursive_mutex> held(tenon_emulator::lock()); \
  if (const CUresult asked = tenon_emulator::injected(name); asked != CUDA_SUCCESS) return asked

#define TENON_NEED_CONTEXT(name)                                                        \
  if (tenon_emulator::current_context() == nullptr) {                                   \
    return tenon_emulator::fail(CUDA_ERROR_INVALID_CONTEXT, name " without a context"); \
  }
