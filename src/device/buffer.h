// Buffer: a reference-counted block of memory on a device. It has no shape and no dtype.
//
// Host memory comes from a caching pool (64-byte aligned, by size class), so that a training loop
// in its steady state asks the system for no memory. A Buffer may also be a window into another one
// (flat parameter arenas) or borrow foreign memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <tenon/device.h>

namespace tenon {

class Buffer {
 public:
  /// Uninitialised memory. Throws MemoryError naming the size if the system refuses.
  static std::shared_ptr<Buffer> allocate(std::size_t bytes, Device device = {});
  /// An empty buffer on a device that need not be started.
  static std::shared_ptr<Buffer> none(Device device);
  /// A window of `bytes` at `offset` inside `parent`, which it keeps alive.
  static std::shared_ptr<Buffer> window(std::shared_ptr<Buffer> parent, std::size_t offset,
                                        std::size_t bytes);

  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  /// Copies from host memory, or from another buffer on any device, in the order of the devices'
  /// work. The source may be reused when the call returns.
  void write(const void* host, std::size_t bytes);
  void copy_from(const Buffer& source, std::size_t bytes);
  /// Copies to host memory; returns when the copy is complete.
  void read(void* host, std::size_t bytes) const;

  /// A reference that keeps the memory alive for a reader while the buffer's memory may be
  /// exchanged (versions.h).
  std::shared_ptr<Buffer> share();
  /// Takes over the memory of another buffer of the same size, after share(). Returns the holder of
  /// the previous memory.
  std::shared_ptr<Buffer> adopt(std::shared_ptr<Buffer> memory) noexcept;

  /// Whether somebody else holds the memory that share() gave.
  bool is_shared() const noexcept { return parent_ != nullptr && parent_.use_count() > 1; }
  /// Makes this buffer, which owns no memory, a window of all of another buffer's memory, which it
  /// keeps alive; null: of none. An assignment to the other buffer then leaves this memory alone:
  /// hold_value() in versions.h, which has the lock that this needs. Returns the holder of the
  /// previous memory.
  std::shared_ptr<Buffer> mirror(Buffer* other);

  void* data() noexcept { return data_; }
  const void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }

  /// The current users. All members but the last are protected by the lock of versions.h.
  struct Access {
    std::uint32_t readers = 0;  // runs
    std::uint32_t served = 0;   // number of further steps that leave the old value to readers
    bool assigning = false, in_place = false;
    std::atomic<std::uint32_t> assigner{0};  // the thread that assigned it last; 0: none
  };
  Access access;

 private:
  Buffer() = default;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t reserved_ = 0;  // bytes taken from the pool; 0 for a window and for an empty buffer
  Device device_;
  std::shared_ptr<Buffer> parent_;
};

}  // namespace tenon
