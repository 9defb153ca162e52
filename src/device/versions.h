// Versions of assigned values: which runs read and assign a host buffer now. Readers see the values
// of the last completed step, all from the same step, whatever other threads do.
//
// A run first declares what it reads and what it assigns. A step assigns in place while there are
// no other readers. While a result of an earlier assignment is held (hold_value()), and once
// another thread has read a buffer, for some steps afterwards, the step works on a copy, which
// becomes the buffer's memory when the step ends; so readers never wait for it. A reader waits only
// if a step is assigning its buffer in place. One lock protects all of this; it is locked for a few
// instructions for each buffer, never during a run. GPU work needs no versions: it is queued in
// order.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/buffer.h"

namespace tenon {

/// The buffers that one run has begun to read and to assign.
class BufferUse {
 public:
  BufferUse() = default;
  BufferUse(const BufferUse&) = delete;
  BufferUse& operator=(const BufferUse&) = delete;
  /// Abandons a run that was not ended.
  ~BufferUse() { abandon(); }

  /// Begins a run on the buffers that are `assigned` and others that are only `read`. Returns -1,
  /// or k if another thread is assigning assigned[k]; then nothing has begun. May throw
  /// MemoryError.
  int begin(std::span<Buffer* const> assigned, std::span<Buffer* const> read);
  /// The run's memory for assigned[k] and read[k].
  std::byte* assigned(std::size_t k) const { return assigned_[k].memory; }
  std::byte* read(std::size_t k) const { return read_[k].memory; }
  /// Ends the run: the assigned values become visible.
  void end() noexcept { finish(true); }
  /// Ends a failed run: values assigned in other memory are dropped.
  void abandon() noexcept { finish(false); }

 private:
  struct Share {
    Buffer* buffer = nullptr;
    std::shared_ptr<Buffer> held;  // the memory that is read, or the new memory being written
    std::byte* memory = nullptr;
    bool beside = false;
  };
  bool try_begin(std::span<Buffer* const> assigned, std::span<Buffer* const> read, int& taken);
  void finish(bool good) noexcept;
  std::vector<Share> assigned_, read_;
};

/// A BufferUse for one buffer that the host overwrites completely, without lists.
class WholeWrite {
 public:
  WholeWrite() = default;
  WholeWrite(const WholeWrite&) = delete;
  WholeWrite& operator=(const WholeWrite&) = delete;
  ~WholeWrite() { finish(false); }
  /// Returns false if another thread is assigning the buffer. May throw MemoryError.
  bool begin(Buffer& buffer);
  /// The memory to write to.
  Buffer& target() const { return held_ == nullptr ? *buffer_ : *held_; }
  void end() noexcept { finish(true); }

 private:
  void finish(bool good) noexcept;
  Buffer* buffer_ = nullptr;
  std::shared_ptr<Buffer> held_;  // new memory, if the old value has readers
};

/// Makes `result` hold the value that `variable` has now (Buffer::mirror()). Waits while another
/// thread assigns the variable in place.
void hold_value(Buffer& result, Buffer& variable);

/// Before a step assigns a buffer of a GPU: if a result of an earlier assignment is held, gives the
/// buffer memory of its own, with the same value. The copy is queued before the step.
void keep_shared_value(Buffer& buffer);

/// Records that this thread has assigned the buffer, on any device.
void note_assigned(Buffer& buffer) noexcept;
/// Whether this thread was the last to assign the buffer.
bool assigned_here(const Buffer& buffer) noexcept;

}  // namespace tenon
