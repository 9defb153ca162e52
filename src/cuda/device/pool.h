// Device memory in blocks that are kept for reuse: the bookkeeping of one GPU's memory.
//
// A block may be handed out again at once after its release, because all work of a GPU is queued
// on one stream: whatever the new owner queues comes after what the old one did. Small blocks are
// carved out of slabs, one size class a slab; larger ones are multiples of 2 MiB of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "device/buffer.h"

namespace tenon::cuda {

/// Where a pool gets its memory: a GPU, or a test.
struct RawMemory {
  std::function<void*(std::size_t bytes)> take;  // null when there is no more
  std::function<void(void* memory)> give;
};

class Pool {
 public:
  /// Without `keeps`, every request is one of the GPU and goes back when it is released, so that
  /// tools which watch allocations see where each ends.
  explicit Pool(RawMemory raw, bool keeps = true) : raw_(std::move(raw)), keeps_(keeps) {}

  /// 256-byte aligned; null when the GPU or the limit refuses, even after trimming.
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;
  /// Returns what is not in use to the GPU.
  void trim();
  void set_limit(std::int64_t bytes);
  std::int64_t limit() const;
  PoolStats stats() const;

  static constexpr std::size_t kSlab = std::size_t{2} << 20;
  static constexpr std::size_t kLargestSmall = kSlab / 4;
  /// Bytes that a request of `bytes` takes.
  static std::size_t rounded(std::size_t bytes);

 private:
  struct Slab {
    int free_count = 0, count = 0;
  };
  void* take_raw(std::size_t bytes);
  void give_raw(void* memory);
  void* take_exact(std::size_t bytes);
  void* take_small(std::size_t size);
  void* take_large(std::size_t size);
  void trim_locked();
  void account(std::int64_t in_use, std::int64_t cached);

  RawMemory raw_;
  const bool keeps_;
  mutable std::mutex mutex_;
  PoolStats stats_;
  std::int64_t limit_ = 0;
  std::map<std::size_t, std::vector<char*>> small_;  // free blocks by size
  std::map<char*, Slab> slabs_;                      // by address
  std::multimap<std::size_t, void*> large_;          // free blocks by size
  std::map<void*, std::size_t> large_sizes_;         // of blocks in use: may exceed the request
};

}  // namespace tenon::cuda
