// Fitting and encoding of columns.
#include "data/tables/table_columns.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/tables/table_header.h"

namespace tenon::data {
namespace {

// A column is not a category if it has more distinct words than this, or a distinct word in every
// second row.
constexpr std::size_t kMostValues = 1000, kFewValues = 50;

template <class Number, class Part>
TableColumn fit_numbers(const std::vector<Number>& numbers, const std::vector<bool>& held_out,
                        const std::string& name, Part part, std::int64_t& count) {
  double sum = 0;
  count = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!held_out[i] && !std::isnan(numbers[i]))
      sum += part(static_cast<double>(numbers[i])), ++count;
  return {.name = name, .fill = count > 0 ? sum / static_cast<double>(count) : 0};
}

std::vector<std::string> values_of(const RawColumn& raw, const std::vector<bool>& held_out) {
  std::vector<bool> seen(raw.texts.size());
  for (std::size_t i = 0; i < raw.places.size(); ++i)
    if (!held_out[i] && raw.places[i] >= 0) seen[static_cast<std::size_t>(raw.places[i])] = true;
  std::vector<std::string> values;
  for (std::size_t k = 0; k < seen.size(); ++k)
    if (seen[k]) values.push_back(raw.texts[k]);
  std::sort(values.begin(), values.end());
  return values;
}

// For each text of a column the index of its one-hot input; -1 for an unknown text.
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

void encode_words(const TableColumn& column, const RawColumn& from,
                  const std::vector<std::int64_t>& rows, float* to, std::size_t width,
                  std::vector<std::int64_t>& unknown) {
  const std::vector<std::int64_t> inputs = inputs_of(from, column);
  for (std::size_t i = 0; i < rows.size(); ++i, to += width) {
    const auto row = static_cast<std::size_t>(rows[i]);
    if (from.places[row] < 0) continue;
    const auto place = static_cast<std::size_t>(from.places[row]);
    if (inputs[place] >= 0)
      to[inputs[place]] = 1;
    else
      unknown.push_back(rows[i]);
  }
}

void encode_numbers(const TableColumn& column, const RawColumn& from,
                    const std::vector<std::int64_t>& rows, float* to, std::size_t width) {
  const auto fill = static_cast<float>(column.fill);
  for (std::size_t i = 0; i < rows.size(); ++i, to += width) {
    const auto row = static_cast<std::size_t>(rows[i]);
    if (!column.date.empty()) {
      const double date = from.dates[row];
      *to = std::isnan(date) ? fill : static_cast<float>(date_part(date, column.date));
    } else {
      // A column without values in training may contain words later, and has no numbers then.
      const bool known = !from.numbers.empty() && !std::isnan(from.numbers[row]);
      *to = known ? from.numbers[row] : fill;
    }
  }
}

std::size_t width_of(const std::vector<TableColumn>& columns) {
  return std::accumulate(columns.begin(), columns.end(), std::size_t{0},
                         [](std::size_t sum, const TableColumn& column) {
                           return sum + static_cast<std::size_t>(column.inputs());
                         });
}

}  // namespace

std::string ColumnTitle::text() const { return column_text(name, column); }
std::string ColumnTitle::option() const {
  return name.empty() ? std::to_string(column) : name.substr(0, 60);
}

std::vector<TableColumn> fit_column(const RawColumn& raw, const ColumnTitle& title, Reading how,
                                    const std::vector<bool>& held_out, const std::string& file,
                                    Notes& notes) {
  const auto empty = [&] {
    notes.push_back(
        {cat(title.text(), " has no value in the training rows: it is 0 everywhere"), 1, file});
  };
  std::int64_t count = 0;
  if (how == Reading::Dates) {
    std::vector<TableColumn> out;
    const DateOrder order = (raw.date_orders & kYearFirst) != 0  ? kYearFirst
                            : (raw.date_orders & kDayFirst) != 0 ? kDayFirst
                                                                 : kMonthFirst;
    for (const char* part : kDateParts) {
      out.push_back(fit_numbers(
          raw.dates, held_out, title.name, [&](double date) { return date_part(date, part); },
          count));
      out.back().date = part;
      out.back().date_order = name(order);
    }
    if (count == 0) empty();
    return out;
  }
  if (how != Reading::Words) {
    TableColumn out = fit_numbers(
        raw.numbers, held_out, title.name, [](double number) { return number; }, count);
    if (count == 0) empty();
    return {out};
  }
  TableColumn out{.name = title.name, .values = values_of(raw, held_out)};
  if (out.values.empty()) empty();
  if (!title.category &&
      (out.values.size() > kMostValues ||
       (out.values.size() > kFewValues && out.values.size() * 2 > held_out.size())))
    throw make_error<FormatError>(FileName{file}, ": ", title.text(), " has ", out.values.size(),
                                  " different words in ", held_out.size(), " rows, such as '",
                                  out.values[0].substr(0, 60),
                                  "': these are no categories; leave it out (drop=", title.option(),
                                  "), or say that they are (category=", title.option(), ")");
  return {out};
}

