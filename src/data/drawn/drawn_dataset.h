// A dataset of synthetic images that are generated on first access and then kept, so a run starts
// at once and later epochs only copy.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

struct DrawnImageFiles {
  std::string kind;  ///< "digits": for messages and descriptions
  Shape image;       ///< [channels, height, width], uint8
  std::vector<std::string> class_names;
  std::uint64_t seed = 0;
  std::function<int(std::uint64_t seed, std::uint64_t index)> label;
  std::function<void(std::uint64_t seed, std::uint64_t index, std::uint8_t* pixels)> draw;
};

/// Throws ValueError for a count outside 1 to 100,000,000, MemoryError when they cannot be kept.
std::shared_ptr<Dataset> drawn_dataset(DrawnImageFiles images, std::int64_t count);

}  // namespace tenon::data
