// Converts labels to classes, once the label column is known.
#include "data/tables/table_labels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"

namespace tenon::data {
namespace {

// Up to this many distinct integers may be classes even if each row has a different one.
constexpr std::size_t kFewNumbers = 20;

std::optional<double> number_of(const std::string& text, const io::NumberFormat& format) {
  double value = 0;
  unsigned signs = 0;
  if (io::read_number(text, format, value, signs) != io::NumberKind::Number) return {};
  return value;
}

[[noreturn]] void refuse_quantities(const LabelColumn& labels, const std::string& label,
                                    const std::string& what) {
  throw make_error<FormatError>(
      FileName{labels.file}, ": ", labels.title, " contains numbers such as '", label, "', ", what,
      ", so its labels are not classes: classes are whole numbers or words. Name another label "
      "column with label=NAME; or train a regression (tenon train … --task regression, open_csv "
      "with classes = false); or make each text of the column a class with category=NAME");
}

constexpr std::int64_t kUnknownLabel = -1;

struct UnknownLabels {
  std::int64_t labelled = 0, rows = 0;  // rows with a label; rows with an unknown label
  std::size_t first = 0;                // the first row with an unknown label
};

void take_unknown_labels(const LabelColumn& labels, const UnknownLabels& unknown,
                         std::size_t classes, Notes& notes) {
  const std::string& text =
      labels.column.texts[static_cast<std::size_t>(labels.column.places[unknown.first])];
  const std::int64_t line = labels.lines[unknown.first];
  if (!labels.unknown_kept || 2 * unknown.rows > unknown.labelled)
    throw make_error<FormatError>(
        FileName{labels.file}, ": line ", LineNumber{line}, ", ", labels.title, ": the label '",
        text.substr(0, 60), "' is not one of the ", classes, " known classes, in ", unknown.rows,
        " of ", unknown.labelled, unknown.labelled == 1 ? " row" : " rows",
        ": correct these labels, or leave the rows out");
  notes.push_back(
      {cat(labels.title, ": ", unknown.rows, unknown.rows == 1 ? " row has" : " rows have",
           " a label that is not one of the ", classes, " known classes, such as '",
           text.substr(0, 60), "': no label"),
       unknown.rows, cat(labels.file, ", line ", line)});
}

// Names of the classes, ordered by value; of several texts with one value, the shortest is the
// name.
std::vector<std::string> numbered_names(const LabelColumn& labels,
                                        const std::vector<double>& values, Notes& notes) {
  const std::vector<std::string>& texts = labels.column.texts;
  const std::size_t rows = labels.column.places.size();
  std::map<double, const std::string*> names;
  std::int64_t joined = 0;
  const std::string* first = nullptr;
  for (std::size_t k = 0; k < texts.size(); ++k) {
    if (values[k] != std::floor(values[k]))
      refuse_quantities(labels, texts[k], "which are not whole");
    const auto [found, is_new] = names.emplace(values[k], &texts[k]);
    if (is_new) continue;
    if (joined++ == 0) first = &texts[k];
    const std::string& name = *found->second;
    if (std::tuple(texts[k].size(), texts[k]) < std::tuple(name.size(), name))
      found->second = &texts[k];
  }
  if (names.size() > kFewNumbers && names.size() * 2 > rows)
    refuse_quantities(labels, texts[0], cat(names.size(), " different ones in ", rows, " rows"));
  if (joined > 0)
    notes.push_back({cat("labels of one value, such as '", *first, "', are one class"), joined,
                     cat(labels.file, ": ", labels.title)});
  std::vector<std::string> out;
  out.reserve(names.size());
  for (const auto& [value, name] : names) out.push_back(*name);
  return out;
}

}  // namespace

TableClasses number_labels(const LabelColumn& labels, Notes& notes) {
  const std::vector<std::string>& texts = labels.column.texts;
  const std::vector<std::int32_t>& places = labels.column.places;
  const io::NumberFormat& format = labels.format;
  TableClasses out;
  out.names = labels.known;
  if (labels.known.empty()) {
    std::vector<double> values;
    for (const std::string& text : texts)
      if (const auto value = number_of(text, format)) values.push_back(*value);
    if (!labels.words && values.size() == texts.size()) {
      out.names = numbered_names(labels, values, notes);
    } else {
      out.names = texts;
      std::sort(out.names.begin(), out.names.end());
    }
  }
  std::unordered_map<std::string, std::int64_t> by_text;
  std::map<double, std::int64_t> by_value;
  for (std::size_t k = 0; k < out.names.size(); ++k) {
    by_text.emplace(out.names[k], static_cast<std::int64_t>(k));
    if (const auto value = number_of(out.names[k], format))
      by_value.emplace(*value, static_cast<std::int64_t>(k));
  }
  std::vector<std::int64_t> class_of;
  class_of.reserve(texts.size());
  for (const std::string& text : texts) {
    if (const auto found = by_text.find(text); found != by_text.end()) {
      class_of.push_back(found->second);
      continue;
    }
    const auto value = number_of(text, format);
    const auto alike = value ? by_value.find(*value) : by_value.end();
    class_of.push_back(alike == by_value.end() ? kUnknownLabel : alike->second);
  }
  out.of_rows.reserve(places.size());
  UnknownLabels unknown;
  for (std::size_t row = 0; row < places.size(); ++row) {
    const std::int64_t number =
        places[row] < 0 ? kIgnoredTarget : class_of[static_cast<std::size_t>(places[row])];
    unknown.labelled += places[row] >= 0;
    if (number == kUnknownLabel && unknown.rows++ == 0) unknown.first = row;
    out.of_rows.push_back(number == kUnknownLabel ? kIgnoredTarget : number);
  }
  if (unknown.rows > 0) take_unknown_labels(labels, unknown, out.names.size(), notes);
  return out;
}

}  // namespace tenon::data
