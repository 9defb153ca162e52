// Pictures that a device decodes and changes by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalar/picture_record.h"

namespace tenon {

/// A picture on its way to a batch: a JPEG file that the device's decoder can read, or the RGB
/// pixels of one that it cannot, row by row.
struct PictureJob {
  std::string jpeg{};
  std::vector<std::uint8_t> pixels{};  // instead of a file
  PictureRecord record{};
};

/// What decodes pictures for a device.
struct PictureDecoder {
  bool found = false;
  bool has_engines = false;  // of its own for JPEG: nothing is taken from other work
  std::string about{};       // "nvJPEG 13.3"; or why there is none
};

}  // namespace tenon
