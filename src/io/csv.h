// CSV as in RFC 4180: quoted fields with doubled quotes and line breaks inside, LF or CRLF, the
// separator told by the first line.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::io {

/// Reads rows one after another. Empty lines and lines that start with '#' are skipped.
class CsvReader {
 public:
  /// The bytes must outlive the reader. `name` is for messages.
  CsvReader(std::string_view bytes, std::string name);
  /// Fills `fields`, which stay valid until the next call; false at the end. Throws FormatError
  /// naming the line.
  bool next(std::vector<std::string_view>& fields);
  /// Line, counted from 1, on which the row last read began.
  std::int64_t line() const noexcept { return row_line_; }
  char separator() const noexcept { return separator_; }
  const std::string& name() const noexcept { return name_; }

 private:
  std::string_view quoted_field();
  std::string_view plain_field();
  bool skip_to_row();
  void end_line();

  std::string_view rest_;
  std::string name_;
  char separator_ = ',';
  std::int64_t line_ = 1, row_line_ = 0;
  std::deque<std::string>
      unescaped_;  // owns fields whose quotes had to be undone; never moves them
  std::size_t unescaped_count_ = 0;
};

/// A field as a finite number, spaces around it ignored; false when it is none.
bool parse_number(std::string_view field, double& value) noexcept;

}  // namespace tenon::io
