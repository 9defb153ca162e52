// Reads the rows of a delimited text one after another. Fields are views into the file's bytes,
// except quoted fields with doubled quotes, which are copied. Memory holds the file's bytes and
// one row.
#include "io/text/csv.h"

#include <algorithm>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/make_error.h"
#include "io/text/csv_layout.h"
#include "io/text/encoding.h"

namespace tenon::io {
namespace {

constexpr std::size_t kMaxFields = 1u << 20;

}  // namespace

std::string csv_field(std::string_view field, char separator) {
  const char special[] = {separator, '"', '\n', '\r', '\0'};
  if (field.find_first_of(special) == std::string_view::npos && !field.starts_with('#') &&
      without_mark(field).size() == field.size())
    return std::string(field);
  std::string out = "\"";
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

CsvReader::CsvReader(std::string_view bytes, std::string name, CsvFormat format)
    : rest_(without_mark(bytes)), name_(std::move(name)), format_(format) {
  if (const char told = separator_line(rest_); told != 0) {
    skip_line();
    if (format_.separator == 0) format_.separator = told;
  }
  const CsvLayout layout = csv_layout(rest_, format_);
  format_.separator = layout.separator;
  row_fields_ = layout.fields;
}

void CsvReader::end_line() {
  if (rest_.empty()) return;
  rest_.remove_prefix(rest_.starts_with("\r\n") ? 2 : 1);
  ++line_;
}

void CsvReader::skip_line() {
  rest_.remove_prefix(line_size());
  end_line();
}

std::size_t CsvReader::line_size() const {
  return std::min(rest_.find_first_of("\r\n"), rest_.size());
}

void CsvReader::skip_spaces() {
  while (!rest_.empty() && is_csv_space(rest_.front())) rest_.remove_prefix(1);
}

bool CsvReader::is_comment() const {
  if (!format_.comments) return false;
  if (format_.comment != 0) return rest_.front() == format_.comment;
  if (rest_.front() != '#') return false;
  return fields_in(rest_.substr(0, line_size()), format_.separator, format_.quotes) != row_fields_;
}

// True for an empty line and for a line of spaces.
bool CsvReader::is_blank_line() const {
  const std::size_t at = rest_.find_first_not_of(format_.separator == '\t' ? " " : " \t");
  return at == std::string_view::npos || rest_[at] == '\n' || rest_[at] == '\r';
}

bool CsvReader::skip_to_row() {
  SkippedLines blank;
  for (; !rest_.empty(); skip_line()) {
    if (is_blank_line()) {
      blank.add(line_);
    } else if (is_comment()) {
      comments_.add(line_);
    } else {
      if (blank_.count == 0) blank_.first = blank.first;
      blank_.count += blank.count;
      if (format_.separator == ' ') skip_spaces();
      return true;
    }
  }
  return false;
}

std::string_view CsvReader::plain_field() {
  const char separator = format_.separator;
  const char* const begin = rest_.data();
  const char* const end = begin + rest_.size();
  const char* at = begin;
  if (separator == ' ') {
    while (at != end && !is_csv_space(*at) && *at != '\n' && *at != '\r') ++at;
  } else {
    while (at != end && *at != separator && *at != '\n' && *at != '\r') ++at;
  }
  const auto size = static_cast<std::size_t>(at - begin);
  rest_.remove_prefix(size);
  return {begin, size};
}

std::string_view CsvReader::unescaped(std::string_view field) {
  if (unescaped_count_ == unescaped_.size()) unescaped_.emplace_back();
  std::string& out = unescaped_[unescaped_count_++];
  out.clear();
  for (std::size_t i = 0; i < field.size(); ++i) {
    out.push_back(field[i]);
    if (field[i] == '"') ++i;
  }
  return out;
}

std::string_view CsvReader::quoted_field() {
  const std::int64_t opened = line_;
  rest_.remove_prefix(1);
  std::size_t at = 0;
  bool doubled = false;
  for (;; ++at) {
    if (at >= rest_.size())
      throw make_error<FormatError>(FileName{name_}, ": line ", LineNumber{opened},
                                    ": a quoted field is never closed: add the missing quote");
    const char c = rest_[at];
    if (c == '\n' || (c == '\r' && !rest_.substr(at).starts_with("\r\n"))) ++line_;
    if (c != '"') continue;
    if (at + 1 >= rest_.size() || rest_[at + 1] != '"') break;
    doubled = true;
    ++at;
  }
  const std::string_view field = rest_.substr(0, at);
  rest_.remove_prefix(at + 1);
  const bool spaced = format_.separator == ' ' && !rest_.empty() && is_csv_space(rest_.front());
  while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  if (!at_line_end() && rest_.front() != format_.separator && !spaced)
    throw make_error<FormatError>(
        FileName{name_}, ": line ", LineNumber{line_},
        ": text follows a closing quote: write a quote inside a quoted field twice, "
        "or read quotes as ordinary text with quotes=no");
  return doubled ? unescaped(field) : field;
}

void CsvReader::read_row(std::vector<std::string_view>& fields) {
  for (;;) {
    if (fields.size() >= kMaxFields)
      throw make_error<FormatError>(FileName{name_}, ": line ", LineNumber{row_line_},
                                    ": more than ", kMaxFields, " fields in one row");
    // Spaces before an opening quote do not belong to the field.
    std::size_t quote = 0;
    if (format_.quotes)
      while (quote < rest_.size() && rest_[quote] == ' ') ++quote;
    const bool quoted = format_.quotes && quote < rest_.size() && rest_[quote] == '"';
    if (quoted) rest_.remove_prefix(quote);
    fields.push_back(quoted ? quoted_field() : plain_field());
    if (format_.separator == ' ') skip_spaces();
    if (at_line_end()) break;
    if (format_.separator != ' ') rest_.remove_prefix(1);
  }
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  fields.clear();
  unescaped_count_ = 0;
  if (!skip_to_row()) return false;
  row_line_ = line_;
  read_row(fields);
  end_line();
  return true;
}

}  // namespace tenon::io
