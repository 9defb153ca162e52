// Masked reductions: elements that the mask leaves out are replaced by the neutral element.
#include <cmath>
#include <limits>

#include <tenon/elementwise.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/joining.h>
#include <tenon/masked.h>
#include <tenon/statistics.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon::masked {
namespace {

void check(const char* op, const Tensor& x, const Tensor& mask) {
  require_defined(op, x);
  if (!mask.defined()) return;
  if (!is_bool(mask.dtype()))
    throw make_error<DTypeError>(where(op), ": the mask is ", mask.dtype(), ", not bool");
  if (broadcast_shapes(x.shape(), mask.shape(), where(op)) != x.shape())
    throw make_error<ShapeError>(where(op), ": the mask ", mask.shape(),
                                 " does not broadcast to x ", x.shape());
}

Tensor filled(const char* op, const Tensor& x, const Tensor& mask, Scalar neutral) {
  check(op, x, mask);
  if (!mask.defined()) return x;
  return where(mask, x, scalar_operand(op, neutral, {}, x.dtype()));
}

// What is below or above all elements of the dtype.
Scalar beyond(DType dtype, bool above) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8:
      return above ? (is_bool(dtype) ? 1 : 255) : 0;
    case DType::Int8:
      return above ? 127 : -128;
    case DType::Int32:
      return above ? std::numeric_limits<std::int32_t>::max()
                   : std::numeric_limits<std::int32_t>::min();
    case DType::Int64:
      return above ? std::numeric_limits<std::int64_t>::max()
                   : std::numeric_limits<std::int64_t>::min();
    default:
      return above ? kInfinity : -kInfinity;
  }
}
Tensor with_least(const char* op, const Tensor& x, const Tensor& mask) {
  check(op, x, mask);
  return filled(op, x, mask, beyond(x.dtype(), false));
}
Tensor with_largest(const char* op, const Tensor& x, const Tensor& mask) {
  check(op, x, mask);
  return filled(op, x, mask, beyond(x.dtype(), true));
}

// How many elements each result is computed from, with the reduced axes kept.
Tensor count_of(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim) {
  const Tensor all = mask.defined() ? broadcast_to(mask, x.shape()) : ones(x.shape(), DType::Bool);
  return tenon::sum(all, axes, keepdim);
}

Tensor in_float32(const Tensor& x) {
  return item_size(x.dtype()) < 4 || !is_floating(x.dtype()) ? cast(x, DType::Float32) : x;
}

Tensor variance(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim,
                double correction) {
  const Tensor kept = filled("masked.var", x, mask, 0);
  const Tensor count = cast(count_of(x, mask, axes, true), x.dtype());
  const Tensor mean = tenon::sum(kept, axes, true) / count;
  const Tensor deviation = filled("masked.var", x - mean, mask, 0);
  const Tensor sum = tenon::sum(square(deviation), axes, keepdim);
  return sum / maximum(reshape(count, to_ints(sum.shape())) - correction, 0);
}

Tensor arg(const Tensor& x, std::optional<int> axis, bool keepdim, bool largest) {
  const auto at = [largest](const Tensor& y, int a, bool keeps) {
    return largest ? tenon::argmax(y, a, keeps) : tenon::argmin(y, a, keeps);
  };
  if (axis) return at(x, *axis, keepdim);
  const Tensor flat = at(reshape(x, {x.numel()}), 0, false);
  return keepdim ? reshape(flat, Ints(static_cast<std::size_t>(x.rank()), 1)) : flat;
}

}  // namespace

