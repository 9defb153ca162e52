// Rows of an iteration space: which axes a reduction removes, and how references read rows.
#pragma once

#include <cstdint>

#include "plan/regions/items.h"

namespace tenon {

/// Whether the item can be part of a loop nest.
bool is_map(const Item& item);
bool reduces(const Item& item);

/// The number of trailing axes that a reduction removes; 0 if the removed axes are not trailing.
int trailing_axes(const Item& reduction);
std::int64_t trailing_numel(const Shape& shape, int axes);
/// The shape with one value for each row: trailing axes become 1.
Shape row_shape(Shape space, int axes);
/// Whether two shapes have the same elements in the same order, apart from axes of size 1: [64] and
/// [64, 1].
bool same_but_ones(const Shape& a, const Shape& b);

/// Whether the reference reads its base element by element, with the base's own shape.
bool identity(const Ref& ref, const Shape& base);
/// Whether the reference reads one value for each row of `space`, from a base that holds one value
/// for each row.
bool reads_rows(const Ref& ref, const Shape& base, const Shape& space, int row_axes);
/// Whether the axes of a row can be merged into one axis.
bool row_merges(const Ref& ref, int row_axes);
/// Whether a column reduction treats the axes of a row differently. The row could then not be one
/// axis.
bool splits_rows(const Item& reduction, int row_axes);

}  // namespace tenon
