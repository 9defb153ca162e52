// Builds the message.
#include "plan/graph/outside.h"

namespace tenon {

ValueError index_outside(const OpPlace& op, std::int64_t index, std::int64_t axis,
                         std::int64_t size, std::int64_t place, const char* more) {
  return make_error<ValueError>(op, ": index ", index, " is out of range for axis ", axis,
                                " of size ", size, ", at element ", place,
                                " of the indices (indices count from 0)", more);
}

}  // namespace tenon
