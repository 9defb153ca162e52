// Versions of values that are assigned: who reads and who assigns a buffer of host memory now.
// Readers see what the last step that has ended assigned, all of it of the same step, whatever
// other threads are doing.
//
// A run says first what it reads and what it assigns. A step assigns in place while nobody else
// reads; once another thread has read a buffer, and for some steps after, it works on a copy, which
// becomes the buffer's memory when the step ends, so that readers never wait for it. Only a reader
// that meets a step in place waits for its end. One lock guards all of this; it is held for a few
// instructions a buffer, never during a run. Work on a GPU needs none of it: it is queued in
// order.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/buffer.h"

namespace tenon {

/// What one run has begun to read and to assign.
class BufferUse {
 public:
  BufferUse() = default;
  BufferUse(const BufferUse&) = delete;
  BufferUse& operator=(const BufferUse&) = delete;
  /// Abandons what was not ended.
  ~BufferUse() { abandon(); }

  /// Begins with buffers that are `assigned` and others that are only `read`. -1, or k where
  /// another thread is assigning assigned[k]: then nothing has begun. May throw MemoryError.
  int begin(std::span<Buffer* const> assigned, std::span<Buffer* const> read);
  /// Where the run finds assigned[k] and read[k].
  std::byte* assigned(std::size_t k) const { return assigned_[k].memory; }
  std::byte* read(std::size_t k) const { return read_[k].memory; }
  /// The run has ended: what it assigned is the buffers' from now on.
  void end() noexcept { finish(true); }
  /// It failed: what was assigned beside is dropped.
  void abandon() noexcept { finish(false); }

 private:
  struct Share {
    Buffer* buffer = nullptr;
    std::shared_ptr<Buffer> held;  // the memory that is read, or that which is being made
    std::byte* memory = nullptr;
    bool beside = false;
  };
  bool try_begin(std::span<Buffer* const> assigned, std::span<Buffer* const> read, int& taken);
  void finish(bool good) noexcept;
  std::vector<Share> assigned_, read_;
};

/// One buffer that the host writes whole, with nothing to read: as a BufferUse, without its lists.
class WholeWrite {
 public:
  WholeWrite() = default;
  WholeWrite(const WholeWrite&) = delete;
  WholeWrite& operator=(const WholeWrite&) = delete;
  ~WholeWrite() { finish(false); }
  /// False where another thread is assigning it. May throw MemoryError.
  bool begin(Buffer& buffer);
  /// Where to write.
  Buffer& target() const { return held_ == nullptr ? *buffer_ : *held_; }
  void end() noexcept { finish(true); }

 private:
  void finish(bool good) noexcept;
  Buffer* buffer_ = nullptr;
  std::shared_ptr<Buffer> held_;  // beside the value that others read
};

/// Says that this thread has assigned the buffer, on whatever device.
void note_assigned(Buffer& buffer) noexcept;
/// Whether it was this thread that assigned it last.
bool assigned_here(const Buffer& buffer) noexcept;

}  // namespace tenon
