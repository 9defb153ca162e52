// The parts of a table: rows of one file, or of a separate test file that is read as the training
// file was.
#include "data/tables/csv_dataset.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include <tenon/io.h>

#include "base/str.h"
#include "data/samples/joined_dataset.h"
#include "data/samples/split.h"
#include "data/tables/csv_table.h"
#include "data/tables/table_header.h"

namespace tenon::data {
namespace {

std::int64_t missing_fields(const ReadTable& table, const std::vector<std::int64_t>& rows) {
  std::int64_t count = 0;
  if (table.missing.empty()) return count;
  for (const std::int64_t row : rows) count += table.missing[static_cast<std::size_t>(row)];
  return count;
}

std::string describe(const ReadTable& table, const std::vector<std::int64_t>& rows) {
  const std::int64_t all = table.count, missing = missing_fields(table, rows);
  return cat(rows.size(), std::ssize(rows) == all ? "" : cat(" of ", all),
             all == 1 ? " row of " : " rows of ", table.name,
             missing == 0 ? ""
                          : cat(" (", missing, missing == 1 ? " missing field" : " missing fields",
                                " filled)"));
}

// Notes missing fields in the requested rows.
void note_missing(const ReadTable& table, const std::vector<std::int64_t>& rows, Split part,
                  Notes& notes) {
  const std::int64_t count = missing_fields(table, rows);
  if (count == 0) return;
  const auto first = std::find_if(rows.begin(), rows.end(), [&](std::int64_t row) {
    return table.missing[static_cast<std::size_t>(row)] > 0;
  });
  const std::string of_part = part == Split::All ? "" : cat(" of the ", name(part), " part");
  notes.push_back(
      {cat(count, count == 1 ? " missing field" : " missing fields", of_part,
           count == 1 ? " is" : " are", " filled: numbers with their column's mean"),
       count, cat(table.name, ", line ", table.all.numbers[static_cast<std::size_t>(*first)])});
}

// Notes unknown words in the requested rows, which are in ascending order.
void note_unknown(const ReadTable& table, const std::vector<std::int64_t>& rows, Split part,
                  Notes& notes) {
  const std::string of_part = part == Split::All ? "" : cat(" of the ", name(part), " part");
  for (const UnknownWords& unknown : table.unknown) {
    std::int64_t count = 0;
    std::size_t first = 0;
    for (std::size_t k = unknown.rows.size(); k-- > 0;)
      if (std::binary_search(rows.begin(), rows.end(), unknown.rows[k])) ++count, first = k;
    if (count > 0)
      notes.push_back(
          {cat(unknown.column, ": ", count, count == 1 ? " field" : " fields", of_part,
               count == 1 ? " contains a word" : " contain words",
               " that training has not seen, such as '",
               unknown.texts[static_cast<std::size_t>(unknown.places[first])].substr(0, 60), "'"),
           count,
           cat(table.name, ", line ",
               table.all.numbers[static_cast<std::size_t>(unknown.rows[first])])});
  }
}

TensorDatasetParts part_of_table(const ReadTable& table, Split part, const CsvOptions& options) {
  Chosen chosen = table.division->choose(part);
  TensorDatasetParts out = rows_of(table.all, std::move(chosen.samples), chosen.notes);
  out.description = describe(table, *out.rows);
  note_unknown(table, *out.rows, part, out.notes);
  note_missing(table, *out.rows, part, out.notes);
  if (options.strict) refuse_notes(out.notes);
  return out;
}

// Reads a separate test file like the training file: with the encoding of a trained model if there
// is one, otherwise with that of the training file.
template <class Table>
TensorDatasetParts test_table(const std::string& file, CsvOptions options, const Table& table) {
  const bool known = options.columns != nullptr;
  options.split = {};
  if (known) return parse_csv(io::read_file(file), file, options);
  const TensorDatasetParts& learnt = table().all;
  options.class_names = learnt.class_names;
  options.columns = learnt.table;
  TensorDatasetParts out = parse_csv(io::read_file(file), file, options);
  out.classes = std::max(out.classes, learnt.classes);
  add_lacking_classes(out, learnt, file);
  return out;
}

}  // namespace

std::string TableColumns::label_text() const {
  if (label_column < 0) return {};
  if (label.empty()) return column_text("", static_cast<std::size_t>(label_column));
  return cat("column '", label, "' (number ", label_column, ", counted from 0)");
}

TensorDatasetParts parse_csv(std::string bytes, const std::string& name, const CsvOptions& options,
                             std::optional<Split> part) {
  ReadTable table = read_table(std::move(bytes), name, options, part.has_value());
  if (part) return part_of_table(table, *part, options);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(table.count));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  table.all.description = describe(table, rows);
  note_unknown(table, rows, Split::All, table.all.notes);
  note_missing(table, rows, Split::All, table.all.notes);
  if (options.strict) refuse_notes(table.all.notes);
  return std::move(table.all);
}

PartReader read_csv(const std::string& file, const std::string& test_file,
                    const CsvOptions& options) {
  CsvOptions how = options;
  if (!test_file.empty()) how.split.test = 0;
  const auto table = once([=] { return read_table(io::read_file(file), file, how, true); });
  if (test_file.empty())
    return [=](Split part) { return part_or_null(part_of_table(table(), part, how)); };
  const auto test = once([=] { return test_table(test_file, options, table); });
  return [=](Split part) {
    if (part == Split::Test) return make_tensor_dataset(test());
    auto rows = part_or_null(part_of_table(table(), part, how));
    return part == Split::All ? joined_parts({rows, make_tensor_dataset(test())}) : rows;
  };
}

std::shared_ptr<Dataset> open_csv(const std::string& file, const CsvOptions& options) {
  return make_tensor_dataset(parse_csv(io::read_file(file), file, options));
}

std::shared_ptr<Dataset> open_csv(const std::string& file, Split part, const CsvOptions& options) {
  return read_csv(file, "", options)(part);
}

}  // namespace tenon::data
