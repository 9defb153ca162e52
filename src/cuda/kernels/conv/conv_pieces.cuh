// Pieces of 16-bit NCHW feature maps: neighbouring pixels of 8 channels, loaded up to 16 bytes at a
// time and transposed in registers into units (conv_args.cuh), one per pixel.
#pragma once

#include "cuda/kernels/conv/conv_stage.cuh"

namespace tenon::cuda {

template <int kPixels>
struct alignas(2 * kPixels) PiecePixels {
  unsigned words[kPixels / 2];
};

/// kPixels: 2, 4 or 8.
template <int kPixels>
struct ConvPiece {
  PiecePixels<kPixels> channels[8];

  /// Loads the piece; zeros outside.
  TENON_DEVICE void load(const unsigned short* from, int channel_stride, bool inside) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      channels[c] = PiecePixels<kPixels>{};
      if (inside)
        channels[c] = *reinterpret_cast<const PiecePixels<kPixels>*>(from + c * channel_stride);
    }
  }

  /// Stores the units; unit(j) is the address of the j-th pixel's unit.
  template <class F>
  TENON_DEVICE void store(F&& unit) const {
#pragma unroll
    for (int j = 0; j < kPixels; ++j) {
      Unit of_pixel;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned a = channels[2 * i].words[j / 2], b = channels[2 * i + 1].words[j / 2];
        of_pixel.words[i] = j % 2 == 0 ? (a & 0xffffu) | b << 16 : a >> 16 | (b & 0xffff0000u);
      }
      *unit(j) = of_pixel;
    }
  }
};

}  // namespace tenon::cuda
