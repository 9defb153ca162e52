// Sorting of rows: stable; a NaN is larger than every number; equal elements keep their order.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/dtype.h>

namespace tenon::cpu {

/// x is [rows, length], contiguous. Of each sorted row, `count` elements from `first` on and their
/// indexes go to values [rows, count] and indices [rows, count]; either may be null.
struct SortShape {
  std::int64_t rows = 0, length = 0, first = 0, count = 0;
  bool descending = false;
};

/// Rows are shared among the threads; the results do not depend on their number. Throws ValueError
/// for rows of 2^32 elements and more.
void sort_rows(const SortShape& shape, DType dtype, const std::byte* x, std::byte* values,
               std::int64_t* indices);

}  // namespace tenon::cpu
