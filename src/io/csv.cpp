// A row at a time, so that a file of any size needs no memory but its bytes and one row.
#include "io/csv.h"

#include <charconv>
#include <cmath>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::io {
namespace {

constexpr std::size_t kMaxFields = 1u << 20;

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Comma, unless the first row holds more semicolons or tabs outside quotes.
char guess_separator(std::string_view bytes) {
  std::size_t commas = 0, semicolons = 0, tabs = 0;
  bool quoted = false, content = false;
  for (char c : bytes) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n' && content) break;
    if (c != '\n' && c != '\r') content = true;
    commas += c == ',';
    semicolons += c == ';';
    tabs += c == '\t';
  }
  if (semicolons > commas && semicolons >= tabs) return ';';
  return tabs > commas ? '\t' : ',';
}

}  // namespace

CsvReader::CsvReader(std::string_view bytes, std::string name)
    : rest_(bytes), name_(std::move(name)) {
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
  separator_ = guess_separator(rest_);
}

void CsvReader::end_line() {
  if (rest_.starts_with("\r\n")) {
    rest_.remove_prefix(2);
  } else if (!rest_.empty()) {
    rest_.remove_prefix(1);
  }
  ++line_;
}

bool CsvReader::skip_to_row() {
  while (!rest_.empty()) {
    if (rest_.front() == '#') {
      const std::size_t end = rest_.find('\n');
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end);
    } else if (rest_.front() != '\n' && !rest_.starts_with("\r\n")) {
      return true;
    }
    if (!rest_.empty()) end_line();
  }
  return false;
}

std::string_view CsvReader::plain_field() {
  const char stops[] = {separator_, '\n', '\0'};
  std::string_view field = rest_.substr(0, rest_.find_first_of(stops));
  rest_.remove_prefix(field.size());
  // The carriage return belongs to the line's end, not to the field.
  if (!field.empty() && field.back() == '\r' && (rest_.empty() || rest_.front() == '\n'))
    field.remove_suffix(1);
  return field;
}

std::string_view CsvReader::quoted_field() {
  const std::int64_t opened = line_;
  rest_.remove_prefix(1);
  std::size_t at = 0;
  bool doubled = false;
  for (;; ++at) {
    if (at >= rest_.size())
      throw FormatError(
          cat(name_, ": line ", opened, ": a quoted field is never closed: add the missing quote"));
    if (rest_[at] == '\n') ++line_;
    if (rest_[at] != '"') continue;
    if (at + 1 >= rest_.size() || rest_[at + 1] != '"') break;
    doubled = true;
    ++at;
  }
  std::string_view field = rest_.substr(0, at);
  rest_.remove_prefix(at + 1);
  if (rest_.starts_with("\r\n") || rest_ == "\r") rest_.remove_prefix(1);
  if (!rest_.empty() && rest_.front() != separator_ && rest_.front() != '\n')
    throw FormatError(cat(name_, ": line ", line_,
                          ": text follows a closing quote: double quotes inside a quoted field"));
  if (!doubled) return field;
  if (unescaped_count_ == unescaped_.size()) unescaped_.emplace_back();
  std::string& out = unescaped_[unescaped_count_++];
  out.clear();
  for (std::size_t i = 0; i < field.size(); ++i) {
    out.push_back(field[i]);
    if (field[i] == '"') ++i;
  }
  return out;
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  fields.clear();
  unescaped_count_ = 0;
  if (!skip_to_row()) return false;
  row_line_ = line_;
  for (;;) {
    if (fields.size() >= kMaxFields)
      throw FormatError(
          cat(name_, ": line ", row_line_, ": more than ", kMaxFields, " fields in one row"));
    fields.push_back(!rest_.empty() && rest_.front() == '"' ? quoted_field() : plain_field());
    if (rest_.empty() || rest_.front() == '\n') break;
    rest_.remove_prefix(1);  // the separator
  }
  if (!rest_.empty()) end_line();
  return true;
}

bool parse_number(std::string_view field, double& value) noexcept {
  field = trim(field);
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  return error == std::errc() && stop == end && std::isfinite(value);
}

}  // namespace tenon::io
