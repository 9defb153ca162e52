// A table as stored in its file: columns of numbers, words and dates.
//
// The role of a column for a network (input, label, encoding of missing fields) is in
// table_columns.h, table_labels.h and csv_dataset.cpp.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/data.h>

#include "data/tables/dates.h"
#include "data/tables/fields.h"
#include "io/text/csv.h"

namespace tenon::data {

/// How the fields of a column are read. In groups only "" counts as missing; LabelRule says which
/// labels are missing.
enum class Reading { Skipped, Numbers, Words, Labels, Groups, Dates };

/// A field whose line is reported.
struct OddField {
  std::int64_t line = 0, count = 0;  ///< line of the first one, and their number
  std::string text{};
  void add(std::int64_t at, std::string_view field);
};

/// A word that occurs with and without surrounding spaces.
struct SpacedWord {
  bool bare = false;
  std::int64_t count = 0, line = 0;  ///< of fields with spaces
};

struct RawColumn {
  std::vector<float> numbers;        ///< NaN if the field is not a number
  std::vector<std::int32_t> places;  ///< index into `texts`, -1 if missing
  std::vector<std::string> texts;    ///< distinct words in order of appearance
  std::vector<SpacedWord> spaced;    ///< of each of them
  std::vector<double> dates;  ///< seconds (data/tables/dates.h); NaN if the field is not a date
  unsigned date_orders = kAnyOrder;  ///< orders in which all fields are dates
  OddField missing, odd;             ///< odd: neither missing nor readable as the column's kind
  OddField too_large;                ///< infinities and values beyond float32
  std::int64_t odd_with_digits = 0;  ///< odd fields that contain a digit
  OddField short_years;              ///< dates with two digits for the year
};

/// Which labels count as missing, and what happens to their rows.
struct LabelRule {
  std::size_t column = static_cast<std::size_t>(-1);  ///< none
  bool keep_rows = false;                             ///< false: rows without a label are dropped
  bool only_empty = false;                            ///< true: words such as "NA" are labels
  std::set<std::string> known{};                      ///< always labels
  bool is_missing(std::string_view field) const;
};

/// Rows without a label, and the forms in which they say so.
struct Unlabelled {
  OddField rows{};
  std::vector<std::pair<std::string, std::int64_t>> forms{};  ///< trimmed, with their counts
  void add(std::int64_t line, std::string_view field);
};

/// Conversions of numbers, counted over all columns.
struct Conversions {
  struct Kind {
    std::int64_t count = 0, line = 0;
    std::size_t column = 0;
  };
  Kind percent, minus, spaces, exponents, rounded;
};

/// The columns of a file.
struct TableRows {
  std::vector<RawColumn> columns;
  std::vector<std::int64_t> lines;  ///< line of each row
  Conversions conversions;
  Unlabelled unlabelled;  ///< dropped unless LabelRule::keep_rows
  io::SkippedLines comments, blank;
};

/// The reader's format for the user's options. Throws ValueError that begins with `name` for an
/// invalid separator, comment or number format.
io::CsvFormat csv_format(const RowFormat& rows, const std::string& name);
io::NumberFormat number_format(const std::string& decimal, const std::string& thousands,
                               const std::string& name);

/// Notes on skipped lines.
void note_skipped(Notes& notes, const std::string& file, const io::SkippedLines& comments,
                  const io::SkippedLines& blank, bool comments_asked_for);

class TableFile {
 public:
  /// Reads the first rows. The text must be UTF-8 and outlive it. Throws FormatError if the file
  /// has no rows.
  TableFile(std::string_view text, std::string name, const io::CsvFormat& format,
            const io::NumberFormat& numbers);
  const std::string& name() const { return name_; }
  std::size_t columns() const { return first_.size(); }
  std::size_t bytes() const { return text_.size(); }
  char separator() const { return separator_; }
  const std::vector<std::string>& first_row() const { return first_; }
  /// Rows after the first one, at most 64.
  const std::vector<std::vector<std::string>>& next_rows() const { return next_; }
  std::int64_t first_line() const { return first_line_; }
  bool is_number(std::string_view field) const;
  const io::NumberFormat& numbers() const { return numbers_; }
  /// Reads all rows except a header, each column with its kind; dates in the given order of their
  /// column, or kAnyOrder to detect it. Throws FormatError with the line if a row has another
  /// length, or if a column has more than 100,000 distinct words.
  TableRows read(const std::vector<Reading>& how, const std::vector<DateOrder>& orders,
                 const LabelRule& label, bool header) const;

 private:
  std::string_view text_;
  std::string name_;
  io::CsvFormat format_;
  io::NumberFormat numbers_;
  char separator_ = ',';
  std::int64_t first_line_ = 1;
  std::vector<std::string> first_;
  std::vector<std::vector<std::string>> next_;
};

}  // namespace tenon::data
