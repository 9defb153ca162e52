// Builds the message.
#include "plan/graph/outside.h"

#include "base/str.h"

namespace tenon {

std::string index_outside(const std::string& op, std::int64_t index, std::int64_t axis,
                          std::int64_t size, std::int64_t place) {
  return cat(op, ": index ", index, " is out of range for axis ", axis, " of size ", size,
             ", at element ", place, " of the indices (indices count from 0)");
}

}  // namespace tenon
