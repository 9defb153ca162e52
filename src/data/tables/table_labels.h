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

/// The label column of a table, and how its texts are read.
struct LabelColumn {
  const RawColumn& column;
  const std::vector<std::string>& known;  ///< names of the classes; empty: the column's texts
  const io::NumberFormat& format;
  const std::string& file;                 ///< for messages
  std::string title;                       ///< the same: "column 3"
  const std::vector<std::int64_t>& lines;  ///< line of each row
  bool words = false;                      ///< numbers are words, too
  bool unknown_kept = false;  ///< rows with an unknown label stay if at least half are known
};

/// Converts labels to class numbers. With `known` names, those define the classes. Otherwise
/// numeric labels, unless `words` is set, are ordered by value, and other labels alphabetically, as
/// in scikit-learn. Labels of equal value ("1", "1.0") are one class. A missing label gives
/// kIgnoredTarget; an unknown one that is kept does, too, and is noted. Throws FormatError with the
/// first line and the number of rows for unknown labels, and for quantities: numbers that are not
/// integers, or that are distinct in more than every second row.
TableClasses number_labels(const LabelColumn& labels, Notes& notes);

}  // namespace tenon::data
