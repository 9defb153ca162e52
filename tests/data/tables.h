// Reads a table from a string, for the tests of tables.
#pragma once

#include <string>
#include <vector>

#include <tenon/error.h>

#include "data/tables/csv_dataset.h"

namespace tables {

inline tenon::data::TensorDatasetParts parse(const std::string& text,
                                             const tenon::data::CsvOptions& options = {}) {
  return tenon::data::parse_csv(text, "t.csv", options);
}

inline std::vector<float> inputs(const tenon::data::TensorDatasetParts& parts) {
  return parts.input.to_vector<float>();
}

/// The message of the exception; "" if the table is read.
inline std::string refusal(const std::string& text, const tenon::data::CsvOptions& options = {}) {
  try {
    parse(text, options);
  } catch (const tenon::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tables
