// Pinned host memory through which copies between host and GPU go.
//
// A ring of segments. To the GPU: bytes are packed into the current segment and queued from there;
// an event closes a full segment, and the ring waits for it before the segment is filled again, so
// a copy returns as soon as its bytes stand in the ring. From the GPU: two segments take turns.
// Not for several threads at once; its owner locks.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/device/gpu.h"

namespace tenon::cuda {

class Staging {
 public:
  /// `stream` is the one on which its copies are queued. Memory is pinned at the first copy.
  Staging(const Context& context, CUstream stream) : context_(context), stream_(stream) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Queues the copy; the host memory may be reused when it returns.
  void to_gpu(void* to, const void* from, std::size_t bytes);
  /// Returns when the bytes are there, and so everything queued before is done.
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
