// Counters in a kernel's module by which the blocks of a launch find out who comes last.
#pragma once

#include <cstdint>
#include <mutex>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::cuda {

/// Hands out counters: launches that run side by side must not share any. Which ones are taken
/// again after a while shows nowhere, since a launch leaves them at zero.
class Tickets {
 public:
  explicit Tickets(std::int64_t most) : most_(most) {}

  /// The first of `count` counters in a row. Throws InternalError when there are not so many.
  std::uint64_t take(std::int64_t count) {
    if (count > most_) throw InternalError(cat(count, " counters of blocks, of ", most_));
    const std::lock_guard lock(mutex_);
    if (next_ + count > most_) next_ = 0;
    next_ += count;
    return static_cast<std::uint64_t>(next_ - count);
  }

 private:
  const std::int64_t most_;
  std::mutex mutex_;
  std::int64_t next_ = 0;
};

}  // namespace tenon::cuda
