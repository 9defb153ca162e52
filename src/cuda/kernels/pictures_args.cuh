// What the kernels of pictures are given; host and device share it.
#pragma once

#include "scalar/picture_record.h"

namespace tenon::cuda {

/// Rows of the decoded picture that a block of scale_rows makes.
inline constexpr int kPictureRows = 4;

struct PictureOnCard {
  const unsigned char* pixels = nullptr;  // RGB, row by row
  unsigned char* rows = nullptr;          // [record.rows, width, 3]
  PictureRecord record;
};

struct PicturesArgs {
  const PictureOnCard* pictures = nullptr;
  unsigned char* out = nullptr;  // [pictures, 3, height, width]
  int height = 0, width = 0;
};

}  // namespace tenon::cuda
