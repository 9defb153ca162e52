// CSV to tensors: fits the encoding of words and missing values on the training rows, and encodes
// all rows.
#include "data/tables/csv_table.h"

#include <algorithm>
#include <cmath>

#include <tenon/error.h>

#include "base/make_error.h"
#include "data/tables/csv_reading.h"
#include "data/tables/table_labels.h"
#include "io/text/encoding.h"

namespace tenon::data {
namespace {

// The number format: from the options, otherwise from the table that the model was trained on.
io::NumberFormat numbers_of(const CsvOptions& options, const std::string& name) {
  const bool told = !options.decimal.empty() || !options.thousands.empty();
  if (told || !options.columns) return number_format(options.decimal, options.thousands, name);
  return number_format(options.columns->decimal, options.columns->thousands, name);
}

}  // namespace

CsvTable::CsvTable(std::string_view text, const std::string& name, const CsvOptions& options)
    : file_(text, name, csv_format(options.rows, name), numbers_of(options, name)),
      name_(name),
      options_(options),
      how_(file_.columns()),
      orders_(file_.columns(), kAnyOrder) {
  if (options_.labelled && file_.columns() < 2)
    throw make_error<FormatError>(
        FileName{name_}, ": line ", LineNumber{file_.first_line()},
        " has one column; inputs and a label are needed, separated by commas, "
        "semicolons, tabs, '|' or spaces (separator=CHAR says which)");
  find_header();
  if (options_.labelled) find_label();
  if (!options_.split.group.empty()) group_ = find(options_.split.group);
  if (options_.columns) {
    find_known_inputs();
  } else {
    find_inputs();
  }
  if (inputs_.empty())
    throw make_error<FormatError>(FileName{name_}, ": no column is left as an input");
}

ReadTable CsvTable::read(bool divided) {
  rule_.keep_rows = options_.keep_unlabelled && !divided;
  read_columns();
  ReadTable table_read;
  TensorDatasetParts& out = table_read.all;
  Samples samples;
  if (options_.labelled && options_.classes) samples.marks.classes = number_classes(out);
  if (group_ != kNone)
    samples.marks.groups.assign(raw_[group_].places.begin(), raw_[group_].places.end());
  samples.name = name_, samples.count = rows_;
  samples.class_names = out.class_names;
  table_read.name = name_, table_read.count = rows_;
  if (divided) table_read.division = std::make_shared<const Division>(options_.split, samples);
  const Chosen chosen = divided ? table_read.division->choose(Split::All) : every_row();
  const std::vector<std::int64_t>& rows = chosen.samples;
  if (divided && options_.split.chronological) note_times(chosen.parts);
  // The encoding of words and missing numbers is fitted on the training part alone.
  std::vector<bool> held_out(chosen.parts.size());
  std::transform(chosen.parts.begin(), chosen.parts.end(), held_out.begin(),
                 [](const std::optional<Split>& of) { return of != Split::Train; });
  const auto table = options_.columns ? options_.columns : fit(held_out, out.class_names);
  out.input = input_tensor(*table, rows, table_read.unknown);
  if (options_.image_shape.rank() == 0) out.table = table;
  out.target = target_tensor(samples.marks.classes, rows);
  table_read.missing = missing_of_rows();
  out.notes = std::move(notes_);
  out.place = [name = name_](std::int64_t line) { return cat(name, ", line ", line); };
  out.numbers = std::move(lines_);
  return table_read;
}

Chosen CsvTable::every_row() const {
  Chosen out{.parts = Parts(static_cast<std::size_t>(rows_), Split::Train)};
  out.samples = samples_of(out.parts, Split::All);
  return out;
}

void CsvTable::read_columns() {
  TableRows rows = file_.read(how_, orders_, rule_, header_);
  raw_ = std::move(rows.columns);
  lines_ = std::move(rows.lines);
  rows_ = std::ssize(lines_);
  if (rows_ == 0 && rows.unlabelled.rows.count > 0)
    throw make_error<FormatError>(FileName{name_}, ": none of its ", rows.unlabelled.rows.count,
                                  " rows has a label in ", title(label_).text(),
                                  " (label=NAME says which column contains them)");
  if (rows_ == 0) throw make_error<FormatError>(FileName{name_}, ": contains a header but no rows");
  note_skipped(notes_, name_, rows.comments, rows.blank, options_.rows.comment.size() == 1);
  note_unlabelled(rows.unlabelled);
  reread_columns();
  refuse_odd();
  refuse_header();
  note_spaces();
  note_short_years();
  note_conversions(rows.conversions);
  note_index();
}

std::vector<std::int32_t> CsvTable::missing_of_rows() const {
  std::vector<std::int32_t> out;
  for (const std::size_t c : std::set<std::size_t>(inputs_.begin(), inputs_.end())) {
    const RawColumn& column = raw_[c];
    if (column.missing.count == 0) continue;
    out.resize(static_cast<std::size_t>(rows_));
    for (std::size_t row = 0; row < out.size(); ++row) {
      const bool there = how_[c] == Reading::Words   ? column.places[row] >= 0
                         : how_[c] == Reading::Dates ? !std::isnan(column.dates[row])
                                                     : !std::isnan(column.numbers[row]);
      if (!there) ++out[row];
    }
  }
  return out;
}

void CsvTable::reread_columns() {
  std::vector<Reading> again(how_.size());
  std::vector<DateOrder> orders = orders_;
  bool any = false;
  for (const std::size_t c : inputs_) {
    const RawColumn& column = raw_[c];
    if (how_[c] == Reading::Dates && orders_[c] == kAnyOrder) {
      require_one_order(c);
      if ((column.date_orders & (kYearFirst | kDayFirst)) != 0) continue;
      again[c] = Reading::Dates, orders[c] = kMonthFirst, any = true;
    }
    if (how_[c] != Reading::Numbers || options_.columns || options_.image_shape.rank() > 0)
      continue;
    const std::int64_t words = column.odd.count - column.too_large.count;
    if (words * 2 <= rows_ - column.missing.count) continue;
    if (column.odd_with_digits * 2 > words) refuse_words(c);
    again[c] = Reading::Words, any = true;
  }
  if (!any) return;
  TableRows rows = file_.read(again, orders, rule_, header_);
  for (std::size_t c = 0; c < again.size(); ++c)
    if (again[c] != Reading::Skipped) raw_[c] = std::move(rows.columns[c]), how_[c] = again[c];
}

const std::vector<std::string>& CsvTable::known_classes() const {
  return options_.class_names.empty() && options_.columns ? options_.columns->class_names
                                                          : options_.class_names;
}

std::vector<std::int64_t> CsvTable::number_classes(TensorDatasetParts& parts) {
  TableClasses classes = number_labels({.column = raw_[label_],
                                        .known = known_classes(),
                                        .format = file_.numbers(),
                                        .file = name_,
                                        .title = title(label_).text(),
                                        .lines = lines_,
                                        .words = rule_.only_empty,
                                        .unknown_kept = rule_.keep_rows},
                                       notes_);
  parts.class_names = std::move(classes.names);
  parts.classes = std::ssize(parts.class_names);
  return std::move(classes.of_rows);
}

std::shared_ptr<const TableColumns> CsvTable::fit(const std::vector<bool>& held_out,
                                                  const std::vector<std::string>& class_names) {
  auto out = std::make_shared<TableColumns>();
  out->class_names = class_names;
  if (header_ && label_ != kNone) out->label = names_[label_];
  if (label_ != kNone) out->label_column = static_cast<std::int64_t>(label_);
  out->encoding = options_.rows.encoding;
  out->decimal = options_.decimal;
  out->thousands = options_.thousands;
  std::vector<std::size_t> sources;
  for (const std::size_t c : inputs_)
    for (TableColumn& column : fit_column(raw_[c], title(c), how_[c], held_out, name_, notes_)) {
      out->columns.push_back(std::move(column));
      out->columns.back().number = static_cast<std::int64_t>(c);
      sources.push_back(c);
    }
  inputs_ = std::move(sources);
  return out;
}

UnknownWords CsvTable::unknown_words(std::size_t column, std::vector<std::int64_t>&& rows) const {
  UnknownWords out{.column = title(column).text(), .rows = std::move(rows)};
  out.texts = raw_[column].texts;
  out.places.reserve(out.rows.size());
  for (const std::int64_t row : out.rows)
    out.places.push_back(raw_[column].places[static_cast<std::size_t>(row)]);
  return out;
}

Tensor CsvTable::input_tensor(const TableColumns& table, const std::vector<std::int64_t>& rows,
                              std::vector<UnknownWords>& unknown) {
  constexpr std::uint64_t kLeastMemory = 1u << 30, kMemoryOfFile = 16;
  require_memory(
      table.columns, rows.size(),
      options_.memory > 0 ? options_.memory : std::max(kLeastMemory, kMemoryOfFile * file_.bytes()),
      name_);
  std::vector<const RawColumn*> raw;
  raw.reserve(inputs_.size());
  for (const std::size_t c : inputs_) raw.push_back(&raw_[c]);
  EncodedRows encoded = encode_rows(table.columns, raw, rows);
  for (std::size_t k = 0; k < encoded.unknown.size(); ++k)
    if (!encoded.unknown[k].empty())
      unknown.push_back(unknown_words(inputs_[k], std::move(encoded.unknown[k])));
  if (options_.image_shape.rank() > 0) return images(encoded.inputs, rows);
  return Tensor::from(encoded.inputs, {std::ssize(rows), encoded.width});
}

Tensor CsvTable::images(const std::vector<float>& inputs,
                        const std::vector<std::int64_t>& rows) const {
  if (options_.image_shape.numel() != std::ssize(inputs_))
    throw make_error<ShapeError>(FileName{name_}, ": its ", inputs_.size(),
                                 " input columns are no image of shape ", options_.image_shape);
  std::vector<std::uint8_t> bytes(inputs.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!(inputs[i] >= 0 && inputs[i] <= 255 && inputs[i] == std::floor(inputs[i])))
      throw make_error<FormatError>(
          FileName{name_}, ": line ",
          LineNumber{lines_[static_cast<std::size_t>(rows[i / inputs_.size()])]}, " contains ",
          static_cast<double>(inputs[i]), "; images need integers from 0 to 255");
    bytes[i] = static_cast<std::uint8_t>(inputs[i]);
  }
  Shape shape{std::ssize(rows)};
  for (const std::int64_t size : options_.image_shape) shape.push_back(size);
  return Tensor::from(bytes, shape);
}

