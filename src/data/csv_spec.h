// Parses "csv:FILE,label=NAME,…", a table as a data source.
#pragma once

#include <string>

#include <tenon/data.h>

#include "data/split_spec.h"

namespace tenon::data {

struct CsvSpec {
  std::string file;
  CsvOptions options;  ///< without those of the split
  SplitSpec divided;
};

/// Throws ValueError for options that there are not.
CsvSpec parse_csv_spec(const std::string& spec);

}  // namespace tenon::data