EncodedRows encode_rows(const std::vector<TableColumn>& columns,
                        const std::vector<const RawColumn*>& raw,
                        const std::vector<std::int64_t>& rows) {
  const std::size_t width = width_of(columns);
  EncodedRows out;
  out.width = static_cast<std::int64_t>(width);
  out.inputs.resize(width * rows.size());
  out.unknown.resize(columns.size());
  std::size_t at = 0;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    float* const to = out.inputs.data() + at;
    if (columns[k].values.empty())
      encode_numbers(columns[k], *raw[k], rows, to, width);
    else
      encode_words(columns[k], *raw[k], rows, to, width, out.unknown[k]);
    at += static_cast<std::size_t>(columns[k].inputs());
  }
  return out;
}

void require_memory(const std::vector<TableColumn>& columns, std::size_t rows, std::uint64_t most,
                    const std::string& file) {
  const double bytes = static_cast<double>(width_of(columns)) * static_cast<double>(rows) * 4;
  if (bytes <= static_cast<double>(most)) return;
  const TableColumn& widest =
      *std::max_element(columns.begin(), columns.end(),
                        [](const auto& a, const auto& b) { return a.inputs() < b.inputs(); });
  throw make_error<FormatError>(
      FileName{file}, ": its ", width_of(columns), " inputs of ", rows, " rows take ",
      size_text(static_cast<std::int64_t>(std::min(bytes, 9e18))), ", more than ",
      size_text(static_cast<std::int64_t>(most)), ": leave out columns of many words (",
      widest.name.empty() ? "one" : cat("'", widest.name.substr(0, 60), "'"), " has ",
      widest.inputs(), " of them), or allow more (memory=SIZE)");
}

std::string reading_hint(const std::string& field, const ColumnTitle& title,
                         const io::NumberFormat& format) {
  const auto reads = [&](char decimal, char thousands) {
    double value = 0;
    unsigned signs = 0;
    return io::read_number(field, {decimal, thousands}, value, signs) == io::NumberKind::Number;
  };
  const bool comma = format.decimal != ',' && reads(',', 0);
  if (reads(format.decimal, ',') && format.decimal != ',')
    return comma ? "thousands=comma reads commas between thousands, decimal=comma decimal commas"
                 : "thousands=comma reads commas between thousands";
  if (comma) return "decimal=comma reads decimal commas";
  if (format.decimal == ',' && reads(',', '.'))
    return "thousands=point reads points between thousands";
  if (format.decimal != ',' && reads(',', '.'))
    return "decimal=comma and thousands=point read decimal commas and points between thousands";
  if (format.decimal == ',' && reads('.', 0)) return "without decimal=comma it is a number";
  if (reads(format.decimal, '\''))
    return "thousands=apostrophe reads apostrophes between thousands";
  if (reads(format.decimal, ' ')) return "thousands=space reads spaces between thousands";
  double seconds = 0;
  if (read_date(field, kAnyOrder, seconds) != 0)
    return cat("date=", title.option(), " reads dates");
  if (const std::string why = date_problem(field, title.option()); !why.empty())
    return cat("it ", why,
               why.starts_with("has") ? cat(", and date=", title.option(), " reads dates") : "");
  return cat("category=", title.option(), " reads its fields as words, drop=", title.option(),
             " leaves it out");
}

}  // namespace tenon::data
