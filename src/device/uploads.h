// What a device with memory of its own does for whoever feeds it batches: copies beside its work,
// and a clock that tells how long it stood idle.
#pragma once

#include <cstddef>
#include <span>

#include "device/image_job.h"

namespace tenon {

/// Slots of host memory that a device reads by itself. In turn a slot's memory is written
/// (any threads, after await()), sent (one thread), received, read by the device's work, and
/// released; received and released by the thread that queues that work.
class Uploads {
 public:
  virtual ~Uploads() = default;
  virtual std::byte* host(int slot) = 0;
  /// Returns when what was sent from the slot last has left it.
  virtual void await(int slot) = 0;
  /// Queues the copy of a slot's first `bytes` to the device's memory at `to`, after the work that
  /// was queued before the slot was released last, beside all other.
  virtual void send(int slot, void* to, std::size_t bytes) = 0;
  /// Before send() of the same slot: has the device make images, uint8 [jobs, 3, height, width],
  /// at `to`. The jobs stay as they are until await(). Only where ImageDecoder::changes; of
  /// files, where it is found. Throws FormatError when the decoder refuses one.
  virtual void make_images(int slot, void* to, std::span<const ImageJob> jobs, int height,
                           int width) = 0;
  /// Work queued from now on begins after the copy.
  virtual void receive(int slot) = 0;
  /// All work that reads what was sent has been queued.
  virtual void release(int slot) = 0;
};

/// Adds up how long a device does nothing between two points of its work, one pair after another.
class IdleClock {
 public:
  virtual ~IdleClock() = default;
  /// Work queued so far ends the first point, work queued between both counts as idle.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// Of all pairs; waits for the last to be over.
  virtual double seconds() = 0;
};

}  // namespace tenon
