// Softmax and log-softmax: composites over the last axis, with gradients of their own and a
// decomposition.
#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {
namespace {

Tensor along_last(Op op, const char* name, const Tensor& input, int axis) {
  Tensor x = to_floating(input);
  const int a = axis_of(name, axis, x.rank());
  if (x.numel() == 0) return x;
  if (x.rank() == 0) return reshape(build(op, {reshape(x, {1})}), {});
  return transpose(build(op, {transpose(x, a, -1)}), a, -1);
}

Ints last() { return {-1}; }

// A long row needs more than one region, and values between regions are stored: a float16 sum of
// exponentials would overflow. So every intermediate is float32.
Tensor wide(const Tensor& x) { return item_size(x.dtype()) == 2 ? cast(x, DType::Float32) : x; }

}  // namespace

Tensor softmax(const Tensor& x, int axis) {
  require_defined("softmax", x);
  return along_last(Op::Softmax, "softmax", x, axis);
}
Tensor log_softmax(const Tensor& x, int axis) {
  require_defined("log_softmax", x);
  return along_last(Op::LogSoftmax, "log_softmax", x, axis);
}

Inferred infer_softmax(const Node& node) {
  require_floating(node, "cast it first");
  const Node& x = *node.input(0);
  if (x.shape.rank() == 0) throw make_error<ShapeError>(where(node), ": a scalar has no axis");
  if (x.shape.at(-1) == 0)
    throw make_error<ShapeError>(where(node), ": the last axis of ", x.shape, " is empty");
  return {x.dtype, x.shape};
}

Gradients vjp_softmax(const Tensor& out, const Tensor& g) {
  const Tensor y = wide(out), slope = wide(g);
  return {cast(y * (slope - sum(slope * y, last(), true)), out.dtype())};
}
Gradients vjp_log_softmax(const Tensor& out, const Tensor& g) {
  const Tensor slope = wide(g);
  return {cast(slope - exp(wide(out)) * sum(slope, last(), true), out.dtype())};
}

Tensor decompose_softmax(const Tensor& out) {
  const Tensor x = wide(input_of(out, 0));
  const Tensor e = exp(x - amax(x, last(), true));
  return cast(e / sum(e, last(), true), out.dtype());
}

Tensor decompose_log_softmax(const Tensor& out) {
  const Tensor x = wide(input_of(out, 0));
  const Tensor shifted = x - amax(x, last(), true);
  return cast(shifted - log(sum(exp(shifted), last(), true)), out.dtype());
}

}  // namespace tenon
