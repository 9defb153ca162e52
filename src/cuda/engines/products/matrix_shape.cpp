// Merges batch axes into one (or into the rows) and finds the contiguous axis of each operand.
#include "cuda/engines/products/matrix_shape.h"

#include <limits>

namespace tenon::cuda {
namespace {

/// The axes before the last two of both operands, merged where both have uniform strides.
struct Batches {
  int axes = 0;
  std::int64_t size = 1, stride_a = 0, stride_b = 0;

  /// Innermost axis first; false if a second axis would be needed.
  bool add(std::int64_t count, std::int64_t a, std::int64_t b) {
    if (count == 1) return true;
    if (axes == 0) {
      axes = 1;
      size = count, stride_a = a, stride_b = b;
      return true;
    }
    if (a != stride_a * size || b != stride_b * size) return false;
    size *= count;
    return true;
  }
};

bool find_contiguous_axis(MatrixOperand& operand, const View& view, int axis, std::int64_t first,
                          std::int64_t second) {
  const std::int64_t s0 = view.stride[axis], s1 = view.stride[axis + 1];
  MatrixRows& rows = operand.rows;
  rows.offset = view.offset;
  if ((s1 == 1 || second == 1) && (first == 1 || s0 >= second)) {
    operand.plain = true;
    rows.outer = first, rows.inner = second, rows.outer_stride = first == 1 ? second : s0;
    return true;
  }
  if ((s0 == 1 || first == 1) && (second == 1 || s1 >= first)) {
    operand.plain = false;
    rows.outer = second, rows.inner = first, rows.outer_stride = second == 1 ? first : s1;
    return true;
  }
  return false;
}

bool refuse(std::string* why, const char* reason) {
  if (why != nullptr) *why = reason;
  return false;
}

}  // namespace

Contraction as_product(const Contraction& c) {
  const ConvAttrs& v = c.attrs.conv;
  const bool forward = c.op == Op::Conv2d;
  if ((!forward && c.op != Op::Conv2dInputGrad) || c.channels_last) return c;
  const Shape &images = c.a_shape, &filters = c.b_shape;
  const bool one_pixel = filters[2] == 1 && filters[3] == 1 && v.groups == 1;
  const bool in_place = v.stride_h == 1 && v.stride_w == 1 && v.pad_h == 0 && v.pad_w == 0;
  const bool one_axis =
      images[2] == 1 || images[3] == 1 || c.a.stride[2] == images[3] * c.a.stride[3];
  if (!one_pixel || !in_place || !one_axis) return c;
  const int row = forward ? 0 : 1;
  const std::int64_t pixels = images[2] * images[3];
  Contraction p = c;
  p.op = Op::Matmul;
  p.attrs.conv = {};
  p.a = c.b, p.b = c.a;
  p.a.stride[0] = 0, p.a.stride[1] = c.b.stride[row], p.a.stride[2] = c.b.stride[1 - row];
  p.b.stride[2] = c.a.stride[images[3] == 1 ? 2 : 3];
  p.a_shape = {images[0], filters[row], filters[1 - row]};
  p.b_shape = {images[0], filters[1 - row], pixels};
  p.out_shape = {images[0], filters[row], pixels};
  return p;
}

bool matrix_shape(const Contraction& c, MatrixShape& shape, std::string* why) {
  const int rank = c.a_shape.rank();
  shape.m = c.a_shape[rank - 2], shape.k = c.a_shape[rank - 1], shape.n = c.b_shape[rank - 1];
  Batches batches;
  for (int d = rank - 3; d >= 0; --d)
    if (!batches.add(c.a_shape[d], c.a.stride[d], c.b.stride[d]))
      return refuse(why, "takes only batch axes that merge into one");
  if (c.out_shape.numel() == 0 || shape.k == 0) return refuse(why, "does not run empty products");
  if (!find_contiguous_axis(shape.a, c.a, rank - 2, shape.m, shape.k) ||
      !find_contiguous_axis(shape.b, c.b, rank - 2, shape.k, shape.n))
    return refuse(why, "takes only operands with a contiguous axis");
  if (batches.stride_a < 0 || batches.stride_b < 0)
    return refuse(why, "takes no flipped batch axis");
  // One right matrix for all batches: the batches become more rows on the left.
  MatrixRows& left = shape.a.rows;
  if (batches.size > 1 && batches.stride_b == 0 && shape.a.plain &&
      batches.stride_a == shape.m * left.outer_stride) {
    shape.m *= batches.size;
    left.outer = shape.m;
    batches = Batches();
  }
  shape.batch = batches.size;
  left.batch = shape.b.rows.batch = batches.size;
  left.batch_stride = batches.stride_a;
  shape.b.rows.batch_stride = batches.stride_b;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (shape.m > kMost || shape.n > kMost || shape.k > kMost || shape.batch > kMost)
    return refuse(why, "takes sizes below 2^31 only");
  return true;
}

bool is_claimed(const char* reason, std::string* why) {
  if (reason != nullptr && reason[0] != '\0' && why != nullptr) *why = reason;
  return reason == nullptr;
}

}  // namespace tenon::cuda
