// Lists of images, lines with a class and pairs of texts: rows of a few fields with fixed roles.
//
// Rows are read like tables (encodings, separators, quotes, headers, skipped lines), with the
// conventions of each kind: texts are separated by tabs and keep their quotes; a path may contain
// the separator.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>

#include "data/tables/table_header.h"
#include "io/text/csv.h"

namespace tenon::data {

enum class LineForm { List, ClassLines, Pairs };

class LineReader {
 public:
  /// Reads the file's first rows. `group` is a column whose equal values stay in one part: its
  /// number from 0, or its name in a header; "": no groups. Throws IoError, FormatError, and
  /// ValueError for an invalid format and for a group that no header names. Messages of the last
  /// two begin with the file's name.
  LineReader(const std::string& file, LineForm form, const RowFormat& rows,
             const std::string& group = {});

  /// Column names without the group column; empty if there is no header.
  const ColumnNames& header() const { return names_; }
  /// Number of columns of the first row, without the group column.
  std::size_t columns() const { return first_.size(); }
  /// The next row without its group; fields are valid until the next call. Throws FormatError if
  /// the row has another number of columns than the header, or no group.
  bool next(std::vector<std::string_view>& fields);
  /// A class as in a row's field, without spaces around it. Notes count classes that differ only in
  /// spaces, and classes that may mean a missing label.
  std::string_view label(std::string_view field);
  /// A field that stays valid as long as the reader: most fields are views of the file's text.
  std::string_view kept(std::string_view field);
  const std::string& file() const { return file_; }
  const std::string& group() const { return of_group_; }
  std::int64_t line() const { return reader_->line(); }
  std::string where() const;  ///< "list.csv, line 17"
  /// The file's text from the start of field `first` to the end of field `last`; "" if quotes were
  /// removed between them.
  std::string_view between(std::string_view first, std::string_view last) const;
  /// Notes on skipped and assumed content; call after the last row.
  Notes notes() const;

 private:
  struct LabelCount {
    std::int64_t rows = 0;
    SpacedWord spaces{};
  };
  void choose_format(const RowFormat& rows);
  void sample();
  void find_group(const std::string& group);
  void find_header(const RowFormat& rows);
  bool looks_like_header();

  std::string file_, text_, of_group_;
  std::size_t group_ = kNone;
  bool named_group_ = false;
  LineForm form_;
  io::CsvFormat format_;
  bool comments_noted_ = false, note_quotes_ = false;
  std::vector<std::string> first_;
  std::vector<std::vector<std::string>> below_;
  std::int64_t first_line_ = 1;
  ColumnNames names_;
  std::unique_ptr<io::CsvReader> reader_;
  Notes notes_;
  Note quoted_{};
  std::map<std::string, LabelCount, std::less<>> labels_;
  std::deque<std::string> kept_;  // fields that are not in `text_`, because quotes were removed
};

}  // namespace tenon::data
