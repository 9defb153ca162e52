// A caching allocator for one GPU's memory.
//
// A released block may be handed out again at once, because all work of a GPU is queued on one
// stream: work of the new owner runs after work of the old one. Small blocks are carved out of
// slabs, one size class a slab. Larger blocks are separate allocations of multiples of 2 MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "device/memory.h"

namespace tenon::cuda {

/// The source of a pool's memory: a GPU, or a test.
struct RawMemory {
  std::function<void*(std::size_t bytes)> take;  // null when there is no more
  std::function<void(void* memory)> give;
};

class Pool {
 public:
  /// Without `keeps`, every request goes to the GPU and is returned on release, so that tools that
  /// watch allocations see each one's bounds.
  explicit Pool(RawMemory raw, bool keeps = true) : raw_(std::move(raw)), keeps_(keeps) {}

  /// 256-byte aligned; null if the GPU or the limit refuses, even after trimming.
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;
  /// Returns unused memory to the GPU.
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
  void* allocate_raw(std::size_t bytes);
  void free_raw(void* memory);
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
