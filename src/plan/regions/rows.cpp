// Predicates on shapes, strides and reductions. They decide nothing by themselves.
#include "plan/regions/rows.h"

namespace tenon {

bool is_map(const Item& item) {
  return item.kind == OpKind::Elementwise || item.kind == OpKind::Reduction ||
         item.kind == OpKind::ArgReduction || item.kind == OpKind::Effect || item.op == Op::Random;
}

bool reduces(const Item& item) {
  return item.kind == OpKind::Reduction || item.kind == OpKind::ArgReduction;
}

int trailing_axes(const Item& item) {
  const int rank = item.args[0].shape.rank();
  if (item.kind == OpKind::ArgReduction) return 1;
  const auto mask = static_cast<std::uint64_t>(item.attrs.as<ReduceAttrs>().axes);
  int count = 0;
  while (count < rank && (mask >> (rank - 1 - count) & 1u)) ++count;
  const std::uint64_t trailing = ((std::uint64_t{1} << count) - 1) << (rank - count);
  return mask == trailing ? count : 0;
}

std::int64_t trailing_numel(const Shape& shape, int axes) {
  std::int64_t n = 1;
  for (int d = shape.rank() - axes; d < shape.rank(); ++d) n *= shape[d];
  return n;
}

Shape row_shape(Shape space, int axes) {
  for (int d = space.rank() - axes; d < space.rank(); ++d) space[d] = 1;
  return space;
}

bool same_but_ones(const Shape& a, const Shape& b) {
  int i = 0, j = 0;
  while (true) {
    while (i < a.rank() && a[i] == 1) ++i;
    while (j < b.rank() && b[j] == 1) ++j;
    if (i == a.rank() || j == b.rank()) return i == a.rank() && j == b.rank();
    if (a[i++] != b[j++]) return false;
  }
}

bool identity(const Ref& ref, const Shape& base) {
  return ref.shape == base && is_linear(ref, base);
}

bool reads_rows(const Ref& ref, const Shape& base, const Shape& space, int row_axes) {
  const Shape rows = row_shape(space, row_axes);
  if (ref.offset != 0 || ref.shape != space || !same_but_ones(base, rows)) return false;
  std::int64_t want[kMaxRank];
  contiguous_strides(rows, want);
  for (int d = 0; d < space.rank(); ++d) {
    const bool in_row = d >= space.rank() - row_axes;
    if (space[d] != 1 && ref.stride[d] != (in_row ? 0 : want[d])) return false;
  }
  return true;
}

bool row_merges(const Ref& ref, int row_axes) {
  const int rank = ref.shape.rank();
  int inner = -1;  // the next inner axis that is not of size 1; axes of size 1 may have any stride
  for (int d = rank - 1; d >= rank - row_axes; --d) {
    if (ref.shape[d] == 1) continue;
    if (inner >= 0 && ref.stride[d] != ref.stride[inner] * ref.shape[inner]) return false;
    inner = d;
  }
  return true;
}

bool splits_rows(const Item& reduction, int row_axes) {
  const int rank = reduction.args[0].shape.rank();
  const std::int64_t all = (std::int64_t{1} << row_axes) - 1;
  const std::int64_t reduced = reduction.attrs.as<ReduceAttrs>().axes >> (rank - row_axes) & all;
  return reduced != 0 && reduced != all;
}

}  // namespace tenon
