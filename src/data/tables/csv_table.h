// Reads a whole table: the tensors of all its rows, and their division into parts.
#pragma once

#include <string>

#include "data/tables/read_table.h"

namespace tenon::data {

/// Parses the bytes of a CSV file. If `divided`, only the rows of the training part decide what
/// words and missing numbers become; otherwise all rows do.
ReadTable read_table(std::string bytes, const std::string& name, const CsvOptions& options,
                     bool divided);

}  // namespace tenon::data
