// Parses "csv:FILE,label=NAME,…", a table as a data source.
#pragma once

#include <string>

#include <tenon/data.h>

#include "data/samples/split_spec.h"

namespace tenon::data {

struct CsvSpec {
  std::string file;
  CsvOptions options;  ///< without the split options
  SplitSpec divided;
};

/// Throws ValueError for unknown options.
CsvSpec parse_csv_spec(const std::string& spec);

}  // namespace tenon::data
