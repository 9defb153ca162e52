// The ring of pinned segments.
#include "cuda/device/staging.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "cuda/device/opening/driver.h"

namespace tenon::cuda {
namespace {

constexpr int kDownSegments = 2;
constexpr std::size_t kParallelPiece = std::size_t{256} << 10;

// Several threads copy, because one core cannot saturate the bus.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes < 2 * kParallelPiece) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto pieces = static_cast<std::int64_t>((bytes + kParallelPiece - 1) / kParallelPiece);
  parallel_for(pieces, [&](std::int64_t i, int) {
    const std::size_t start = static_cast<std::size_t>(i) * kParallelPiece;
    std::memcpy(static_cast<char*>(to) + start, static_cast<const char*>(from) + start,
                std::min(kParallelPiece, bytes - start));
  });
}

}  // namespace

void Staging::pin() {
  if (memory_ != nullptr) return;
  const OutsideCapture outside;
  void* memory = nullptr;
  check(driver().cuMemHostAlloc(&memory, kSegment * (kSegments + kDownSegments),
                                CU_MEMHOSTALLOC_PORTABLE),
        "pinning host memory for copies to ", context_.title());
  up_.resize(kSegments);
  down_.resize(kDownSegments);
  char* next = static_cast<char*>(memory);
  for (std::vector<Segment>* list : {&up_, &down_})
    for (Segment& segment : *list) {
      segment.memory = next;
      segment.event = Event(context_);
      next += kSegment;
    }
  memory_ = memory;
}

Staging::~Staging() {
  if (memory_ != nullptr) loaded_driver().table.cuMemFreeHost(memory_);
}

void Staging::close(Segment& segment) {
  check(driver().cuEventRecord(segment.event.get(), stream_), "recording an event on ",
        context_.title());
  segment.pending = true;
}

void Staging::wait(Segment& segment) {
  if (!segment.pending) return;
  check(driver().cuEventSynchronize(segment.event.get()), "waiting for a copy on ",
        context_.title());
  segment.pending = false;
}

Staging::Segment& Staging::room_for(std::size_t bytes) {
  if (up_[current_].used + bytes > kSegment) {
    close(up_[current_]);
    current_ = (current_ + 1) % up_.size();
    wait(up_[current_]);
    up_[current_].used = 0;
  }
  return up_[current_];
}

void Staging::to_gpu(void* to, const void* from, std::size_t bytes) {
  pin();
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(bytes - done, kSegment);
    Segment& segment = room_for(piece);
    char* place = segment.memory + segment.used;
    copy_bytes(place, static_cast<const char*>(from) + done, piece);
    check(driver().cuMemcpyHtoDAsync(address(to) + done, place, piece, stream_), "copying ", bytes,
          " bytes to ", context_.title());
    // Copies start at cache-line boundaries.
    segment.used = std::min(kSegment, (segment.used + piece + 63) / 64 * 64);
    done += piece;
  }
}

void Staging::to_host(void* to, const void* from, std::size_t bytes) {
  pin();
  const std::size_t pieces = (bytes + kSegment - 1) / kSegment;
  const auto size = [&](std::size_t i) { return std::min(kSegment, bytes - i * kSegment); };
  const auto queue = [&](std::size_t i) {
    Segment& segment = down_[i % down_.size()];
    check(
        driver().cuMemcpyDtoHAsync(segment.memory, address(from) + i * kSegment, size(i), stream_),
        "copying ", bytes, " bytes from ", context_.title());
    close(segment);
  };
  if (pieces > 0) queue(0);
  for (std::size_t i = 0; i < pieces; ++i) {
    if (i + 1 < pieces) queue(i + 1);
    Segment& segment = down_[i % down_.size()];
    wait(segment);
    copy_bytes(static_cast<char*>(to) + i * kSegment, segment.memory, size(i));
  }
}

}  // namespace tenon::cuda
