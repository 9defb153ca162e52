// Tables as datasets.
#pragma once

#include <optional>
#include <string>

#include "data/part_reader.h"
#include "data/tensor_dataset.h"

namespace tenon::data {

/// Parses the bytes of a CSV file into float32 inputs (uint8 images when options.image_shape is
/// given) and labels: all rows, or one part of them, whose tensors still hold all.
TensorDatasetParts parse_csv(std::string bytes, const std::string& name, const CsvOptions& options,
                             std::optional<Split> part = {});

/// As open_csv(), which opens one part; the test part may be a file of its own.
PartReader read_csv(const std::string& file, const std::string& test_file,
                    const CsvOptions& options);

}  // namespace tenon::data
