// Rows of fields as in RFC 4180: quoted fields with doubled quotes and line breaks inside; lines
// that end in LF, CRLF or CR; the separator is detected from the first rows.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/csv_format.h"
#include "io/text/numbers.h"

namespace tenon::io {

/// Skipped lines.
struct SkippedLines {
  std::int64_t count = 0, first = 0;  ///< `first`: line number, from 1
  void add(std::int64_t line) {
    if (count++ == 0) first = line;
  }
};

/// Reads rows sequentially.
class CsvReader {
 public:
  /// The bytes must be UTF-8 and outlive the reader. `name` is for messages.
  CsvReader(std::string_view bytes, std::string name, CsvFormat format = {});
  /// Fills `fields`, which stay valid until the next call; false at the end. Throws FormatError
  /// naming the line.
  bool next(std::vector<std::string_view>& fields);
  /// Line number, from 1, at which the last row began.
  std::int64_t line() const noexcept { return row_line_; }
  char separator() const noexcept { return format_.separator; }
  const std::string& name() const noexcept { return name_; }
  /// Skipped lines so far; empty lines after the last row are not counted.
  const SkippedLines& comments() const noexcept { return comments_; }
  const SkippedLines& blank() const noexcept { return blank_; }

 private:
  std::string_view quoted_field();
  std::string_view plain_field();
  std::string_view unescaped(std::string_view field);
  void read_row(std::vector<std::string_view>& fields);
  bool skip_to_row();
  bool is_comment() const;
  bool is_blank_line() const;
  std::size_t line_size() const;
  bool at_line_end() const {
    return rest_.empty() || rest_.front() == '\n' || rest_.front() == '\r';
  }
  void skip_line();
  void end_line();
  void skip_spaces();

  std::string_view rest_;
  std::string name_;
  CsvFormat format_;
  std::size_t row_fields_ = 0;  // fields of the first row without a leading '#'
  std::int64_t line_ = 1, row_line_ = 0;
  SkippedLines comments_, blank_;
  std::deque<std::string> unescaped_;  // fields after unescaping; a deque, so views stay valid
  std::size_t unescaped_count_ = 0;
};

}  // namespace tenon::io
