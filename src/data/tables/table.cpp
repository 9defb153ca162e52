// Columns of a file, read in one pass.
#include "data/tables/table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"

namespace tenon::data {
namespace {

constexpr std::size_t kMostWords = 100'000, kSampleRows = 64, kSampleFields = 1u << 16;
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

struct WordHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>()(text);
  }
};
using Known = std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>>;

bool has_digit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A pass over the rows.
class Pass {
 public:
  Pass(const std::string& name, const io::NumberFormat& numbers, const LabelRule& label,
       std::size_t columns)
      : name_(name), numbers_(numbers), label_(label), known_(columns) {
    rows.columns.resize(columns);
  }
  void add(std::size_t c, Reading how, DateOrder order, std::string_view field, std::int64_t line) {
    if (how == Reading::Numbers) add_number(c, field, line);
    if (how == Reading::Words) add_word(c, field, is_missing(field), line);
    if (how == Reading::Labels) add_word(c, field, label_.is_missing(field), line);
    if (how == Reading::Groups) add_word(c, field, trimmed(field).empty(), line);
    if (how == Reading::Dates) add_date(c, order, field, line);
  }
  TableRows rows;

 private:
  void count(Conversions::Kind& kind, std::size_t c, std::int64_t line) {
    if (kind.count++ == 0) kind.line = line, kind.column = c;
  }
  void add_number(std::size_t c, std::string_view field, std::int64_t line) {
    RawColumn& column = rows.columns[c];
    double wide = 0;
    unsigned signs = 0;
    io::NumberKind kind = io::read_number(field, numbers_, wide, signs);
    const auto value = static_cast<float>(wide);
    if (kind == io::NumberKind::Number && !std::isfinite(value)) kind = io::NumberKind::TooLarge;
    if (kind == io::NumberKind::Number) {
      column.numbers.push_back(value);
      Conversions& done = rows.conversions;
      if ((signs & io::kPercentSign) != 0) count(done.percent, c, line);
      if ((signs & io::kMinusSign) != 0) count(done.minus, c, line);
      if ((signs & io::kNoBreakSpace) != 0) count(done.spaces, c, line);
      if ((signs & io::kFortranExponent) != 0) count(done.exponents, c, line);
      // float32 represents every integer up to 2^24.
      if (std::abs(wide) > 16'777'216.0 && static_cast<double>(value) != wide &&
          std::abs(wide) < 9e15 && wide == std::floor(wide))
        count(done.rounded, c, line);
      return;
    }
    column.numbers.push_back(kNoNumber);
    if (is_missing(field)) return column.missing.add(line, field);
    column.odd.add(line, field);
    if (kind == io::NumberKind::TooLarge)
      column.too_large.add(line, field);
    else
      column.odd_with_digits += has_digit(field);
  }
  void add_word(std::size_t c, std::string_view field, bool missing, std::int64_t line) {
    const std::string_view text = trimmed(field);
    RawColumn& column = rows.columns[c];
    if (missing) {
      column.missing.add(line, text);
      return column.places.push_back(-1);
    }
    auto found = known_[c].find(text);
    if (found == known_[c].end()) {
      if (column.texts.size() >= kMostWords)
        throw make_error<FormatError>(FileName{name_}, ": column ", c + 1, " has more than ",
                                      kMostWords,
                                      " different words: is it an input or the label's column?");
      found = known_[c].emplace(text, static_cast<std::int32_t>(column.texts.size())).first;
      column.texts.emplace_back(text);
      column.spaced.emplace_back();
    }
    column.places.push_back(found->second);
    SpacedWord& word = column.spaced[static_cast<std::size_t>(found->second)];
    if (text.size() == field.size())
      word.bare = true;
    else if (word.count++ == 0)
      word.line = line;
  }
  void add_date(std::size_t c, DateOrder order, std::string_view field, std::int64_t line) {
    RawColumn& column = rows.columns[c];
    double seconds = std::numeric_limits<double>::quiet_NaN();
    if (is_missing(field)) {
      column.missing.add(line, field);
    } else {
      bool short_year = false;
      const unsigned orders = read_date(field, order, seconds, short_year);
      if (short_year) column.short_years.add(line, field);
      if ((orders & order & column.date_orders) == 0) column.odd.add(line, field);
      if ((orders & column.date_orders) != 0) column.date_orders &= orders;
    }
    column.dates.push_back(seconds);
  }

  const std::string& name_;
  const io::NumberFormat& numbers_;
  const LabelRule& label_;
  std::vector<Known> known_;
};

struct NamedSign {
  const char* name;
  char sign;
};

char sign_of(const std::string& text) {
  for (const NamedSign& known : {NamedSign{"tab", '\t'},
                                 {"\\t", '\t'},
                                 {"space", ' '},
                                 {"comma", ','},
                                 {"semicolon", ';'},
                                 {"pipe", '|'},
                                 {"point", '.'},
                                 {"apostrophe", '\''}})
    if (text == known.name) return known.sign;
  return text.size() == 1 ? text[0] : '\0';
}

}  // namespace

void OddField::add(std::int64_t at, std::string_view field) {
  if (count++ > 0) return;
  line = at;
  text = field.substr(0, 60);
}

