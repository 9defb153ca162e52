// A table as stored in its file: columns of numbers, words and dates.
//
// The role of a column for a network (input, label, encoding of missing fields) is in
// table_columns.h, table_labels.h and csv_dataset.cpp.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>

#include "data/dates.h"
#include "io/csv.h"

namespace tenon::data {

/// How the fields of a column are read. Groups are words among which only "" is missing; of labels
/// LabelRule says which are.
enum class Reading { Skipped, Numbers, Words, Labels, Groups, Dates };

/// A field whose line a message names.
struct OddField {
  std::int64_t line = 0, count = 0;  ///< line of the first one, and how many there are
  std::string text{};
  void add(std::int64_t at, std::string_view field);
};

/// A word that stands in fields with spaces around it, and in others without.
struct SpacedWord {
  bool bare = false;
  std::int64_t count = 0, line = 0;  ///< of the fields with spaces
};

struct RawColumn {
  std::vector<float> numbers;        ///< NaN where the field is no number
  std::vector<std::int32_t> places;  ///< of words: place in `texts`, -1 where the field is missing
  std::vector<std::string> texts;    ///< different words in order of appearance
  std::vector<SpacedWord> spaced;    ///< of each of them
  std::vector<double> dates;         ///< seconds (data/dates.h); NaN where the field is no date
  unsigned date_orders = kAnyOrder;  ///< in which all of them are dates
  OddField missing, odd;             ///< odd: neither missing nor what the column is read as
  OddField too_large;                ///< of those: infinities and what is beyond float32
  std::int64_t odd_with_digits = 0;  ///< of the others: words with a digit in them
  OddField short_years;              ///< dates with two digits for the year
};

/// Which labels are missing, and what becomes of their rows.
struct LabelRule {
  std::size_t column = static_cast<std::size_t>(-1);  ///< none
  bool keep_rows = false;                             ///< else rows without a label are left out
  bool only_empty = false;                            ///< words as "NA" are labels
  std::set<std::string> known{};                      ///< these are labels, whatever they are
  bool is_missing(std::string_view field) const;
};

/// What was done to numbers to read them, over all columns.
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
  std::vector<std::int64_t> lines;  ///< of each row
  Conversions conversions;
  OddField unlabelled;  ///< rows that were left out
  io::SkippedLines comments, blank;
};

/// Whether a field stands for a value that is not known: empty, NA, N/A, NaN, null, none or ?,
/// in any case, also between < and >.
bool is_missing(std::string_view field);
/// Without spaces around it, no-break ones too.
std::string_view trimmed(std::string_view field);
/// A name in small letters, without spaces around it and with one space in the place of several.
std::string folded(std::string_view name);

/// The reader's format of what a user says. Throws ValueError that begins with `name` for what is
/// no separator, comment or number format.
io::CsvFormat csv_format(const RowFormat& rows, const std::string& name);
io::NumberFormat number_format(const std::string& decimal, const std::string& thousands,
                               const std::string& name);

/// Notes about lines that held no row.
void note_skipped(Notes& notes, const std::string& file, const io::SkippedLines& comments,
                  const io::SkippedLines& blank, bool comments_asked_for);

class TableFile {
 public:
  /// Reads the first rows. The text is UTF-8 and must outlive it. Throws FormatError for a file
  /// without rows.
  TableFile(std::string_view text, std::string name, const io::CsvFormat& format,
            const io::NumberFormat& numbers);
  const std::string& name() const { return name_; }
  std::size_t columns() const { return first_.size(); }
  std::size_t bytes() const { return text_.size(); }
  char separator() const { return separator_; }
  const std::vector<std::string>& first_row() const { return first_; }
  /// Rows behind the first one, at most 64.
  const std::vector<std::vector<std::string>>& next_rows() const { return next_; }
  std::int64_t first_line() const { return first_line_; }
  bool is_number(std::string_view field) const;
  const io::NumberFormat& numbers() const { return numbers_; }
  /// All rows but a header, each column as told; dates in the order that is told for their column,
  /// kAnyOrder where it is to be found. Throws FormatError, with the line, for rows of other
  /// lengths and for columns of more than 100,000 different words.
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
