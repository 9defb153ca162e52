// Complex numbers as pairs of real tensors. Their operations are composed from real ones, so they
// run on every device, are fused, and have gradients of every order.
//
// PyTorch has complex dtypes instead. view_as_complex() and view_as_real() convert from and to the
// layout of torch.view_as_real: the last axis has the real and the imaginary part.
#pragma once

#include <tenon/export.h>
#include <tenon/tensor.h>

namespace tenon {

/// Complex numbers: two tensors of one shape and floating-point dtype.
struct TENON_API Complex {
  Tensor real;       ///< real parts
  Tensor imaginary;  ///< imaginary parts

  /// No value.
  Complex() = default;
  /// Parts, which are broadcast to one shape and promoted to one dtype. Throws ShapeError if they
  /// do not broadcast. PyTorch: `torch.complex`.
  Complex(const Tensor& real, const Tensor& imaginary);
  /// Numbers whose imaginary part is 0. Integers become float32.
  Complex(const Tensor& real);  // NOLINT(google-explicit-constructor)
  /// The sizes.
  const Shape& shape() const { return real.shape(); }
  /// The element type of each part.
  DType dtype() const { return real.dtype(); }
};

/// Numbers with these absolute values and angles in radians. PyTorch: `torch.polar`.
TENON_API Complex polar(const Tensor& absolute, const Tensor& angle);
/// Pairs in the last axis [.., 2] as complex numbers [..]. Throws ShapeError for another size.
TENON_API Complex view_as_complex(const Tensor& pairs);
/// Complex numbers [..] as pairs [.., 2].
TENON_API Tensor view_as_real(const Complex& z);

/// Sums, differences, products and quotients, which broadcast.
/// @{
TENON_API Complex operator+(const Complex& a, const Complex& b);
TENON_API Complex operator-(const Complex& a, const Complex& b);
TENON_API Complex operator*(const Complex& a, const Complex& b);
TENON_API Complex operator/(const Complex& a, const Complex& b);
/// @}
/// The negative.
TENON_API Complex operator-(const Complex& z);
/// The conjugate.
TENON_API Complex conj(const Complex& z);
/// The absolute value. Its gradient at 0 is 0.
TENON_API Tensor abs(const Complex& z);
/// The angle in radians, in (-π, π].
TENON_API Tensor angle(const Complex& z);
/// exp of complex numbers.
TENON_API Complex exp(const Complex& z);
/// The matrix product.
TENON_API Complex matmul(const Complex& a, const Complex& b);

}  // namespace tenon
