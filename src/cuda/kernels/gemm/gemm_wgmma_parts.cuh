// Loads rows of a float32 tile from shared memory and splits them into bfloat16 parts in the
// registers from which wgmma takes its A operand (gemm_wgmma.cuh).
#pragma once

#include "cuda/kernels/bf16_parts.cuh"
#include "cuda/kernels/gemm/gemm_wgmma_args.cuh"
#include "cuda/kernels/intrinsics_hopper.cuh"

namespace tenon::cuda {

/// Sixteen rows of a warp, one stage deep: 32 steps of k, in two products of sixteen.
struct PartsOfRows {
  static constexpr int kProducts = kWgmmaPartsDepth / 16;
  unsigned of[kProducts][3][4];  // indexed by product, part, register

  TENON_DEVICE void pin_all() {
#pragma unroll
    for (int i = 0; i < kProducts; ++i)
#pragma unroll
      for (int p = 0; p < 3; ++p) pin(of[i][p]);
  }
};

/// The parts of pairs along k, one pair a register.
TENON_DEVICE void split_pairs(unsigned (&parts)[3][4], const float (&x)[4][2]) {
  constexpr unsigned kUpper = 0xffff0000u, kTop = 0x80008000u;
  unsigned large = 0;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const unsigned a = scalar::bits_of(x[r][0]), b = scalar::bits_of(x[r][1]);
    const unsigned first = a >> 16 | (b & kUpper);
    const float rest_a = x[r][0] - scalar::float_of(a & kUpper),
                rest_b = x[r][1] - scalar::float_of(b & kUpper);
    const unsigned second = pack_bf16(rest_a, rest_b);
    const float third_a = rest_a - scalar::float_of(second << 16),
                third_b = rest_b - scalar::float_of(second & kUpper);
    parts[0][r] = first;
    parts[1][r] = second;
    parts[2][r] = scalar::bits_of(third_a) >> 16 | (scalar::bits_of(third_b) & kUpper);
    // A 16-bit half that is kLargeParts or more has its top bit set in the sum.
    large |= (first & ~kTop) + (0x8000u - kLargeParts) * 0x10001u;
  }
  if ((large & kTop) == 0) return;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const Bf16Parts a = bf16_parts(x[r][0]), b = bf16_parts(x[r][1]);
#pragma unroll
    for (int p = 0; p < 3; ++p) parts[p][r] = a.of[p] | b.of[p] << 16;
  }
}

/// The addresses of a lane's numbers in a tile of kRows x 32, for a warp whose first row is `row`.
/// The tile has lines of 128 bytes along k, or boxes of 32 rows across k. The 16-byte chunks of a
/// line are permuted by the line's number (128-byte swizzle).
template <bool kAcross>
class RowReader {
  static constexpr unsigned kLine = kWgmmaLine, kBox = 32 * kLine;

 public:
  TENON_DEVICE explicit RowReader(unsigned row) {
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // The line of the lane's first number, and the chunk in the line.
    const unsigned line = kAcross ? 2 * t : row + g;
    const unsigned chunk = kAcross ? row % 32 / 4 + g / 4 : t / 2;
    start_ = line * kLine + (kAcross ? row / 32 * kBox + g % 4 * 4 : t % 2 * 8);
    chunk_ = chunk ^ line % 8;
  }

  TENON_DEVICE void read(PartsOfRows& rows, unsigned tile) const {
#pragma unroll
    for (int i = 0; i < PartsOfRows::kProducts; ++i) {
      float x[4][2];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        // Distance in rows, and in steps of k.
        const unsigned below = r % 2 * 8, later = 16 * i + r / 2 * 8;
        if constexpr (kAcross) {
#pragma unroll
          for (unsigned e = 0; e < 2; ++e) x[r][e] = shared_load(at(tile, later + e, below / 4));
        } else {
          shared_load(x[r], at(tile, below, later / 4));
        }
      }
      split_pairs(rows.of[i], x);
    }
  }

 private:
  /// The address `lines` lines and `chunks` chunks behind the first number; the offsets' bits do
  /// not overlap the bits of the first address.
  TENON_DEVICE unsigned at(unsigned tile, unsigned lines, unsigned chunks) const {
    return tile + start_ + lines * kLine + ((chunk_ ^ lines % 8 ^ chunks) << 4);
  }

  unsigned start_, chunk_;
};

}  // namespace tenon::cuda
