// What the kernels of pictures are given; host and device share it.
#pragma once

#include "scalar/picture_record.h"

namespace tenon::cuda {

/// Rows of the decoded picture that a thread of scale_rows makes a column of, and threads of a
/// block of it and of scale_columns; of change_pictures.
inline constexpr int kPictureRows = 4, kScaleThreads = 256, kChangeThreads = 512;

/// What is made of a picture by its changes goes to and fro between `pixels` and `spare`, RGB row
/// by row, and in the end to the batch.
struct PictureOnCard {
  unsigned char* pixels = nullptr;  // decoded
  unsigned char* spare = nullptr;
  unsigned char* scratch = nullptr;  // aligned to 256 bytes, as all of these
  const PictureChange* change = nullptr;
  int changes = 0, moves = 0;  // that move pixels
  int width = 0, height = 0;   // decoded
};

struct PicturesArgs {
  const PictureOnCard* pictures = nullptr;
  unsigned char* out = nullptr;  // [pictures, 3, height, width]
  int height = 0, width = 0;
};

}  // namespace tenon::cuda
