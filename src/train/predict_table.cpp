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

#include "base/log.h"
#include "base/str.h"
#include "io/csv.h"
#include "io/encoding.h"

namespace tenon::train {
namespace {

// A field as a CSV file holds it.
void append_field(std::string& out, std::string_view field, char separator) {
  const char special[] = {separator, '"', '\n', '\r', '\0'};
  const bool plain = field.find_first_of(special) == std::string_view::npos &&
                     !field.starts_with('#') && !field.starts_with("\xef\xbb\xbf");
  if (plain) {
    out += field;
    return;
  }
  out += '"';
  for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  out += '"';
}

std::string join(const std::vector<std::string>& fields, char separator) {
  std::string out;
  for (const std::string& field : fields) {
    if (!out.empty()) out += separator;
    append_field(out, field, separator);
  }
  return out;
}

// Rows without labels: of no classes, and of no quantities either.
class Unlabelled : public data::Dataset {
 public:
  /// `note` says why labels that are there are not read; without a text nothing is said.
  Unlabelled(std::shared_ptr<const data::Dataset> of, Note note)
      : of_(std::move(of)), note_(std::move(note)) {}
  std::int64_t size() const override { return of_->size(); }
  Shape input_shape() const override { return of_->input_shape(); }
  DType input_dtype() const override { return of_->input_dtype(); }
  Shape target_shape() const override { return {0}; }
  DType target_dtype() const override { return of_->target_dtype(); }
  std::int64_t classes() const override { return 0; }
  std::shared_ptr<const data::TableColumns> table() const override { return of_->table(); }
  std::string describe() const override { return of_->describe(); }
  std::string sample_name(std::int64_t index) const override { return of_->sample_name(index); }
  Notes notes() const override {
    Notes all = of_->notes();
    if (!note_.text.empty()) all.push_back(note_);
    return all;
  }
  bool in_memory() const override { return of_->in_memory(); }
  void get(std::span<const std::int64_t> indices, void* inputs, void*) const override {
    std::vector<std::byte> none(indices.size() *
                                static_cast<std::size_t>(of_->target_shape().numel()) *
                                item_size(of_->target_dtype()));
    of_->get(indices, inputs, none.data());
  }

 private:
  std::shared_ptr<const data::Dataset> of_;
  Note note_;
};

std::vector<std::string> column_names(std::size_t width, bool quantities) {
  if (!quantities) return {"prediction", "probability"};
  if (width == 1) return {"prediction"};
  std::vector<std::string> out;
  for (std::size_t k = 1; k <= width; ++k) out.push_back(cat("prediction_", k));
  return out;
}

// What the option column= of "csv:FILE,column=NUMBER" says; the last column without it.
int label_column(const std::string& data) {
  constexpr std::string_view kOption = ",column=";
  const std::size_t at = data.rfind(kOption);
  if (!data.starts_with("csv:") || at == std::string::npos) return -1;
  int out = -1;
  const char* const first = data.data() + at + kOption.size();
  std::from_chars(first, data.data() + data.size(), out);
  return out;
}

}  // namespace

std::shared_ptr<data::Dataset> TrainedModel::open_rows(const std::string& file) const {
  const std::int64_t wanted = settings_.model_info().input.numel();
  const auto fits = [&](const std::shared_ptr<data::Dataset>& set) {
    return set->input_shape().numel() == wanted;
  };
  Note unread;
  const auto with_labels = [&](const std::string& name) -> std::shared_ptr<data::Dataset> {
    try {
      auto set = data::open_csv(
          file, {.label_column = label_column(settings_.data),
                 .label_name = name,
                 .classes = !is_regression(),
                 .class_names = table_ != nullptr ? class_names_ : std::vector<std::string>(),
                 .rows = {.header = name.empty() ? std::optional(false) : std::nullopt},
                 .keep_unlabelled = true,
                 .columns = table_});
      return fits(set) ? set : nullptr;
    } catch (const ValueError&) {  // there is no such column: the inputs decide
      return nullptr;
    } catch (const Error& error) {
      if (!name.empty()) unread = {cat("labels are not read: ", error.what()), 1, {}};
      return nullptr;
    }
  };
  const std::string label = table_ != nullptr ? table_->label : std::string();
  if (!label.empty())
    if (auto set = with_labels(label)) return set;
  if (auto set = with_labels("")) {
    log_message(LogLevel::Warning,
                cat(file,
                    ": it has no header, and one column more than the model's inputs: taken "
                    "as the label"));
    return set;
  }
  const auto set = data::open_csv(file, {.labelled = false, .columns = table_});
  if (!fits(set))
    throw ShapeError(cat(file, ": its rows give ", set->input_shape().numel(), " inputs, and ",
                         settings_.model, " takes ", wanted));
  return std::make_shared<Unlabelled>(set, std::move(unread));
}

std::int64_t TrainedModel::predict_csv(const std::string& file, const std::string& out) const {
  const auto set = open_rows(file);
  const std::string bytes = io::read_text(file, "", table_ ? table_->encoding : "");
  const io::CsvFormat format{.decimal = table_ && table_->decimal == "," ? ',' : '.'};
  io::CsvReader reader(bytes, file, format);
  const char separator = reader.separator();
  std::vector<std::string> names, added;  // the header, and what is put behind each row
  added.reserve(static_cast<std::size_t>(set->size()));
  predict(*set, 0, -1, [&](Prediction&& p, const Tensor&) {
    std::vector<std::string> fields;
    if (is_regression()) {
      for (const float value : p.values) fields.push_back(cat(value));
    } else {
      const auto best = std::max_element(p.values.begin(), p.values.end());
      fields = {class_names_[static_cast<std::size_t>(best - p.values.begin())], cat(*best)};
    }
    if (added.empty()) names = column_names(fields.size(), is_regression());
    added.push_back(join(fields, separator));
  });
  // A header is the row that the set has less than the file.
  std::string text;
  std::vector<std::string_view> fields;
  std::int64_t rows = 0;
  io::CsvReader counter(bytes, file, format);
  while (counter.next(fields)) ++rows;
  bool header = rows == set->size() + 1;
  if (!header && rows != set->size())
    throw FormatError(cat(file, ": ", set->size(), " of its ", rows,
                          " rows are samples, so its rows cannot be written with predictions"));
  for (std::size_t k = 0; reader.next(fields);) {
    for (std::string_view field : fields) {
      append_field(text, field, separator);
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
