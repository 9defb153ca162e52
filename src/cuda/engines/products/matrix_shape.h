// A matrix product as libraries and TMA take it: one batch axis, operands with one contiguous axis.
#pragma once

#include <cstdint>
#include <string>

#include "plan/program/region.h"

namespace tenon::cuda {

/// An array [batch, outer, inner] whose inner axis is contiguous; strides in elements.
struct MatrixRows {
  std::int64_t offset = 0;
  std::int64_t batch = 1, outer = 1, inner = 1;
  std::int64_t batch_stride = 0, outer_stride = 0;
};

/// An operand in memory: rows.inner is the contiguous axis. `plain` if it is the operand's second
/// axis (row-major), otherwise it is the first.
struct MatrixOperand {
  MatrixRows rows;
  bool plain = true;
};

/// out[batch, m, n] = a[batch, m, k] b[batch, k, n], out contiguous.
struct MatrixShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  MatrixOperand a, b;
};

/// Turns a convolution with 1 x 1 filters, or its input gradient, into a matrix product per image
/// (stride 1, one group, no padding). Returns any other contraction unchanged.
Contraction as_product(const Contraction& c);
/// False, with a reason in *why, if the product cannot be expressed.
bool matrix_shape(const Contraction& c, MatrixShape& shape, std::string* why);
/// True if `reason` is empty or null. Otherwise *why, if given, gets the reason; an empty reason
/// leaves *why unchanged.
bool is_claimed(const char* reason, std::string* why);

}  // namespace tenon::cuda
