// Cumulative sums, products and sums of exponentials along an axis.
//
// A row is cut into blocks. Inside a block, doubling needs five shifted sums for 32 elements. The
// prefix before each block is the same problem over the blocks' totals. Nothing is divided, so
// zeros need no special case in gradients.
#include <limits>
#include <optional>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/statistics.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

constexpr std::int64_t kBlock = 32;

using Combine = Tensor (*)(const Tensor&, const Tensor&);

// rows [count, n]; the neutral element of `combine` is padded on both sides.
Tensor running(const Tensor& rows, Combine combine, Scalar neutral) {
  const std::int64_t count = rows.size(0), n = rows.size(1);
  const auto moved = [neutral](const Tensor& x, std::int64_t by) {
    return slice(pad(x, {by, 0}, neutral), 1, 0, x.size(1));
  };
  if (n <= kBlock) {
    Tensor so_far = rows;
    for (std::int64_t step = 1; step < n; step *= 2) so_far = combine(so_far, moved(so_far, step));
    return so_far;
  }
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  const Tensor whole = pad(rows, {0, blocks * kBlock - n}, neutral);
  const Tensor inside = running(reshape(whole, {count * blocks, kBlock}), combine, neutral);
  const Tensor totals = reshape(slice(inside, 1, kBlock - 1, kBlock), {count, blocks});
  const Tensor before = moved(running(totals, combine, neutral), 1);
  const Tensor all = combine(reshape(inside, {count, blocks, kBlock}), unsqueeze(before, 2));
  return slice(reshape(all, {count, blocks * kBlock}), 1, 0, n);
}

// Integers and bool accumulate in int64, unless another dtype is requested; 16-bit floats in
// float32, rounded at the end.
Tensor along(const char* op, const Tensor& given, int axis, std::optional<DType> wanted,
             Combine combine, Scalar neutral) {
  const Called called(op);
  if (wanted && !is_floating(*wanted))
    return cast(along(op, cast(given, *wanted), axis, {}, combine, neutral), *wanted);
  const Tensor input = wanted ? cast(given, *wanted) : given;
  const DType dtype = input.dtype();
  const bool half = is_floating(dtype) && item_size(dtype) == 2;
  const Tensor x = cast(input, half ? DType::Float32 : is_floating(dtype) ? dtype : DType::Int64);
  const int a = axis_of(op, axis, x.rank());
  if (x.rank() == 0 || x.numel() == 0) return half ? input : x;
  const Tensor permuted = transpose(x, a, -1);
  const std::int64_t length = x.size(a);
  const Tensor rows = running(reshape(permuted, {x.numel() / length, length}), combine, neutral);
  const Tensor result = transpose(reshape(rows, to_ints(permuted.shape())), a, -1);
  return half ? cast(result, dtype) : result;
}

}  // namespace

Tensor cumsum(const Tensor& x, int axis, std::optional<DType> dtype) {
  require_defined("cumsum", x);
  return along("cumsum", x, axis, dtype, add, 0);
}
Tensor cumprod(const Tensor& x, int axis, std::optional<DType> dtype) {
  require_defined("cumprod", x);
  return along("cumprod", x, axis, dtype, mul, 1);
}

Tensor logcumsumexp(const Tensor& x, int axis) {
  require_defined("logcumsumexp", x);
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where("logcumsumexp"), ": takes floating tensors, not ", x.dtype(),
                                 ": cast it first");
  return along("logcumsumexp", x, axis, {}, logaddexp, -std::numeric_limits<double>::infinity());
}

}  // namespace tenon