Tensor CsvTable::target_tensor(const std::vector<std::int64_t>& classes,
                               const std::vector<std::int64_t>& rows) const {
  // A regression target has shape [N, 1], like the output of a layer with one output.
  const Shape shape =
      options_.labelled && !options_.classes ? Shape{std::ssize(rows), 1} : Shape{std::ssize(rows)};
  if (!classes.empty()) {
    std::vector<std::int64_t> chosen;
    chosen.reserve(rows.size());
    for (const std::int64_t row : rows) chosen.push_back(classes[static_cast<std::size_t>(row)]);
    return Tensor::from(chosen, shape);
  }
  std::vector<float> chosen(rows.size());
  if (label_ != kNone)
    for (std::size_t i = 0; i < rows.size(); ++i)
      chosen[i] = raw_[label_].numbers[static_cast<std::size_t>(rows[i])];
  return Tensor::from(chosen, shape);
}

ReadTable read_table(std::string bytes, const std::string& name, const CsvOptions& options,
                     bool divided) {
  const std::string text = io::to_utf8(std::move(bytes), options.rows.encoding, name,
                                       options.columns ? options.columns->encoding : "");
  ReadTable table = CsvTable(text, name, options).read(divided);
  if (options.strict) refuse_notes(table.all.notes);
  return table;
}

}  // namespace tenon::data
