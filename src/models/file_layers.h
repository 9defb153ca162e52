// The layer types of network files: one table with the builder of each.
#pragma once

#include <string>
#include <vector>

#include "models/file_layer.h"

namespace tenon::models {

/// Makes a layer of the table. Throws FileFault, and what its module's constructor throws.
FileLayer make_file_layer(LayerKeys& keys, const FileArrival& arrival);
/// The kinds of the table.
const std::vector<std::string>& file_layer_names();

}  // namespace tenon::models