void Unlabelled::add(std::int64_t line, std::string_view field) {
  rows.add(line, field);
  const std::string_view form = trimmed(field);
  const auto known = std::find_if(forms.begin(), forms.end(),
                                  [&](const auto& each) { return each.first == form; });
  if (known == forms.end())
    forms.emplace_back(form, 1);
  else
    ++known->second;
}

bool LabelRule::is_missing(std::string_view field) const {
  const std::string_view text = trimmed(field);
  return text.empty() ||
         (!only_empty && data::is_missing(text) && !known.contains(std::string(text)));
}

io::CsvFormat csv_format(const RowFormat& rows, const std::string& name) {
  io::CsvFormat out;
  if (!rows.separator.empty()) {
    out.separator = sign_of(rows.separator);
    if (out.separator == '\0' || out.separator == '"' || out.separator == '\n' ||
        out.separator == '\r')
      throw make_error<ValueError>(
          FileName{name}, ": the separator '", rows.separator,
          "', must be one character, or tab, space, comma, semicolon or pipe");
  }
  out.comments = rows.comment != "none";
  if (out.comments && !rows.comment.empty()) {
    if (rows.comment.size() != 1)
      throw make_error<ValueError>(FileName{name},
                                   ": comments begin with one character, or 'none' there is, not '",
                                   rows.comment, "'");
    out.comment = rows.comment[0];
  }
  out.quotes = rows.quotes.value_or(true);
  return out;
}

io::NumberFormat number_format(const std::string& decimal, const std::string& thousands,
                               const std::string& name) {
  io::NumberFormat out;
  if (!decimal.empty()) out.decimal = sign_of(decimal);
  if (!thousands.empty()) out.thousands = sign_of(thousands);
  if (out.decimal != '.' && out.decimal != ',')
    throw make_error<ValueError>(FileName{name}, ": decimal '", decimal, "', must be '.' or ','");
  if (!thousands.empty() && std::string_view(".,' ").find(out.thousands) == std::string_view::npos)
    throw make_error<ValueError>(FileName{name}, ": thousands '", thousands,
                                 "', must be '.', ',', an apostrophe or a space");
  if (out.thousands == out.decimal)
    throw make_error<ValueError>(
        FileName{name}, ": '", std::string(1, out.decimal),
        "' is both the decimal point and the thousands separator: with decimal=, the decimal point "
        "is a comma");
  return out;
}

void note_skipped(Notes& notes, const std::string& file, const io::SkippedLines& comments,
                  const io::SkippedLines& blank, bool comments_asked_for) {
  const auto lines = [](std::int64_t n, const char* one, const char* many) {
    return cat(n, n == 1 ? one : many);
  };
  if (comments.count > 0 && !comments_asked_for)
    notes.push_back({lines(comments.count, " line that begins with '#' was skipped",
                           " lines that begin with '#' were skipped"),
                     comments.count, cat(file, ", line ", comments.first)});
  if (blank.count > 0)
    notes.push_back({lines(blank.count, " empty line was skipped", " empty lines were skipped"),
                     blank.count, cat(file, ", line ", blank.first)});
}

TableFile::TableFile(std::string_view text, std::string name, const io::CsvFormat& format,
                     const io::NumberFormat& numbers)
    : text_(text), name_(std::move(name)), format_(format), numbers_(numbers) {
  format_.decimal = numbers.decimal;
  io::CsvReader reader(text_, name_, format_);
  std::vector<std::string_view> fields;
  if (!reader.next(fields)) throw make_error<FormatError>(FileName{name_}, ": contains no rows");
  separator_ = reader.separator();
  first_line_ = reader.line();
  first_.assign(fields.begin(), fields.end());
  // Fewer rows are sampled if rows are very wide.
  const std::size_t most = std::clamp<std::size_t>(kSampleFields / first_.size(), 1, kSampleRows);
  while (next_.size() < most && reader.next(fields))
    next_.emplace_back(fields.begin(), fields.end());
}

bool TableFile::is_number(std::string_view field) const {
  double value = 0;
  unsigned signs = 0;
  return io::read_number(field, numbers_, value, signs) != io::NumberKind::None;
}

TableRows TableFile::read(const std::vector<Reading>& how, const std::vector<DateOrder>& orders,
                          const LabelRule& label, bool header) const {
  io::CsvReader reader(text_, name_, format_);
  std::vector<std::string_view> fields;
  Pass pass(name_, numbers_, label, columns());
  if (header) (void)reader.next(fields);
  while (reader.next(fields)) {
    if (fields.size() != columns())
      throw make_error<FormatError>(FileName{name_}, ": line ", LineNumber{reader.line()}, " has ",
                                    fields.size(), " columns where the first row has ", columns());
    if (label.column < fields.size() && label.is_missing(fields[label.column])) {
      pass.rows.unlabelled.add(reader.line(), fields[label.column]);
      if (!label.keep_rows) continue;
    }
    pass.rows.lines.push_back(reader.line());
    for (std::size_t c = 0; c < fields.size(); ++c)
      if (how[c] != Reading::Skipped) pass.add(c, how[c], orders[c], fields[c], reader.line());
  }
  pass.rows.comments = reader.comments();
  pass.rows.blank = reader.blank();
  return std::move(pass.rows);
}

}  // namespace tenon::data
