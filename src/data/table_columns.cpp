// Fitting and encoding.
#include "data/table_columns.h"

#include <algorithm>
#include <cmath>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::data {
namespace {

// More different words are no categories, nor are words of which every second row has its own.
constexpr std::size_t kMostValues = 1000, kFewValues = 50;

double mean_of(const std::vector<float>& numbers, const std::vector<bool>& test) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!test[i] && !std::isnan(numbers[i])) sum += static_cast<double>(numbers[i]), ++count;
  return count > 0 ? sum / count : 0;
}

std::vector<std::string> values_of(const RawColumn& raw, const std::vector<bool>& test) {
  std::vector<bool> seen(raw.texts.size());
  for (std::size_t i = 0; i < raw.places.size(); ++i)
    if (!test[i] && raw.places[i] >= 0) seen[static_cast<std::size_t>(raw.places[i])] = true;
  std::vector<std::string> values;
  for (std::size_t k = 0; k < seen.size(); ++k)
    if (seen[k]) values.push_back(raw.texts[k]);
  std::sort(values.begin(), values.end());
  return values;
}

// The input, of those of a column, that each of its texts sets; -1 for a text that is not known.
std::vector<std::int64_t> inputs_of(const RawColumn& raw, const TableColumn& column) {
  std::vector<std::int64_t> out;
  out.reserve(raw.texts.size());
  for (const std::string& text : raw.texts) {
    const auto found = std::lower_bound(column.values.begin(), column.values.end(), text);
    const bool known = found != column.values.end() && *found == text;
    out.push_back(known ? found - column.values.begin() : -1);
  }
  return out;
}

}  // namespace

TableColumn fit_column(const RawColumn& raw, const std::string& column_name, bool words,
                       const std::vector<bool>& test, const std::string& file) {
  TableColumn out{column_name, 0, {}};
  if (!words) {
    out.fill = mean_of(raw.numbers, test);
    return out;
  }
  out.values = values_of(raw, test);
  if (out.values.size() > kMostValues ||
      (out.values.size() > kFewValues && out.values.size() * 2 > test.size()))
    throw FormatError(
        cat(file, ": the column ", column_name.empty() ? "of words" : cat("'", column_name, "'"),
            " has ", out.values.size(), " different words in ", test.size(), " rows, such as '",
            out.values[0].substr(0, 60), "': these are no categories; leave it out (drop=",
            column_name.empty() ? "NAME" : column_name, ")"));
  return out;
}

std::vector<float> encode_rows(const std::vector<TableColumn>& columns,
                               const std::vector<const RawColumn*>& raw,
                               const std::vector<std::int64_t>& rows) {
  std::size_t width = 0;
  for (const TableColumn& column : columns) width += static_cast<std::size_t>(column.inputs());
  std::vector<float> out(width * rows.size());
  std::size_t at = 0;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const RawColumn& from = *raw[k];
    const bool words = !columns[k].values.empty();
    const std::vector<std::int64_t> inputs =
        words ? inputs_of(from, columns[k]) : std::vector<std::int64_t>();
    const auto fill = static_cast<float>(columns[k].fill);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<std::size_t>(rows[i]);
      float* to = &out[i * width + at];
      if (!words) {
        const bool known = !from.numbers.empty() && !std::isnan(from.numbers[row]);
        *to = known ? from.numbers[row] : fill;
        continue;
      }
      const std::int32_t place = from.places[row];
      const std::int64_t input = place < 0 ? -1 : inputs[static_cast<std::size_t>(place)];
      if (input >= 0) to[input] = 1;
    }
    at += static_cast<std::size_t>(columns[k].inputs());
  }
  return out;
}

}  // namespace tenon::data
