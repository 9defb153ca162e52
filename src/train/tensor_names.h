// Checks that a file holds the expected tensors.
#pragma once

#include <string>

#include <tenon/nn.h>

namespace tenon::train {

/// Throws FormatError naming `file` and the first tensors of `own` that `given` lacks, holds in
/// another shape, or has beyond them.
void require_tensors(const StateDict& own, const StateDict& given, const std::string& file);

}  // namespace tenon::train
