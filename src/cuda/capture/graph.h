// A CUDA graph: built node by node, then launched repeatedly.
//
// Captured work depends on the nodes that the caller names and on nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "base/system/env.h"
#include "cuda/device/gpu.h"
#include "cuda/device/opening/driver.h"

namespace tenon::cuda {

using Nodes = std::vector<CUgraphNode>;

/// A copy of contiguous bytes.
CUDA_MEMCPY3D flat_copy(const void* to, const void* from, std::int64_t bytes);
/// A copy of rows of `bytes` bytes with the given pitches.
CUDA_MEMCPY3D rows_copy(void* to, std::int64_t to_pitch, const void* from, std::int64_t from_pitch,
                        std::int64_t bytes, int rows);

/// A graph under construction and, once instantiated, its executable.
class Graph {
 public:
  explicit Graph(const Context& context);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Captures the work that `work` queues on the stream, after the nodes `before`; returns the last
  /// nodes.
  template <class Work>
  Nodes capture(CUstream stream, const Nodes& before, const Work& work) {
    begin_capture(stream, before);
    Nodes last;
    try {
      work();
      last = captured(stream);
    } catch (...) {
      CUgraph unused = nullptr;
      driver().cuStreamEndCapture(stream, &unused);
      throw;
    }
    end_capture(stream);
    return last;
  }

  CUgraphNode add_copy(const Nodes& before, const CUDA_MEMCPY3D& copy);
  /// Only flat copies can be changed, and only to flat copies.
  void patch_copy(CUgraphNode node, const CUDA_MEMCPY3D& copy);

  /// Call before instantiate(): these nodes, and the nodes that wait for them, are launched without
  /// overlap.
  void forbid_overlap(const Nodes& nodes) {
    apart_.insert(apart_.end(), nodes.begin(), nodes.end());
  }
  void instantiate();
  CUgraph handle() const { return graph_; }
  void launch(CUstream stream);

 private:
  void begin_capture(CUstream stream, const Nodes& before);
  static Nodes captured(CUstream stream);
  static void end_capture(CUstream stream);

  const Context& context_;
  CUgraph graph_ = nullptr;
  Nodes apart_;
  CUgraphExec executable_ = nullptr;
};

/// A stream used only for capture; the GPU's own stream keeps taking other work.
class CaptureStream {
 public:
  CaptureStream() {
    check(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
  }
  ~CaptureStream() { driver().cuStreamDestroy(stream_); }
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;
  CUstream get() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

/// True if programs are captured. Drivers before 12.3 cannot capture into an existing graph, and
/// TENON_CUDA_GRAPHS=off is for tools that cannot follow graphs.
inline bool can_capture() {
  static const bool wanted = env_flag("TENON_CUDA_GRAPHS", true);
  return wanted && driver().cuStreamBeginCaptureToGraph != nullptr &&
         driver().cuStreamGetCaptureInfo != nullptr;
}

}  // namespace tenon::cuda
