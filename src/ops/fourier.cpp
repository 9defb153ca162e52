// Op::Fourier: inference, gradient, and its composition from other ops.
#include "ops/fourier.h"

#include <algorithm>
#include <vector>

#include <tenon/functional.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

namespace {

constexpr std::int64_t kReal = 0, kImaginary = 1, kParts = 2;

const FourierAttrs& fourier_attrs(const Node& node) { return node.attrs.as<FourierAttrs>(); }

bool is_zero(const Tensor& x) { return is_number(x) && constant_value(x).is_zero(); }

// The inputs of a node for these numbers: the real parts, and the imaginary parts unless they are
// zero.
std::vector<Tensor> parts_of(const Complex& x) {
  if (is_zero(x.imaginary)) return {x.real};
  return {x.real, x.imaginary};
}

Complex numbers_of(const Tensor& out) {
  const Tensor real = input_of(out, 0);
  return out.node()->input_count > 1 ? Complex(real, input_of(out, 1)) : Complex(real);
}

Complex node_results(const std::vector<Tensor>& parts, const FourierAttrs& attrs) {
  const Tensor node = build(Op::Fourier, parts, attrs);
  return {result_of(node, kReal), result_of(node, kImaginary)};
}

// The axis cut off or filled with zeros.
Tensor resized(const Tensor& x, int axis, std::int64_t size) {
  const std::int64_t missing = size - x.size(axis);
  if (missing <= 0) return slice(x, axis, 0, size);
  return transpose(pad(transpose(x, axis, -1), {0, missing}), axis, -1);
}

// Doubles the numbers of the first half that occur as conjugates too: all except the first and, if
// the length is even, the middle one.
Tensor times_mirrored(const Tensor& x, const FourierAttrs& attrs) {
  const Tensor k = arange(0, x.size(attrs.axis), 1, DType::Int64);
  const Tensor alone = eq(k, 0) | eq(k * 2, attrs.length);
  Ints sizes(static_cast<std::size_t>(x.rank()), 1);
  sizes[static_cast<std::size_t>(attrs.axis)] = x.size(attrs.axis);
  return where(reshape(alone, sizes), x, 2 * x);
}

}  // namespace

Complex fourier(const Complex& x, const FourierAttrs& attrs) {
  if (x.real.numel() == 0)
    return {resized(x.real, attrs.axis, attrs.kept), resized(x.imaginary, attrs.axis, attrs.kept)};
  if (x.real.device().kind != Device::Kind::Cpu) return fourier_products(x, attrs, false);
  return node_results(parts_of(x), attrs);
}

Tensor mirrored_fourier(const Complex& x, const FourierAttrs& attrs) {
  if (x.real.numel() == 0 || x.real.device().kind != Device::Kind::Cpu)
    return fourier(x, attrs).real;
  const std::int64_t half = attrs.length / 2 + 1;
  return node_results({resized(x.real, attrs.axis, half), resized(x.imaginary, attrs.axis, half)},
                      attrs)
      .real;
}

// ---- Rules ------------------------------------------------------------------------------------

Inferred infer_fourier_result(const Node& node, std::int64_t) {
  require_same_dtype(node);
  require_same_shape(node);
  require_floating(node, "cast it first");
  const Node& x = *node.input(0);
  const FourierAttrs& attrs = fourier_attrs(node);
  if (node.input_count > kParts)
    throw make_error<ShapeError>(where(node), ": takes real and imaginary parts, not ",
                                 int{node.input_count}, " tensors");
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const bool fits = attrs.axis >= 0 && attrs.axis < x.shape.rank() && x.shape.numel() > 0 &&
                    attrs.length <= kMost && attrs.kept >= 1 && attrs.kept <= attrs.length &&
                    x.shape[static_cast<int>(attrs.axis)] <= attrs.length;
  const bool halved = attrs.mirrored == 0 ||
                      (fits && x.shape[static_cast<int>(attrs.axis)] == attrs.length / 2 + 1);
  if (!fits || !halved || (x.dtype != DType::Float32 && x.dtype != DType::Float64))
    throw make_error<ShapeError>(where(node), ": a transform of ", attrs.length,
                                 " numbers along axis ", int{attrs.axis}, " of ", x.dtype, x.shape);
  Shape shape = x.shape;
  shape[static_cast<int>(attrs.axis)] = attrs.kept;
  return {x.dtype, shape};
}

Inferred infer_fourier(const Node& node) { return infer_fourier_result(node, kReal); }

std::int64_t count_fourier_results(const Node&) { return kParts; }

Tensor decompose_fourier(const Tensor& out, std::int64_t k) {
  const Complex y = fourier_products(numbers_of(out), fourier_attrs(*out.node()), true);
  return k == kReal ? y.real : y.imaginary;
}

// Pairs of numbers are multiplied by the transposed matrix of the transform: that of the transform
// in the other direction.
Gradients vjp_fourier(const Tensor& out, std::span<const Tensor> cotangents) {
  const FourierAttrs attrs = fourier_attrs(*out.node());
  const Tensor &real = cotangents[kReal], &imaginary = cotangents[kImaginary];
  FourierAttrs back = attrs;
  back.inverse = attrs.inverse == 0 ? 1 : 0;
  back.mirrored = 0;
  back.kept = input_of(out, 0).size(static_cast<int>(attrs.axis));
  std::vector<Tensor> parts{real.defined() ? real : zeros_like(imaginary)};
  if (imaginary.defined()) parts.push_back(imaginary);
  const Complex g = node_results(parts, back);
  Gradients out_gradients{g.real};
  if (out.node()->input_count > 1) out_gradients.push_back(g.imaginary);
  if (attrs.mirrored != 0)
    for (Tensor& x : out_gradients) x = times_mirrored(x, attrs);
  return out_gradients;
}

}  // namespace tenon
