// The classes of a table: the distinct label texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/notes.h>

#include "data/tables/table.h"

namespace tenon::data {

struct TableClasses {
  std::vector<std::string> names;
  std::vector<std::int64_t> of_rows;  ///< class of each row
};

/// Converts labels to class numbers. With `known` names, those define the classes. Otherwise
/// numeric labels, unless `words` is set, are ordered by value, and other labels alphabetically, as
/// in scikit-learn. Labels of equal value ("1", "1.0") are one class. A missing label gives
/// kIgnoredTarget. Throws FormatError that begins with `where` ("t.csv: column 3") for an unknown
/// label, and for quantities: numbers that are not integers, or that are distinct in more than
/// every second row.
TableClasses number_labels(const RawColumn& column, const std::vector<std::string>& known,
                           const io::NumberFormat& format, const std::string& where, bool words,
                           Notes& notes);

}  // namespace tenon::data
