// Checks that a file holds the expected tensors.
#pragma once

#include <string>

#include <tenon/nn.h>

namespace tenon::train {

/// Throws FormatError naming `file` and the first tensor that `given` lacks, has with another
/// shape, or has in addition to `own`.
void require_tensors(const StateDict& own, const StateDict& given, const std::string& file);

}  // namespace tenon::train
