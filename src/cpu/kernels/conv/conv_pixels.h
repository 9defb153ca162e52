// Copied planes in pixel-major order, for block tiles:
// [row phase][column phase][rows][width][words].
//
// The geometry is that of Planes with a pixel's words in place of one word. A word is a pair of
// bfloat16: of two neighbouring channels, or of the same channel of two images. Neighbouring pixels
// are then rows of a matrix, and the filter taps of a row are one run of words.
#pragma once

#include "cpu/kernels/conv/conv_geometry.h"

namespace tenon::cpu {

constexpr std::int64_t kMaxPixelWords = 1024;

/// Word i of a pixel is plane first + i * step; for i < pairs it is paired with the plane `other`
/// elements further.
struct PixelSource {
  const void* first = nullptr;
  DType dtype = DType::Float32;
  std::int64_t words = 0, pairs = 0;
  std::int64_t step = 0, other = 0;
};

/// Floats of scratch for copy_pixels.
std::int64_t pixel_scratch(const Planes& planes, std::int64_t words);

/// Fills the planes of one image; plane row 0 is the first input row of output row `out_row0`.
void copy_pixels(const KernelSet& kernels, const Planes& planes, const PixelSource& source,
                 std::int64_t out_row0, float* dst, float* scratch);

/// Words of a row of pixels that one step of a block tile reads. The row's taps form a run of `run`
/// words; the last step starts earlier instead of reading beyond the run.
struct RunPieces {
  std::int64_t run = 0, count = 0, words = 0;
  explicit RunPieces(std::int64_t length);
  std::int64_t start(std::int64_t piece) const;
};

}  // namespace tenon::cpu
