// Fourier transforms along an axis (Op::Fourier) of float32 and float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tenon/dtype.h>

namespace tenon::cpu {

/// Inputs are [outer, given, inner], results [outer, kept, inner]. The given numbers are followed
/// up to `length` by zeros or, if `mirrored`, by conjugates.
struct FourierShape {
  std::int64_t outer = 1, inner = 1, length = 1, given = 1, kept = 1;
  bool inverse = false, mirrored = false;          // as in FourierAttrs
  bool has_imaginary = true;                       // of the input
  bool wants_real = true, wants_imaginary = true;  // of the results
  double scale = 1;
};

/// The arrays of a call; null for parts that the shape does not have.
struct FourierArrays {
  const std::byte *real, *imaginary;
  std::byte *out_real, *out_imaginary;
};

/// Transforms of one shape, with their tables.
class Fourier {
 public:
  virtual ~Fourier() = default;
  virtual void run(const FourierArrays& arrays, std::byte* workspace) const = 0;
  std::size_t workspace_bytes = 0;
};

std::unique_ptr<const Fourier> fourier(const FourierShape& shape, DType dtype, int threads);

}  // namespace tenon::cpu
