// Images that a device decodes and changes by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalar/image_transform.h"

namespace tenon {

/// The size of a decoded image, and what is done to it: in the end it has the network's, and one
/// change at least moves its pixels.
struct ImageRecord {
  int width = 0, height = 0;
  std::vector<ImageTransform> changes{};
};

/// An image on its way to a batch: a JPEG file that the device's decoder can read, or the RGB
/// pixels of one that it cannot, row by row.
struct ImageJob {
  std::string jpeg{};
  std::vector<std::uint8_t> pixels{};  // instead of a file
  int across = 1, down = 1;            // pixels of a colour's sample in the file
  ImageRecord record{};
};

/// What a device does about images.
struct ImageDecoder {
  bool found = false;        // that decodes files
  bool has_engines = false;  // of its own for JPEG: nothing is taken from other work
  bool changes = false;      // those that are decoded, by itself
  std::string about{};       // "nvJPEG 13.3"; or why there is none
};

}  // namespace tenon
