// Sources: the tensors that a value was computed from, kept by a value that has released its
// inputs, so that grad() refuses a gradient that it cannot compute instead of leaving a path out.
//
// Up to 256 tensors are listed. Beyond, every tensor that was built earlier counts as a source: in
// a loop that feeds its result back, memory and time per step stay constant.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

struct Sources {
  std::vector<std::uint64_t> times{};  // Node::built_at of the tensors, ascending
  std::uint64_t before = 0;            // tensors that were built earlier count too
};

}  // namespace tenon
