// The error for reading a node's attributes as the wrong struct.
#include "graph/attrs.h"

#include <tenon/error.h>

#include "base/str.h"

namespace tenon {

void Attrs::refuse() const {
  throw InternalError(
      cat("a node's attributes are of kind ", value_.index(), ", but its op has another kind"));
}

}  // namespace tenon
