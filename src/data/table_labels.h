// The classes of a table: the distinct label texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/notes.h>

#include "data/table.h"

namespace tenon::data {

struct TableClasses {
  std::vector<std::string> names;
  std::vector<std::int64_t> of_rows;  ///< a number for each row
};

/// Numbers the labels of a column. Where `known` has names, by these; else labels that are all
/// numbers, unless they are `words`, are classes in the order of their values, others in
/// alphabetical order, as in scikit-learn. Labels of one value ("1", "1.0") are one class. A
/// missing label gives kIgnoredTarget. Throws FormatError that begins with `where` ("t.csv: column
/// 3") for a label that is none of the known ones, and for quantities: numbers that are not whole,
/// or of which more than every second row has its own.
TableClasses number_labels(const RawColumn& column, const std::vector<std::string>& known,
                           const io::NumberFormat& format, const std::string& where, bool words,
                           Notes& notes);

}  // namespace tenon::data
