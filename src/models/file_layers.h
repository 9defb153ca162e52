// The layer types of network files: one table with the builder of each.
#pragma once

#include <string>
#include <vector>

#include "models/file_layer.h"

namespace tenon::models {

/// Builds a layer. Throws FileFault, and what the module's constructor throws.
FileLayer make_file_layer(LayerKeys& keys, const LayerContext& context);
/// The names of all layer types.
const std::vector<std::string>& file_layer_names();

}  // namespace tenon::models
