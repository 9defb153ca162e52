// What an index outside its axis is told as, on every device; GPUs add that work went on.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

/// `op` is the op with its layer (where() in graph/node.h); `place` counts the elements of the
/// index tensor.
std::string index_outside(const std::string& op, std::int64_t index, std::int64_t axis,
                          std::int64_t size, std::int64_t place);

}  // namespace tenon
