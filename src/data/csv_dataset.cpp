// CSV to tensors: finds the header and the label's column, then reads row by row, so that errors
// name line and column.
#include "data/csv_dataset.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/str.h"
#include "io/csv.h"

namespace tenon::data {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string in_quotes(std::string_view field) { return cat("'", field.substr(0, 60), "'"); }

// A label that is a whole number that may count classes; -1 for anything else.
std::int64_t class_number(std::string_view text) {
  double value = 0;
  if (!io::parse_number(text, value) || value < 0 || value > 999'999 || value != std::floor(value))
    return -1;
  return static_cast<std::int64_t>(value);
}

class TableReader {
 public:
  TableReader(std::string_view bytes, const std::string& name, const CsvOptions& options)
      : reader_(bytes, name), options_(options), name_(name) {}

  TensorDatasetParts read() {
    if (!reader_.next(fields_)) throw FormatError(cat(name_, ": holds no rows"));
    columns_ = fields_.size();
    if (options_.labelled && columns_ < 2)
      throw FormatError(cat(name_, ": line ", reader_.line(),
                            " has one column; inputs and a label are needed, separated by commas, "
                            "semicolons or tabs"));
    const bool header = is_header();
    label_ = columns_;  // none
    if (options_.labelled) find_label(header);
    bool more = header ? reader_.next(fields_) : true;
    if (!more) throw FormatError(cat(name_, ": holds a header but no rows"));
    for (; more; more = reader_.next(fields_)) add_row();
    return finish();
  }

 private:
  // The first row is a header when a field other than the label's is no number.
  bool is_header() const {
    if (options_.labelled && !options_.label_name.empty()) return true;
    const std::size_t label = options_.labelled ? default_label() : columns_;
    double ignored = 0;
    for (std::size_t i = 0; i < columns_; ++i)
      if (i != label && !io::parse_number(fields_[i], ignored)) return true;
    return false;
  }
  std::size_t default_label() const {
    const std::int64_t columns = static_cast<std::int64_t>(columns_);
    const std::int64_t at =
        options_.label_column < 0 ? columns + options_.label_column : options_.label_column;
    if (at < 0 || at >= columns)
      throw ValueError(cat(name_, ": label column ", options_.label_column, " is not one of its ",
                           columns, " columns"));
    return static_cast<std::size_t>(at);
  }
  void find_label(bool header) {
    label_ = default_label();
    if (!header) return;
    std::vector<std::string> names;
    for (std::string_view field : fields_) names.push_back(lower(field));
    if (!options_.label_name.empty()) {
      const auto found = std::find(names.begin(), names.end(), lower(options_.label_name));
      if (found == names.end()) {
        const std::string near =
            nearest(lower(options_.label_name), names.data(), static_cast<int>(names.size()));
        throw ValueError(cat(name_, ": has no column ", in_quotes(options_.label_name),
                             near.empty() ? "" : cat("; did you mean '", near, "'?")));
      }
      label_ = static_cast<std::size_t>(found - names.begin());
    } else if (options_.label_column == -1) {
      for (const char* usual : {"label", "class", "target", "y"}) {
        const auto found = std::find(names.begin(), names.end(), usual);
        if (found != names.end()) {
          label_ = static_cast<std::size_t>(found - names.begin());
          break;
        }
      }
    }
  }
  [[noreturn]] void refuse(std::size_t column, const char* what) const {
    throw FormatError(cat(name_, ": line ", reader_.line(), ", column ", column + 1, ": ",
                          in_quotes(fields_[column]), " ", what));
  }
  void add_row() {
    if (fields_.size() != columns_)
      throw FormatError(cat(name_, ": line ", reader_.line(), " has ", fields_.size(),
                            " columns where the first row has ", columns_));
    for (std::size_t i = 0; i < columns_; ++i) {
      if (i == label_) continue;
      double value = 0;
      if (!io::parse_number(fields_[i], value))
        refuse(i, fields_[i].empty() ? "is missing: fill it in or drop the row"
                                     : "is not a finite number");
      inputs_.push_back(static_cast<float>(value));
    }
    if (!options_.labelled) {
      targets_.push_back(0);
    } else if (!options_.classes) {
      double value = 0;
      if (!io::parse_number(fields_[label_], value))
        refuse(label_, "is not a finite number, as targets must be");
      targets_.push_back(static_cast<float>(value));
    } else {
      if (fields_[label_].empty()) refuse(label_, "is no label");
      all_numbers_ = all_numbers_ && class_number(fields_[label_]) >= 0;
      labels_.push_back(intern(fields_[label_]));
    }
  }
  // The place of a label in label_names_.
  std::int64_t intern(std::string_view text) {
    const auto found = known_.find(text);
    if (found != known_.end()) return found->second;
    if (label_names_.size() >= 100'000)
      throw FormatError(cat(name_, ": column ", label_ + 1,
                            " has more than 100000 different labels: is it the label's column?"));
    label_names_.emplace_back(text);
    known_.emplace(std::string(text), static_cast<std::int64_t>(label_names_.size()) - 1);
    return static_cast<std::int64_t>(label_names_.size()) - 1;
  }

  TensorDatasetParts finish() {
    TensorDatasetParts parts;
    const auto rows = static_cast<std::int64_t>(inputs_.size() / width());
    parts.input = input_tensor(rows);
    parts.description = cat(rows, " rows of ", name_);
    if (!options_.labelled || !options_.classes) {
      parts.target = Tensor::from(targets_, {rows});
      return parts;
    }
    number_classes(parts);
    for (std::int64_t& label : labels_) label = class_of_[static_cast<std::size_t>(label)];
    parts.target = Tensor::from(labels_, {rows});
    return parts;
  }
  std::size_t width() const { return options_.labelled ? columns_ - 1 : columns_; }
  Tensor input_tensor(std::int64_t rows) const {
    const auto columns = static_cast<std::int64_t>(width());
    if (options_.image_shape.rank() == 0) return Tensor::from(inputs_, {rows, columns});
    if (options_.image_shape.numel() != columns)
      throw ShapeError(cat(name_, ": its ", columns, " input columns are no picture of shape ",
                           options_.image_shape));
    std::vector<std::uint8_t> bytes(inputs_.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!(inputs_[i] >= 0 && inputs_[i] <= 255 && inputs_[i] == std::floor(inputs_[i])))
        throw FormatError(cat(name_, ": row ", i / width() + 1, " holds ",
                              static_cast<double>(inputs_[i]),
                              "; pictures are made of whole numbers from 0 to 255"));
      bytes[i] = static_cast<std::uint8_t>(inputs_[i]);
    }
    Shape shape{rows};
    for (std::int64_t size : options_.image_shape) shape.push_back(size);
    return Tensor::from(bytes, shape);
  }
  // Labels that are numbers, and not all whole ones from 0, are no names of classes.
  void refuse_quantities() const {
    double ignored = 0;
    for (const std::string& text : label_names_)
      if (!options_.class_names.empty() || !io::parse_number(text, ignored)) return;
    const auto odd = std::find_if(label_names_.begin(), label_names_.end(),
                                  [](const std::string& text) { return class_number(text) < 0; });
    throw FormatError(cat(name_, ": column ", label_ + 1, " holds numbers such as ",
                          in_quotes(*odd),
                          ", which are no classes: classes are whole numbers from 0 "
                          "or words. Is another column the label (label=NAME)? Quantities are for "
                          "a regression: tenon train … --task regression, or open_csv with "
                          "classes = false"));
  }
  // Names given by the caller come first: a test set must number its classes as the training set
  // does.
  void number_classes(TensorDatasetParts& parts) {
    if (options_.class_names.empty() && all_numbers_) {
      for (const std::string& text : label_names_) {
        class_of_.push_back(class_number(text));
        parts.classes = std::max(parts.classes, class_of_.back() + 1);
      }
      return;
    }
    refuse_quantities();
    parts.class_names = options_.class_names;
    if (parts.class_names.empty()) {
      parts.class_names = label_names_;
      std::sort(parts.class_names.begin(), parts.class_names.end());
    }
    parts.classes = static_cast<std::int64_t>(parts.class_names.size());
    for (const std::string& text : label_names_) {
      auto found = std::find(parts.class_names.begin(), parts.class_names.end(), text);
      if (found == parts.class_names.end() && class_number(text) >= 0)
        found =
            std::find(parts.class_names.begin(), parts.class_names.end(), cat(class_number(text)));
      if (found == parts.class_names.end())
        throw FormatError(cat(name_, ": the label ", in_quotes(text), " is none of the ",
                              parts.classes, " known classes"));
      class_of_.push_back(found - parts.class_names.begin());
    }
  }

  io::CsvReader reader_;
  const CsvOptions& options_;
  const std::string& name_;
  std::vector<std::string_view> fields_;
  std::size_t columns_ = 0, label_ = 0;
  std::vector<float> inputs_, targets_;
  std::vector<std::int64_t> labels_, class_of_;
  std::vector<std::string> label_names_;
  std::map<std::string, std::int64_t, std::less<>> known_;
  bool all_numbers_ = true;
};

}  // namespace

TensorDatasetParts parse_csv(std::string_view bytes, const std::string& name,
                             const CsvOptions& options) {
  return TableReader(bytes, name, options).read();
}

std::shared_ptr<Dataset> open_csv(const std::string& file, const CsvOptions& options) {
  return make_tensor_dataset(parse_csv(io::read_file(file), file, options));
}

}  // namespace tenon::data
