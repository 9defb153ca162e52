// A table as its file has it: columns of numbers, and of words where they are asked for.
//
// What a column means to a network (an input, a label, what a missing field counts as) stands in
// table_columns.h and csv_dataset.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::data {

/// How the fields of a column are read. Labels are words among which only "" is missing.
enum class Reading { Skipped, Numbers, Words, Labels };

/// A field whose line a message names.
struct OddField {
  std::int64_t line = 0, count = 0;  ///< line of the first one, and how many there are
  std::string text{};
  void add(std::int64_t at, std::string_view field);
};

struct RawColumn {
  std::vector<float> numbers;        ///< NaN where the field is no number
  std::vector<std::int32_t> places;  ///< of words: place in `texts`, -1 where the field is missing
  std::vector<std::string> texts;    ///< different words in order of appearance
  OddField missing, odd;             ///< odd: neither missing nor a number
};

/// Whether a field stands for a value that is not known: empty, NA, N/A, NaN, null or ?, in any
/// case.
bool is_missing(std::string_view field);
/// Without spaces around it.
std::string_view trimmed(std::string_view field);

class TableFile {
 public:
  /// Reads the first rows. The bytes must outlive it. Throws FormatError for a file without rows.
  TableFile(std::string_view bytes, std::string name);
  const std::string& name() const { return name_; }
  std::size_t columns() const { return first_.size(); }
  const std::vector<std::string>& first_row() const { return first_; }
  /// Whether the first row looks like names, `label` apart: a word stands above a number, or it has
  /// no number at all.
  bool looks_like_header(std::size_t label) const;
  /// All rows but a header, each column as told. Throws FormatError, with the line, for rows of
  /// other lengths and for columns of more than 100,000 different words. `lines` becomes the line
  /// of each row.
  std::vector<RawColumn> read(const std::vector<Reading>& how, bool header,
                              std::vector<std::int64_t>& lines) const;

 private:
  std::string_view bytes_;
  std::string name_;
  std::vector<std::string> first_, second_;
};

}  // namespace tenon::data
