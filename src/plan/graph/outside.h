// The error message for an index outside its axis, the same on every device. GPUs add that the work
// was not stopped.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

/// `op` is the op with its layer (where() in graph/node.h). `place` is the flat position in the
/// index tensor.
std::string index_outside(const std::string& op, std::int64_t index, std::int64_t axis,
                          std::int64_t size, std::int64_t place);

}  // namespace tenon
