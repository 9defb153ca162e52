// Which rows of a table are for testing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// A row's class and group, by number; empty where there are none.
struct RowMarks {
  std::vector<std::int64_t> classes, groups;
};

/// A flag for each row: a function of the options, the number of rows and their marks alone.
/// Throws ValueError that begins with `name` for options that leave one of the parts empty.
std::vector<bool> test_rows(const SplitOptions& options, std::int64_t rows, const RowMarks& marks,
                            const std::string& name);

}  // namespace tenon::data
