// Arguments of the convolution kernels over images (conv_image.cuh); host and device share them.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

struct ImageProblem {
  const void* image = nullptr;    // [N, C, height, width], contiguous, 16 bits
  const void* filters = nullptr;  // [K, C, R, S] with the strides below, same type
  long long filter_stride = 0, channel_stride = 0, row_stride = 0, column_stride = 0;
  int height = 0, width = 0, pad_h = 0, pad_w = 0;
  int rows = 0, columns = 0;  // size of the result
  Divisor strips, bands;      // number of tiles along a row of the result, and along a column
  int tiles = 0;              // number of tiles of all images
};

/// The weight gradient: `image` and sizes as above.
struct ImageGradient {
  ImageProblem at;
  const void* gradient = nullptr;  // output gradient [N, rows, columns, K], contiguous, 16 bits
  float* partials = nullptr;       // [block][K][C, R, S]
};

}  // namespace tenon::cuda
