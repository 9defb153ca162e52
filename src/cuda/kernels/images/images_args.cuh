// Arguments of the image kernels; host and device share them.
#pragma once

#include "scalar/image_transform.h"

namespace tenon::cuda {

/// Rows of the decoded image per item of scale_rows; threads per block of scale_rows and
/// scale_columns; threads per block of transform_images.
inline constexpr int kImageRows = 4, kScaleThreads = 256, kChangeThreads = 512;

/// One image. Its transforms alternate between `pixels` and `spare` (RGB, row-major); the last one
/// writes to the batch.
struct ImageOnGpu {
  // Decoded planes (JpegPlanes); null: `pixels` already holds RGB.
  const unsigned char* planes = nullptr;
  unsigned char* pixels = nullptr;  // the decoded image, RGB
  unsigned char* spare = nullptr;
  unsigned char* scratch = nullptr;  // aligned to 256 bytes, like the other buffers
  const ImageTransform* change = nullptr;
  int changes = 0, moves = 0;  // number of transforms; number of those that move pixels
  int width = 0, height = 0;   // size of the decoded image
  int across = 1, down = 1;    // pixels per chroma sample in `planes`, horizontally and vertically
};

/// The layout of a decoded JPEG: the luma plane, then the two chroma planes.
struct JpegPlanes {
  int height, colour_width, colour_height;
  long long pitch, colour_pitch;
  constexpr long long colour(int k) const {
    return pitch * height + k * colour_pitch * colour_height;
  }
  constexpr long long bytes() const { return colour(2); }
};
constexpr JpegPlanes jpeg_planes(int width, int height, int across, int down) {
  const int colour_width = (width + across - 1) / across;
  return {height, colour_width, (height + down - 1) / down, (width + 63ll) / 64 * 64,
          (colour_width + 63ll) / 64 * 64};
}

struct ImagesArgs {
  const ImageOnGpu* images = nullptr;
  unsigned char* out = nullptr;  // [images, 3, height, width]
  int height = 0, width = 0;
};

}  // namespace tenon::cuda
