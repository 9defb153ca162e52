// Predictions for the rows of a table, written as a table.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/derived_dataset.h"
#include "data/samples/sample_pieces.h"
#include "data/samples/tensor_dataset.h"
#include "data/tables/csv_dataset.h"
#include "data/tables/csv_spec.h"
#include "data/tables/table.h"
#include "io/text/csv.h"
#include "io/text/encoding.h"
#include "train/evaluating/opened.h"
#include "train/runs/run_data.h"
#include "train/tasks/tasks.h"

namespace tenon::train {
namespace {

std::string join(const std::vector<std::string>& fields, char separator) {
  std::string out;
  for (const std::string& field : fields) {
    if (!out.empty()) out += separator;
    out += io::csv_field(field, separator);
  }
  return out;
}

// Rows with one more note and, unless `labelled`, without labels: no classes and no numeric
// targets.
class NotedRows : public data::DerivedDataset {
 public:
  /// No note is added if its text is empty.
  NotedRows(const std::shared_ptr<const data::Dataset>& of, bool labelled, Note note)
      : DerivedDataset(info_of(of->info(), labelled), {of}),
        labelled_(labelled),
        note_(std::move(note)) {}
  Notes notes() const override {
    Notes all = DerivedDataset::notes();
    if (!note_.text.empty()) all.push_back(note_);
    return all;
  }

 private:
  static data::DatasetInfo info_of(data::DatasetInfo info, bool labelled) {
    if (labelled) return info;
    info.target_shape = Shape{0};
    info.classes = 0;
    info.class_names.clear();
    info.counted_targets.reset();
    return info;
  }
  bool changes_samples() const override { return true; }
  void write(std::span<const std::int64_t> indices, const Version& version, void* inputs,
             void* targets) const override {
    if (labelled_) return read(indices, version, inputs, targets);
    std::vector<std::byte> none(indices.size() * data::target_bytes(source().info()));
    read(indices, version, inputs, none.data());
  }

