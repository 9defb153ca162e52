// Datasets with separate files for the test part, in their own formats.
#pragma once

#include <string>

#include "data/part_reader.h"

namespace tenon::data {

/// As open_cifar() and open_idx(), which open one part.
PartReader read_cifar(const std::string& folder, const SplitOptions& split);
PartReader read_idx(const std::string& folder, const SplitOptions& split);
/// "train-images-idx3-ubyte" and the like in a folder, with or without .gz; "" where it is not
/// there.
std::string find_idx(const std::string& folder, const std::string& stem, const std::string& kind);

}  // namespace tenon::data
