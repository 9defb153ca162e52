// A CUDA graph: made node by node, then launched again and again.
//
// Work is captured into it behind the nodes that it is told to wait for and behind nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "base/env.h"
#include "cuda/device/driver.h"
#include "cuda/device/gpu.h"

namespace tenon::cuda {

using Nodes = std::vector<CUgraphNode>;

/// Bytes that lie one after another.
CUDA_MEMCPY3D flat_copy(const void* to, const void* from, std::int64_t bytes);
/// Rows of `bytes` that lie so far apart.
CUDA_MEMCPY3D rows_copy(void* to, std::int64_t to_pitch, const void* from, std::int64_t from_pitch,
                        std::int64_t bytes, int rows);

/// A graph under construction and, once instantiated, its executable.
class Graph {
 public:
  explicit Graph(const Context& context);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// What `work` queues on the stream, behind `before`; returns the nodes that end it.
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
  /// Only flat copies can be changed, and only to flat ones.
  void patch_copy(CUgraphNode node, const CUDA_MEMCPY3D& copy);

  /// Before instantiate(): launches these nodes behind, and others behind them, without overlap.
  void keep_apart(const Nodes& nodes) { apart_.insert(apart_.end(), nodes.begin(), nodes.end()); }
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

/// A stream that only captures: work queued meanwhile goes to the GPU's own.
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

/// Whether programs are captured: drivers before 12.3 cannot capture into a graph, and
/// TENON_CUDA_GRAPHS=off is for tools that cannot follow graphs.
inline bool can_capture() {
  static const bool wanted = env_flag("TENON_CUDA_GRAPHS", true);
  return wanted && driver().cuStreamBeginCaptureToGraph != nullptr &&
         driver().cuStreamGetCaptureInfo != nullptr;
}

}  // namespace tenon::cuda
