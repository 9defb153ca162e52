// A matrix product as libraries and tensor copies take it: one batch axis, operands with one
// contiguous axis.
#pragma once

#include <cstdint>
#include <string>

#include "plan/region.h"

namespace tenon::cuda {

/// An array [batch, outer, inner] whose inner axis is contiguous; strides in elements.
struct MatrixRows {
  std::int64_t offset = 0;
  std::int64_t batch = 1, outer = 1, inner = 1;
  std::int64_t batch_stride = 0, outer_stride = 0;
};

/// An operand in memory: rows.inner is the contiguous axis. `plain` when that is the operand's
/// second axis (row-major), else its first.
struct MatrixOperand {
  MatrixRows rows;
  bool plain = true;
};

/// out[batch, m, n] = a[batch, m, k] b[batch, k, n], out contiguous.
struct MatrixShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  MatrixOperand a, b;
};

/// The product of each image that a convolution by filters of one pixel is, or its gradient with
/// respect to the input: of stride 1, in one group, without padding. Any other contraction as it
/// stands.
Contraction as_product(const Contraction& c);
/// False, with a reason in *why, when the product cannot be expressed.
bool matrix_shape(const Contraction& c, MatrixShape& shape, std::string* why);
/// Whether there is no reason against a product. Else *why, if given, says it; an empty one stands
/// there already.
bool is_claimed(const char* reason, std::string* why);

}  // namespace tenon::cuda
