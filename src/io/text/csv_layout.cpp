// Detects the separator: the character that occurs equally often in every row. If several
// characters do, the most frequent one wins. Commas that always are between digits are decimal
// commas and lose against any other separator.
#include "io/text/csv_layout.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/digit.h"

namespace tenon::io {
namespace {

// Limits of the part of the file that is examined.
constexpr std::size_t kHeadBytes = 1u << 20, kHeadRows = 64;
constexpr std::string_view kSeparators = "\t;|,";
constexpr std::size_t kComma = 3;

struct RowCounts {
  std::array<std::size_t, 4> separators{};  // count of each of kSeparators outside quotes
  std::size_t words = 0;                    // fields between spaces
  bool digits = false;                      // a field, or its text in quotes, begins with a digit
  bool comma_in_text = false;               // a comma is not between two digits
  std::string_view text;
};

// A quote opens a field only after a separator, a space or a line end, not within a word.
bool may_open(char before) {
  return !is_digit(before) && !(before >= 'a' && before <= 'z') &&
         !(before >= 'A' && before <= 'Z');
}
bool is_end(char c) { return c == '\n' || c == '\r'; }

// Counts the row that begins at `at` and moves `at` past it.
RowCounts count_row(std::string_view text, std::size_t& at, bool quotes) {
  RowCounts out;
  const std::size_t from = at;
  bool quoted = false;
  char before = ' ';
  for (; at < text.size() && (quoted || !is_end(text[at])); ++at) {
    const char c = text[at];
    if (!quoted && is_csv_space(before) && !is_csv_space(c)) {
      ++out.words;
      const char first = quotes && c == '"' && at + 1 < text.size() ? text[at + 1] : c;
      out.digits = out.digits || is_digit(first) || first == '-' || first == '.';
    }
    if (quotes && c == '"' && (quoted || may_open(before))) quoted = !quoted;
    if (!quoted) {
      const std::size_t k = kSeparators.find(c);
      if (k != std::string_view::npos) ++out.separators[k];
      const bool digit_follows = at + 1 < text.size() && is_digit(text[at + 1]);
      if (c == ',' && !(is_digit(before) && digit_follows)) out.comma_in_text = true;
    }
    before = c;
  }
  out.text = text.substr(from, at - from);
  return out;
}

std::vector<RowCounts> count_head(std::string_view text, const CsvFormat& format) {
  const char mark = format.comment == 0 ? '#' : format.comment;
  const bool cut = text.size() > kHeadBytes;
  text = text.substr(0, kHeadBytes);
  std::vector<RowCounts> rows, comments;
  for (std::size_t at = 0; at < text.size() && rows.size() < kHeadRows;) {
    if (is_end(text[at])) {
      ++at;
      continue;
    }
    const RowCounts row = count_row(text, at, format.quotes);
    if (cut && at == text.size() && !rows.empty()) break;  // the row is incomplete
    if (row.words == 0) continue;
    const bool comment = format.comments && row.text.front() == mark;
    if (!comment) rows.push_back(row);
    if (comment && comments.size() < kHeadRows) comments.push_back(row);
  }
  return rows.empty() && format.comment == 0 ? comments : rows;
}

// True if separator k occurs equally often in all rows, at least once.
bool is_regular(const std::vector<RowCounts>& rows, std::size_t k) {
  return std::all_of(rows.begin(), rows.end(), [&](const RowCounts& row) {
    return row.separators[k] > 0 && row.separators[k] == rows[0].separators[k];
  });
}

bool is_spaced(const std::vector<RowCounts>& rows, bool no_comma) {
  const auto& none = rows[0].separators;
  return rows[0].words > 1 &&
         std::all_of(none.begin() + 1, none.begin() + (no_comma ? kComma : kSeparators.size()),
                     [](auto n) { return n == 0; }) &&
         std::any_of(rows.begin(), rows.end(), [](const RowCounts& row) { return row.digits; }) &&
         std::all_of(rows.begin(), rows.end(),
                     [&](const RowCounts& row) { return row.words == rows[0].words; });
}

char separator_of(const std::vector<RowCounts>& rows, char decimal) {
  const bool no_comma = decimal == ',';
  const auto& first = rows[0].separators;
  std::size_t best = kSeparators.size();
  const bool decimal_commas = std::none_of(rows.begin(), rows.end(),
                                           [](const RowCounts& row) { return row.comma_in_text; });
  for (std::size_t k = 0; k < kSeparators.size(); ++k) {
    if (!is_regular(rows, k) || (k == kComma && no_comma)) continue;
    if (k == kComma && decimal_commas && best < kComma) continue;
    if (best == kSeparators.size() || first[k] > first[best]) best = k;
  }
  if (best < kSeparators.size()) return kSeparators[best];
  if (is_spaced(rows, no_comma)) return ' ';
  // No separator is regular: take the most frequent one of the first row. The reader then reports
  // the row whose number of fields differs.
  best = kComma;
  for (std::size_t k = 0; k < kComma; ++k)
    if (first[k] > (best == kComma && no_comma ? 0 : first[best])) best = k;
  return best == kComma && no_comma ? ';' : kSeparators[best];
}

}  // namespace

char separator_line(std::string_view text) noexcept {
  const bool named = text.size() >= 5 && (text.starts_with("sep=") || text.starts_with("SEP=") ||
                                          text.starts_with("Sep="));
  return named && !is_end(text[4]) && (text.size() == 5 || is_end(text[5])) ? text[4] : '\0';
}

std::size_t fields_in(std::string_view row, char separator, bool quotes) {
  bool quoted = false;
  std::size_t fields = separator == ' ' ? 0 : 1;
  char before = ' ';
  for (const char c : row) {
    if (separator == ' ') fields += !quoted && is_csv_space(before) && !is_csv_space(c);
    if (quotes && c == '"' && (quoted || may_open(before))) quoted = !quoted;
    if (separator != ' ') fields += !quoted && c == separator;
    before = c;
  }
  return fields;
}

CsvLayout csv_layout(std::string_view text, const CsvFormat& format) {
  const std::vector<RowCounts> rows = count_head(text, format);
  CsvLayout out;
  out.separator = format.separator;
  if (rows.empty()) {
    if (out.separator == 0) out.separator = ',';
    return out;
  }
  if (out.separator == 0) out.separator = separator_of(rows, format.decimal);
  out.fields = fields_in(rows[0].text, out.separator, format.quotes);
  // If all rows begin with '#', the rows are data if they have two fields or more, else comments.
  if (rows[0].text.front() == '#' && out.fields < 2 && format.comments) out.fields = 0;
  return out;
}

}  // namespace tenon::io
