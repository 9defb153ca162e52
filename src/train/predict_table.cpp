// Predictions for the rows of a table, written as a table.
#include <algorithm>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "base/str.h"
#include "io/csv.h"
#include "io/encoding.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kRowsAtOnce = 4096;  // predicted at a time

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

}  // namespace

std::int64_t TrainedModel::predict_csv(const std::string& file, const std::string& out) const {
  const data::CsvOptions options{.labelled = false, .columns = table_};
  const auto set = data::open_csv(file, options);
  std::vector<std::string> added;  // what is put behind each row
  added.reserve(static_cast<std::size_t>(set->size()));
  const std::string bytes = io::read_text(file, "", table_ ? table_->encoding : "");
  const io::CsvFormat format{.decimal = table_ && table_->decimal == "," ? ',' : '.'};
  io::CsvReader reader(bytes, file, format);
  const char separator = reader.separator();
  std::vector<std::string> names;
  data::Loader loader(
      set, {.batch = std::min(kRowsAtOnce, set->size()), .shuffle = false, .workers = 0});
  for (data::Batch batch; loader.next(batch);) {
    const Tensor found = predict(batch.input);
    const std::int64_t width = found.numel() / batch.size;
    const std::vector<float> values = found.to_vector<float>();
    for (std::int64_t i = 0; i < batch.size; ++i) {
      const auto row = values.begin() + i * width;
      std::vector<std::string> fields;
      if (is_regression()) {
        for (std::int64_t k = 0; k < width; ++k) fields.push_back(cat(row[k]));
      } else {
        const auto best = std::max_element(row, row + width);
        fields = {class_names_[static_cast<std::size_t>(best - row)], cat(*best)};
      }
      added.push_back(join(fields, separator));
    }
    if (!names.empty()) continue;
    if (!is_regression()) {
      names = {"prediction", "probability"};
    } else if (width == 1) {
      names = {"prediction"};
    } else {
      for (std::int64_t k = 1; k <= width; ++k) names.push_back(cat("prediction_", k));
    }
  }
  // A header is the row that the set has less than the file.
  std::string text;
  std::vector<std::string_view> fields;
  std::int64_t rows = 0;
  io::CsvReader counter(bytes, file, format);
  while (counter.next(fields)) ++rows;
  bool header = rows == set->size() + 1;
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
