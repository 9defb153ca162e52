// A matrix product as cuBLASLt takes it: one batch axis, operands with one contiguous axis.
#pragma once

#include <string>

#include "cuda/engines/vendor_parts.h"
#include "plan/region.h"

namespace tenon::cuda {

/// An operand in memory: rows.inner is the contiguous axis. `plain` when that is the operand's
/// second axis (row-major), else its first.
struct LtOperand {
  VendorRows rows;
  bool plain = true;
};

/// out[batch, m, n] = a[batch, m, k] b[batch, k, n], out contiguous.
struct LtShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  LtOperand a, b;
};

/// False, with a reason in *why, when the product cannot be expressed.
bool lt_shape(const Contraction& c, LtShape& shape, std::string* why);

}  // namespace tenon::cuda
