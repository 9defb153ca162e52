// Copies of batches to a device beside its work, and a clock that measures how long the device was
// idle. For the data loader.
#pragma once

#include <cstddef>
#include <span>

#include "device/image_job.h"

namespace tenon {

/// Slots of host memory that a device reads by itself. The life of a slot: its memory is written
/// (by any threads, after await()), sent (by one thread), received, read by the device's work, and
/// released. The thread that queues the device's work calls receive and release.
class Uploads {
 public:
  virtual ~Uploads() = default;
  virtual std::byte* host(int slot) = 0;
  /// Returns when the slot's last sent contents have been copied.
  virtual void await(int slot) = 0;
  /// Queues the copy of a slot's first `bytes` to the device's memory at `to`. The copy waits for
  /// the work that was queued before the slot's last release, and runs beside all other work.
  virtual void send(int slot, void* to, std::size_t bytes) = 0;
  /// Called before send() of the same slot: the device makes images, uint8 [jobs, 3, height,
  /// width], at `to`. The jobs must stay unchanged until await(). Requires ImageDecoder::changes,
  /// and for files ImageDecoder::found. Throws FormatError if the decoder refuses a file.
  virtual void make_images(int slot, void* to, std::span<const ImageJob> jobs, int height,
                           int width) = 0;
  /// Work queued from now on starts after the copy.
  virtual void receive(int slot) = 0;
  /// Declares that all work that reads the slot's contents has been queued.
  virtual void release(int slot) = 0;
};

/// Measures how long a device does nothing between two points of its work, summed over many pairs.
class IdleClock {
 public:
  virtual ~IdleClock() = default;
  /// Marks the first point: after the work queued so far. Work queued before end() counts as idle
  /// time.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// The sum over all pairs; waits for the last pair.
  virtual double seconds() = 0;
};

}  // namespace tenon
