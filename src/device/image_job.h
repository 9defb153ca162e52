// Images that a device decodes and transforms itself, without the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalar/image_transform.h"

namespace tenon {

/// The size of a decoded image and its transforms. The result has the network's input size, and at
/// least one transform moves pixels.
struct ImageRecord {
  int width = 0, height = 0;
  std::vector<ImageTransform> changes{};
};

/// An image for a batch: a JPEG file that the device's decoder can read, or the RGB pixels of
/// another file, row by row.
struct ImageJob {
  std::string jpeg{};
  std::vector<std::uint8_t> pixels{};  // instead of a file
  int across = 1, down = 1;            // pixels that one chroma sample covers
  ImageRecord record{};
};

/// What a device can do with images.
struct ImageDecoder {
  bool found = false;        // whether it decodes files
  bool has_engines = false;  // whether it has JPEG engines, which do not slow down other work
  bool changes = false;      // whether it transforms decoded images itself
  std::string about{};       // "nvJPEG 13.3"; or why there is no decoder
};

}  // namespace tenon
