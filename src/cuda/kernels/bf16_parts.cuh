// A float32 number as the sum of three bfloat16 numbers, as products of parts take it
// (gemm_wgmma.cuh): its first 8 bits of mantissa, the next 8, and the rest. Below 2^-110 the last
// part loses bits to the end of bfloat16's range, 2^-133.
//
// The first part is cut off, so that none overflows. The second is rounded, so that the third, and
// with it what products of parts leave out, has either sign and cancels in sums. From kLargeParts
// on the second is cut off too: parts of one sign, whose products are infinite together.
//
// An infinity is 1 in the first part and infinite in the third, of its sign; NaN is 1 and NaN.
// Products of third parts are taken with first parts only: so those of an infinity are infinite, or
// NaN with a zero, and no other part of the number meets an infinity.
#pragma once

#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

// The bits of 2^14: third parts of smaller numbers are below 1, so their products are finite.
inline constexpr unsigned kLargeParts = 0x4680;

struct Bf16Parts {
  unsigned of[3];  // bits
};

TENON_DEVICE Bf16Parts bf16_parts(float x) {
  const unsigned bits = scalar::bits_of(x), first = bits >> 16;
  if ((first & 0x7f80u) == 0x7f80u) {
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return {{(first & 0x8000u) | 0x3f80u, 0, first | (is_nan ? 0x40u : 0u)}};
  }
  const float rest = x - scalar::from_bfloat16(first);
  const unsigned second =
      (first & 0x7fffu) < kLargeParts ? scalar::bfloat16_of(rest) : scalar::bits_of(rest) >> 16;
  return {{first, second, scalar::bits_of(rest - scalar::from_bfloat16(second)) >> 16}};
}

}  // namespace tenon::cuda
