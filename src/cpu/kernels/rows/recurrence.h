// Running sums, products and extremes, and linear recurrences along an axis (Op::Recurrence).
//
// Arrays are contiguous [outer, size, inner]; inputs are x, or a and b; out has their dtype, or is
// int64 for indices, and does not overlap them. Sums and products are kept in double or int64, in
// the order of the elements, so that the bits do not depend on threads or instruction sets. Rows of
// one axis run side by side, because each of them waits for its last element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tenon/dtype.h>

#include "graph/attrs.h"

namespace tenon::cpu {

struct RecurrenceShape {
  std::int64_t outer = 0, size = 0, inner = 0;
  RecurrenceKind kind = RecurrenceKind::Sum;
  bool reverse = false;
};

/// float32, float64 and int64.
void run_recurrence(const RecurrenceShape& shape, DType dtype,
                    std::span<const std::byte* const> inputs, std::byte* out);

}  // namespace tenon::cpu
