// Counts of files omitted while images were gathered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/notes.h>

namespace tenon::data {

/// Number of omitted items, the first one, and names if wanted.
struct Tally {
  std::int64_t count = 0;
  std::string first{};
  std::vector<std::string> names{};

  void add(const std::string& where, const std::string& name = "");
};

/// Counts for class folders and shards.
struct LeftOut {
  Tally not_images, too_deep, empty_classes, beside_classes;
  Tally several_images, no_image, no_files;

  Notes notes() const;
};

}  // namespace tenon::data
