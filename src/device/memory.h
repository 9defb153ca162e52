// DeviceMemory: allocation and copies on a backend's devices. Through it Buffer needs no driver.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

/// Statistics of a caching pool, in bytes.
struct PoolStats {
  std::int64_t in_use = 0;
  std::int64_t peak = 0;
  std::int64_t cached = 0;
  std::int64_t system_allocations = 0;  // calls that the cache could not serve, since the start
  std::int64_t system_releases = 0;     // blocks returned to a GPU's driver, since the start
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// Uninitialised, 256-byte aligned, from a caching pool. Throws MemoryError naming the size, the
  /// memory in use and the GPU. `index` is the GPU.
  virtual void* allocate(std::size_t bytes, int index) = 0;
  virtual void release(void* memory, std::size_t bytes, int index) noexcept = 0;
  /// Copies in the order of the GPU's work: after everything queued on its stream so far. The two
  /// functions that touch host memory return when that memory may be read or reused.
  virtual void to_host(void* to, const void* from, std::size_t bytes, int index) = 0;
  virtual void from_host(void* to, const void* from, std::size_t bytes, int index) = 0;
  virtual void copy(void* to, int to_index, const void* from, int from_index,
                    std::size_t bytes) = 0;
  virtual PoolStats stats(int index) = 0;
  virtual void trim(int index) = 0;
  /// The most bytes that the pool may take from the GPU; 0: no limit.
  virtual void set_limit(std::int64_t bytes, int index) = 0;
};

}  // namespace tenon
