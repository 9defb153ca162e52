// Sources: the tensors that a value was computed from, kept by a value that has released its
// inputs, so that grad() refuses a gradient that it cannot compute instead of leaving a path out.
//
// Up to 256 tensors are listed. Beyond, every tensor that was built earlier counts as a source: in
// a loop that feeds its result back, memory and time per step stay constant.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon {

struct Node;

class Sources {
 public:
  /// The tensors below a pending node that gradients could reach, and the sources of those that
  /// have released their inputs. Null if there are none. Reads at most a few hundred nodes.
  static std::unique_ptr<const Sources> of(const Node& node);

  /// Whether a value that has released its inputs may have been computed from a tensor. Certain if
  /// false. An assignment keeps no list: every tensor that was built earlier counts.
  static bool may_hold(const Node& value, const Node& tensor);
  /// Whether that can be true of any tensor. False for most values of a graph.
  static bool may_hold_any(const Node& value);

 private:
  std::vector<std::uint64_t> times_{};  // Node::built_at of the tensors, ascending
  std::uint64_t before_ = 0;            // tensors that were built earlier count too
};

}  // namespace tenon