  bool labelled_;
  Note note_;
};

std::vector<std::string> column_names(std::size_t width, bool quantities) {
  if (!quantities) return {"prediction", "probability"};
  if (width == 1) return {"prediction"};
  std::vector<std::string> out;
  for (std::size_t k = 1; k <= width; ++k) out.push_back(cat("prediction_", k));
  return out;
}

constexpr char kCsv[] = "csv:";

// The source of a file. Options that the source does not set are those of the run's data.
data::CsvSpec rows_of(const std::string& source, const DataSource& of_run) {
  return data::parse_csv_spec(
      read_as_run(DataSource(source.starts_with(kCsv) ? source : kCsv + source), of_run).text);
}

std::int64_t columns_of_first_row(const std::string& bytes, const std::string& file,
                                  const data::RowFormat& rows) {
  const std::string text = io::to_utf8(bytes, rows.encoding, file);
  io::CsvReader reader(text, file, data::csv_format(rows, file));
  std::vector<std::string_view> fields;
  return reader.next(fields) ? std::ssize(fields) : 0;
}

}  // namespace

std::shared_ptr<data::Dataset> TrainedModel::open_rows(const std::string& source) const {
  const data::CsvSpec spec = rows_of(source, opened_->model.data);
  return open_rows(spec, io::read_file(spec.file));
}

// Usually parses the table once. An attempt fails before rows are read if the table lacks the
// columns of that attempt. Only labels that cannot be read cause a second pass.
std::shared_ptr<data::Dataset> TrainedModel::open_rows(const data::CsvSpec& spec,
                                                       const std::string& bytes) const {
  const std::int64_t wanted = info().input.numel();
  const std::string& file = spec.file;
  const auto open = [&](const data::CsvOptions& how) {
    return data::make_tensor_dataset(data::parse_csv(bytes, file, how));
  };
  data::CsvOptions options = spec.options;
  options.columns = table_;
  data::SourceOptions reading;
  task_->set_reading(reading);
  options.classes = reading.classes;
  options.keep_unlabelled = true;
  if (table_ != nullptr) options.class_names = class_names_;
  const auto fits = [&](const std::shared_ptr<data::Dataset>& set) {
    return set->input_shape().numel() == wanted;
  };
  Note unread;
  const bool told = !options.label_name.empty();
  const auto with_labels = [&](const std::string& name) -> std::shared_ptr<data::Dataset> {
    try {
      data::CsvOptions labelled = options;
      labelled.label_name = name;
      if (name.empty()) labelled.rows.header = false;
      auto set = open(labelled);
      return fits(set) ? set : nullptr;
    } catch (const ValueError&) {  // there is no such column: decide by the number of inputs
      if (told) throw;
      return nullptr;
    } catch (const Error& error) {
      if (told) throw;
      if (!name.empty()) unread = {cat("labels are not read: ", error.what()), 1, {}};
      return nullptr;
    }
  };
  const std::string label = told ? options.label_name : table_ != nullptr ? table_->label : "";
  if (!label.empty())
    if (auto set = with_labels(label)) return set;
  const bool may_be_last =
      options.rows.header != true &&
      (table_ != nullptr || columns_of_first_row(bytes, file, options.rows) == wanted + 1);
  if (auto set = may_be_last ? with_labels("") : nullptr) {
    return std::make_shared<NotedRows>(set, true,
                                       Note{"it has no header and one column more than the model's "
                                            "inputs; that column is taken as the label",
                                            1, file});
  }
  options.labelled = false;
  options.label_name.clear();
  const auto set = open(options);
  if (!fits(set))
    throw make_error<ShapeError>(FileName{file}, ": its rows give ", set->input_shape().numel(),
                                 " inputs, and ", settings().model, " takes ", wanted);
  return std::make_shared<NotedRows>(set, false, std::move(unread));
}

// Reads the file once. If it changed between two reads, predictions would be written beside the
// wrong rows.
std::int64_t TrainedModel::predict_csv(
    const std::string& source, const std::string& out,
    const std::function<void(const data::Dataset& rows)>& check) const {
  const data::CsvSpec spec = rows_of(source, opened_->model.data);
  const std::string& file = spec.file;
  std::string bytes = io::read_file(file);
  const auto set = open_rows(spec, bytes);
  if (check) check(*set);
  const bool numbers = is_numeric(task_->output_form());
  const data::CsvOptions& options = spec.options;
  bytes =
      io::to_utf8(std::move(bytes), options.rows.encoding, file, table_ ? table_->encoding : "");
  io::CsvFormat format = data::csv_format(options.rows, file);
  const std::string& decimal =
      options.decimal.empty() && table_ ? table_->decimal : options.decimal;
  if (decimal == ",") format.decimal = ',';
  io::CsvReader reader(bytes, file, format);
  const char separator = reader.separator();
  std::vector<std::string> names, added;  // header and fields of the added columns
  added.reserve(static_cast<std::size_t>(set->size()));
  predict(*set, 0, -1, [&](Prediction&& p, const Tensor&) {
    std::vector<std::string> fields;
    if (numbers) {
      for (const float value : p.values) fields.push_back(cat(value));
    } else {
      const auto best = std::max_element(p.values.begin(), p.values.end());
      fields = {class_names_[static_cast<std::size_t>(best - p.values.begin())], cat(*best)};
    }
    if (added.empty()) names = column_names(fields.size(), numbers);
    added.push_back(join(fields, separator));
  });
  // The file has a header if it has one row more than the dataset.
  std::string text;
  std::vector<std::string_view> fields;
  std::int64_t rows = 0;
  io::CsvReader counter(bytes, file, format);
  while (counter.next(fields)) ++rows;
  bool header = rows == set->size() + 1;
  if (!header && rows != set->size())
    throw make_error<FormatError>(
        FileName{file}, ": ", set->size(), " of its ", rows,
        " rows are samples, so predictions cannot be written next to its rows");
  for (std::size_t k = 0; reader.next(fields);) {
    for (std::string_view field : fields) {
      text += io::csv_field(field, separator);
      text += separator;
    }
    text += header ? join(names, separator) : added[k++];
    text += '\n';
    header = false;
  }
  io::write_file(out, text);
  return set->size();
}

}  // namespace tenon::train
