// Splits a float32 number into a sum of three bfloat16 numbers, the operands of gemm_wgmma.cuh's
// bf16x6 products: the first 8 bits of the mantissa, the next 8, and the rest. Below 2^-110 the
// third part loses bits, because bfloat16's range ends at 2^-133.
//
// The first part is truncated, so that no part overflows. The second part is rounded, so that the
// third part has either sign; the products that bf16x6 leaves out then cancel in sums. From
// kLargeParts on the second part is truncated too: all parts then have one sign, so that their
// products overflow to the same infinity.
//
// Infinity is split into 1 (first part) and infinity with the number's sign (third part); NaN into
// 1 and NaN. Third parts are multiplied by first parts only. The product of an infinity is
// therefore infinite, or NaN with a zero, and no other part of the other number meets an infinity.
#pragma once

#include "cuda/kernels/intrinsics.cuh"

namespace tenon::cuda {

// The bits of 2^14. The third part of a smaller number is below 1, so its products are finite.
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
