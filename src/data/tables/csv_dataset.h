// Tables as datasets.
#pragma once

#include <optional>
#include <string>

#include "data/samples/part_reader.h"
#include "data/samples/tensor_dataset.h"

namespace tenon::data {

/// Parses the bytes of a CSV file into float32 inputs (uint8 images if options.image_shape is set)
/// and labels: all rows, or one part of them, whose tensors still contain all rows.
TensorDatasetParts parse_csv(std::string bytes, const std::string& name, const CsvOptions& options,
                             std::optional<Split> part = {});

/// Like open_csv(), for all parts; the test part may be a separate file.
PartReader read_csv(const std::string& file, const std::string& test_file,
                    const CsvOptions& options);

}  // namespace tenon::data