Tensor sum(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim) {
  const Called called("masked.sum");
  return tenon::sum(filled("masked.sum", x, mask, 0), axes, keepdim);
}
Tensor prod(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim) {
  const Called called("masked.prod");
  return tenon::prod(filled("masked.prod", x, mask, 1), axes, keepdim);
}
Tensor mean(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim) {
  const Called called("masked.mean");
  check("masked.mean", x, mask);
  const Tensor in = in_float32(x);
  const Tensor total = tenon::sum(filled("masked.mean", in, mask, 0), axes, keepdim);
  const Tensor mean = total / count_of(x, mask, axes, keepdim);
  return is_floating(x.dtype()) ? cast(mean, x.dtype()) : mean;
}
Tensor amax(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim) {
  const Called called("masked.amax");
  return tenon::amax(with_least("masked.amax", x, mask), axes, keepdim);
}
Tensor amin(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim) {
  const Called called("masked.amin");
  return tenon::amin(with_largest("masked.amin", x, mask), axes, keepdim);
}
Tensor logsumexp(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim) {
  const Called called("masked.logsumexp");
  check("masked.logsumexp", x, mask);
  return tenon::logsumexp(filled("masked.logsumexp", to_floating(x), mask, -kInfinity), axes,
                          keepdim);
}
Tensor norm(const Tensor& x, const Tensor& mask, double p, const Axes& axes, bool keepdim) {
  const Called called("masked.norm");
  return vector_norm(filled("masked.norm", x, mask, p == -kInfinity ? kInfinity : 0), p, axes,
                     keepdim);
}
Tensor var(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim, double correction) {
  const Called called("masked.var");
  check("masked.var", x, mask);
  const Tensor value = variance(in_float32(x), mask, axes, keepdim, correction);
  return is_floating(x.dtype()) ? cast(value, x.dtype()) : value;
}
Tensor stddev(const Tensor& x, const Tensor& mask, const Axes& axes, bool keepdim,
              double correction) {
  const Called called("masked.std");
  check("masked.std", x, mask);
  const Tensor value = sqrt(variance(in_float32(x), mask, axes, keepdim, correction));
  return is_floating(x.dtype()) ? cast(value, x.dtype()) : value;
}

Tensor argmax(const Tensor& x, const Tensor& mask, std::optional<int> axis, bool keepdim) {
  const Called called("masked.argmax");
  return arg(with_least("masked.argmax", x, mask), axis, keepdim, true);
}
Tensor argmin(const Tensor& x, const Tensor& mask, std::optional<int> axis, bool keepdim) {
  const Called called("masked.argmin");
  return arg(with_largest("masked.argmin", x, mask), axis, keepdim, false);
}

Tensor median(const Tensor& x, const Tensor& mask, int axis, bool keepdim) {
  const Called called("masked.median");
  check("masked.median", x, mask);
  const Tensor in =
      filled("masked.median", to_floating(x), mask, std::numeric_limits<double>::quiet_NaN());
  return nanmedian(in, axis, keepdim).values;
}

Tensor cumsum(const Tensor& x, const Tensor& mask, int axis) {
  const Called called("masked.cumsum");
  return tenon::cumsum(filled("masked.cumsum", x, mask, 0), axis);
}
Tensor cumprod(const Tensor& x, const Tensor& mask, int axis) {
  const Called called("masked.cumprod");
  return tenon::cumprod(filled("masked.cumprod", x, mask, 1), axis);
}
Tensor softmax(const Tensor& x, const Tensor& mask, int axis) {
  const Called called("masked.softmax");
  return tenon::softmax(filled("masked.softmax", to_floating(x), mask, -kInfinity), axis);
}
Tensor log_softmax(const Tensor& x, const Tensor& mask, int axis) {
  const Called called("masked.log_softmax");
  return tenon::log_softmax(filled("masked.log_softmax", to_floating(x), mask, -kInfinity), axis);
}
Tensor softmin(const Tensor& x, const Tensor& mask, int axis) {
  const Called called("masked.softmin");
  return tenon::softmin(filled("masked.softmin", to_floating(x), mask, kInfinity), axis);
}
Tensor normalize(const Tensor& x, const Tensor& mask, double p, int axis, double eps) {
  const Called called("masked.normalize");
  check("masked.normalize", x, mask);
  const Tensor in =
      in_float32(x);  // the norm of 16-bit elements is not rounded before the division
  const Tensor out =
      filled("masked.normalize", in, mask, 0) / maximum(norm(in, mask, p, axis, true), eps);
  return is_floating(x.dtype()) ? cast(out, x.dtype()) : out;
}

Tensor logaddexp(const Tensor& a, const Tensor& b, const Tensor& mask_a, const Tensor& mask_b) {
  const Called called("masked.logaddexp");
  require_defined("masked.logaddexp", a, b);
  return tenon::logaddexp(filled("masked.logaddexp", to_floating(a), mask_a, -kInfinity),
                          filled("masked.logaddexp", to_floating(b), mask_b, -kInfinity));
}

}  // namespace tenon::masked
