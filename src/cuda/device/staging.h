// Pinned host memory for copies between host and GPU.
//
// A ring of segments. To the GPU: bytes are packed into the current segment and queued from there.
// An event closes a full segment, and the ring waits for the event before the segment is filled
// again. A copy therefore returns as soon as its bytes are in the ring. From the GPU: two segments
// alternate. Not thread-safe; its owner locks.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/device/gpu.h"

namespace tenon::cuda {

class Staging {
 public:
  /// `stream`: the stream on which copies are queued. Memory is pinned at the first copy.
  Staging(const Context& context, CUstream stream) : context_(context), stream_(stream) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Queues the copy; the host memory may be reused when it returns.
  void to_gpu(void* to, const void* from, std::size_t bytes);
  /// Returns when the bytes have arrived, and so when all work queued before is done.
  void to_host(void* to, const void* from, std::size_t bytes);

  static constexpr std::size_t kSegment = std::size_t{2} << 20;
  static constexpr int kSegments = 8;

 private:
  struct Segment {
    char* memory = nullptr;
    std::size_t used = 0;
    Event event;
    bool pending = false;
  };
  void pin();
  void close(Segment& segment);
  void wait(Segment& segment);
  Segment& room_for(std::size_t bytes);

  const Context& context_;
  CUstream stream_;
  void* memory_ = nullptr;  // of all segments
  std::vector<Segment> up_, down_;
  std::size_t current_ = 0;
};

}  // namespace tenon::cuda
