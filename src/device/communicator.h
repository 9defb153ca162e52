// Communicator: a group of devices that exchange values. Its members may be devices of one process,
// processes of one machine, or of several; who calls passes the parts that its process holds, and
// all members call in the same order.
//
// Work is queued on the parts' streams, behind what stands there. A group serves one call at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tenon/device.h>
#include <tenon/dtype.h>

namespace tenon {

/// How a collective combines elements.
enum class Combine : std::uint8_t { Sum, Max, Min };

class Communicator {
 public:
  virtual ~Communicator() = default;
  /// Members, here and elsewhere.
  virtual int size() const = 0;

  /// What one member gives and where it takes its result; `rank` is its place in the group.
  struct Part {
    int rank = 0;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    void* stream = nullptr;
  };
  /// `from` and `to` hold `count` elements and may be the same memory; sums are made in the order
  /// of ranks, so that all members get the same bits.
  virtual void all_reduce(std::span<const Part> parts, std::int64_t count, DType dtype,
                          Combine by) = 0;
  /// What the member `root` gives, `count` elements, everybody else takes.
  virtual void broadcast(std::span<const Part> parts, std::int64_t count, DType dtype,
                         int root) = 0;
  /// Everybody gives `count` elements and takes all, by rank.
  virtual void all_gather(std::span<const Part> parts, std::int64_t count, DType dtype) = 0;
  /// Everybody gives size() * `count` elements and takes its `count` of what they come to.
  virtual void reduce_scatter(std::span<const Part> parts, std::int64_t count, DType dtype,
                              Combine by) = 0;
};

/// A group of any devices of this process, which exchanges through the host's memory.
std::unique_ptr<Communicator> make_staged_communicator(std::span<const Device> members);

/// The process's group of these devices, by rank: their backend's, or a staged one where they are
/// of several backends. Made when it is first asked for, and kept.
Communicator& communicator_of(std::span<const Device> members);

}  // namespace tenon
