// Op::Fourier for the functions of fft.h.
#pragma once

#include <tenon/complex.h>

#include "graph/attrs.h"

namespace tenon {

/// The transform of an axis of float32 or float64 numbers, of which there are at most attrs.length.
Complex fourier(const Complex& x, const FourierAttrs& attrs);
/// The same for numbers whose conjugates follow (FourierAttrs::mirrored), so that the results are
/// real.
Tensor mirrored_fourier(const Complex& x, const FourierAttrs& attrs);

/// The transform composed from other operations, in a plan or outside.
Complex fourier_products(const Complex& x, const FourierAttrs& attrs, bool in_plan);

}  // namespace tenon
