// Members of Scalar that throw errors.
#include <tenon/number.h>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon {

void Scalar::refuse(std::uint64_t value) {
  throw ValueError(
      cat("the number ", value, " does not fit int64: give it as a double, which rounds it"));
}

}  // namespace tenon
