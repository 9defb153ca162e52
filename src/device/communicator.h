// Communicator: a group of devices that exchange values. The members may belong to one process, to
// processes of one machine, or to several machines. The caller passes the parts of its own process,
// and all members call in the same order.
//
// Work is queued on the parts' streams, after the work already there. A group serves one call at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tenon/dtype.h>

namespace tenon {

/// How a collective combines elements.
enum class Combine : std::uint8_t { Sum, Max, Min };

class Communicator {
 public:
  virtual ~Communicator() = default;
  /// Number of members in all processes.
  virtual int size() const = 0;

  /// One member's input and output memory; `rank` is its position in the group.
  struct Part {
    int rank = 0;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    void* stream = nullptr;
  };
  /// `from` and `to` hold `count` elements and may be the same memory. Sums are computed in rank
  /// order, so that all members get the same bits.
  virtual void all_reduce(std::span<const Part> parts, std::int64_t count, DType dtype,
                          Combine by) = 0;
  /// The member `root` sends `count` elements to all others.
  virtual void broadcast(std::span<const Part> parts, std::int64_t count, DType dtype,
                         int root) = 0;
  /// Every member sends `count` elements and receives the elements of all members, by rank.
  virtual void all_gather(std::span<const Part> parts, std::int64_t count, DType dtype) = 0;
  /// Every member sends size() * `count` elements and receives its `count` elements of the combined
  /// result.
  virtual void reduce_scatter(std::span<const Part> parts, std::int64_t count, DType dtype,
                              Combine by) = 0;
};

}  // namespace tenon
