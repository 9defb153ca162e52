// Complex numbers as pairs of real tensors.
#include <tenon/complex.h>
#include <tenon/error.h>
#include <tenon/ops.h>

#include "ops/infer.h"

namespace tenon {
namespace {

Tensor floating(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, DType::Float32); }

}  // namespace

Complex::Complex(const Tensor& real_parts, const Tensor& imaginary_parts)
    : real(floating(real_parts)), imaginary(floating(imaginary_parts)) {
  const Called called("complex");
  const Shape both = broadcast_shapes(real.shape(), imaginary.shape(), where("complex"));
  if (real.shape() != both) real = broadcast_to(real, both);
  if (imaginary.shape() != both) imaginary = broadcast_to(imaginary, both);
  const DType dtype = promote(real.dtype(), imaginary.dtype());
  real = cast(real, dtype);
  imaginary = cast(imaginary, dtype);
}

Complex::Complex(const Tensor& real_parts)
    : real(floating(real_parts)), imaginary(zeros_like(real)) {}

Complex polar(const Tensor& absolute, const Tensor& angle) {
  const Called called("polar");
  return {absolute * cos(angle), absolute * sin(angle)};
}

Complex view_as_complex(const Tensor& pairs) {
  const Called called("view_as_complex");
  if (pairs.rank() == 0 || pairs.size(-1) != 2)
    throw make_error<ShapeError>(where("view_as_complex"), ": the last axis of ", pairs.shape(),
                                 " must have 2 elements, the real and the imaginary part");
  return {select(pairs, -1, 0), select(pairs, -1, 1)};
}

Tensor view_as_real(const Complex& z) { return stack({z.real, z.imaginary}, -1); }

Complex operator+(const Complex& a, const Complex& b) {
  return {a.real + b.real, a.imaginary + b.imaginary};
}

Complex operator-(const Complex& a, const Complex& b) {
  return {a.real - b.real, a.imaginary - b.imaginary};
}

Complex operator*(const Complex& a, const Complex& b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

// Scaled by the larger part of b, so that squares neither overflow nor vanish (R. Smith,
// "Algorithm 116: Complex division", 1962).
Complex operator/(const Complex& a, const Complex& b) {
  const Tensor swap = lt(abs(b.real), abs(b.imaginary));
  const Tensor large = where(swap, b.imaginary, b.real), small = where(swap, b.real, b.imaginary);
  const Tensor ratio = small / large, scale = large + small * ratio;
  const Tensor first = where(swap, a.real * ratio + a.imaginary, a.real + a.imaginary * ratio),
               second = where(swap, a.imaginary * ratio - a.real, a.imaginary - a.real * ratio);
  return {first / scale, second / scale};
}

Complex operator-(const Complex& z) { return {-z.real, -z.imaginary}; }
Complex conj(const Complex& z) { return {z.real, -z.imaginary}; }

// The scale avoids overflow and does not change the value, so it needs no gradient.
Tensor abs(const Complex& z) {
  const Tensor largest = detach(maximum(abs(z.real), abs(z.imaginary)));
  const Tensor is_zero = eq(largest, 0.0);
  const Tensor scale = where(logical_or(is_zero, isinf(largest)), 1.0, largest);
  const Tensor squares = square(z.real / scale) + square(z.imaginary / scale);
  return where(is_zero, 0.0, scale * sqrt(where(is_zero, 1.0, squares)));
}

Tensor angle(const Complex& z) { return atan2(z.imaginary, z.real); }

Complex exp(const Complex& z) { return polar(exp(z.real), z.imaginary); }

Complex matmul(const Complex& a, const Complex& b) {
  return {matmul(a.real, b.real) - matmul(a.imaginary, b.imaginary),
          matmul(a.real, b.imaginary) + matmul(a.imaginary, b.real)};
}

}  // namespace tenon
