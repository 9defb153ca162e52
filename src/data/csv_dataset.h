// Tables as sets.
#pragma once

#include <optional>
#include <string>

#include "data/tensor_dataset.h"

namespace tenon::data {

/// Parses the bytes of a CSV file into float32 inputs (uint8 pictures when options.image_shape is
/// given) and labels: all rows, or one part of them.
TensorDatasetParts parse_csv(std::string bytes, const std::string& name, const CsvOptions& options,
                             std::optional<Split> part = {});

}  // namespace tenon::data
