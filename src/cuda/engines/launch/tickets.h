// Counters in a kernel's module with which the blocks of a launch find out which block is the last.
#pragma once

#include <cstdint>
#include <mutex>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::cuda {

/// Hands out counters; concurrent launches must not share one. Counters are reused after a while,
/// which is safe because a launch leaves them at zero.
class Tickets {
 public:
  explicit Tickets(std::int64_t most) : most_(most) {}

  /// The first of `count` consecutive counters. Throws InternalError if there are fewer.
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
