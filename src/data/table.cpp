// Columns of a file, read in one pass.
#include "data/table.h"

#include <cmath>
#include <limits>
#include <unordered_map>

#include <tenon/error.h>

#include "base/str.h"
#include "io/csv.h"

namespace tenon::data {
namespace {

constexpr std::size_t kMostWords = 100'000;

struct WordHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>()(text);
  }
};
using Known = std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>>;

bool parse_float(std::string_view field, float& value) {
  double wide = 0;
  if (!io::parse_number(field, wide)) return false;
  value = static_cast<float>(wide);
  return std::isfinite(value);
}

void add_number(RawColumn& column, std::string_view field, std::int64_t line) {
  float value = 0;
  if (!parse_float(field, value)) {
    value = std::numeric_limits<float>::quiet_NaN();
    (is_missing(field) ? column.missing : column.odd).add(line, field);
  }
  column.numbers.push_back(value);
}

}  // namespace

void OddField::add(std::int64_t at, std::string_view field) {
  if (count++ > 0) return;
  line = at;
  text = field.substr(0, 60);
}

std::string_view trimmed(std::string_view field) {
  while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.remove_suffix(1);
  return field;
}

bool is_missing(std::string_view field) {
  const std::string_view text = trimmed(field);
  if (text.size() > 4) return false;
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const char* known : {"", "?", "na", "n/a", "nan", "null"})
    if (small == known) return true;
  return false;
}

TableFile::TableFile(std::string_view bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  io::CsvReader reader(bytes_, name_);
  std::vector<std::string_view> fields;
  if (!reader.next(fields)) throw FormatError(cat(name_, ": holds no rows"));
  first_.assign(fields.begin(), fields.end());
  if (reader.next(fields)) second_.assign(fields.begin(), fields.end());
}

bool TableFile::looks_like_header(std::size_t label) const {
  bool words = false, numbers = false;
  for (std::size_t c = 0; c < first_.size(); ++c) {
    float ignored = 0;
    if (c == label) continue;
    if (parse_float(first_[c], ignored)) {
      numbers = true;
    } else {
      words = true;
      if (!is_missing(first_[c]) && c < second_.size() && parse_float(second_[c], ignored))
        return true;
    }
  }
  return words && !numbers;
}

std::vector<RawColumn> TableFile::read(const std::vector<Reading>& how, bool header,
                                       std::vector<std::int64_t>& lines) const {
  io::CsvReader reader(bytes_, name_);
  std::vector<std::string_view> fields;
  std::vector<RawColumn> out(columns());
  std::vector<Known> known(columns());
  const auto add_word = [&](std::size_t c, bool missing) {
    const std::string_view text = trimmed(fields[c]);
    RawColumn& column = out[c];
    if (missing) {
      column.missing.add(reader.line(), text);
      return column.places.push_back(-1);
    }
    auto found = known[c].find(text);
    if (found == known[c].end()) {
      if (column.texts.size() >= kMostWords)
        throw FormatError(cat(name_, ": column ", c + 1, " has more than ", kMostWords,
                              " different words: is it an input or the label's column?"));
      found = known[c].emplace(text, static_cast<std::int32_t>(column.texts.size())).first;
      column.texts.emplace_back(text);
    }
    column.places.push_back(found->second);
  };
  if (header) (void)reader.next(fields);
  lines.clear();
  while (reader.next(fields)) {
    lines.push_back(reader.line());
    if (fields.size() != columns())
      throw FormatError(cat(name_, ": line ", reader.line(), " has ", fields.size(),
                            " columns where the first row has ", columns()));
    for (std::size_t c = 0; c < fields.size(); ++c) {
      if (how[c] == Reading::Numbers)
        add_number(out[c], fields[c], reader.line());
      else if (how[c] == Reading::Words)
        add_word(c, is_missing(fields[c]));
      else if (how[c] == Reading::Labels)
        add_word(c, trimmed(fields[c]).empty());
    }
  }
  return out;
}

}  // namespace tenon::data
