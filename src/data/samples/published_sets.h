// Datasets with separate files for the test part, in their own formats.
#pragma once

#include <string>

#include "data/samples/part_reader.h"

namespace tenon::data {

/// Like open_cifar() and open_idx(), for all parts.
PartReader read_cifar(const std::string& folder, const SplitOptions& split);
PartReader read_idx(const std::string& folder, const SplitOptions& split);
/// Path of "train-images-idx3-ubyte" and similar in a folder, with or without .gz; "" if missing.
/// Throws IoError if permissions hide the folder's files.
std::string find_idx(const std::string& folder, const std::string& stem, const std::string& kind);

/// Folder of a published dataset in default_data_dir(); "" if there is no such folder.
std::string published_folder(const std::string& kind);

}  // namespace tenon::data
