// CSV to tensors: finds the header and what each column is for, learns from the rows that are for
// training what words and missing numbers become, and encodes the rows that are asked for.
#include "data/csv_dataset.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/str.h"
#include "data/split.h"
#include "data/table.h"
#include "data/table_columns.h"
#include "io/csv.h"

namespace tenon::data {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::string lower(std::string_view text) {
  std::string out(trimmed(text));
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

class CsvTable {
 public:
  CsvTable(std::string_view bytes, const std::string& name, const CsvOptions& options)
      : file_(bytes, name), name_(name), options_(options), how_(file_.columns()) {
    if (options_.labelled && file_.columns() < 2)
      throw FormatError(cat(name_, ": line 1",
                            " has one column; inputs and a label are needed, separated by commas, "
                            "semicolons or tabs"));
    find_header();
    if (options_.labelled) find_label();
    if (!options_.split.group.empty()) group_ = find(options_.split.group);
    if (options_.columns) {
      find_known_inputs();
    } else {
      find_inputs();
    }
    if (inputs_.empty()) throw FormatError(cat(name_, ": no column is left as an input"));
  }

  TensorDatasetParts read(std::optional<Split> part) {
    read_columns();
    SampleMarks marks;
    TensorDatasetParts out;
    if (options_.labelled && options_.classes) marks.classes = number_classes(out);
    if (group_ != kNone)
      marks.groups.assign(raw_[group_].places.begin(), raw_[group_].places.end());
    Samples samples{.name = name_, .count = rows_, .marks = std::move(marks)};
    samples.class_names = out.class_names;
    const Chosen chosen = part ? choose_samples(options_.split, *part, samples) : every_row();
    const std::vector<std::int64_t>& rows = chosen.samples;
    // What words and missing numbers become is learnt from the training part alone.
    std::vector<bool> held_out(chosen.parts.size());
    std::transform(chosen.parts.begin(), chosen.parts.end(), held_out.begin(),
                   [](const std::optional<Split>& of) { return of != Split::Train; });
    const auto table = options_.columns ? options_.columns : fit(held_out, out.class_names);
    out.input = input_tensor(*table, rows);
    if (options_.image_shape.rank() == 0) out.table = table;
    out.target = target_tensor(samples.marks.classes, rows);
    out.description = describe(rows);
    out.notes = chosen.notes;
    out.place = [name = name_](std::int64_t line) { return cat(name, ", line ", line); };
    for (const std::int64_t row : rows)
      out.numbers.push_back(lines_[static_cast<std::size_t>(row)]);
    return out;
  }

 private:
  Chosen every_row() const {
    Chosen out{.parts = Parts(static_cast<std::size_t>(rows_), Split::Train)};
    out.samples = samples_of(out.parts, Split::All);
    return out;
  }

  // ---- Which column is what

  void find_header() {
    for (const std::string& field : file_.first_row()) names_.push_back(lower(field));
    header_ = options_.header.value_or(
        holds_known_names() || !options_.categories.empty() || !options_.left_out.empty() ||
        !options_.split.group.empty() || (options_.labelled && !options_.label_name.empty()) ||
        file_.looks_like_header(options_.labelled ? default_label() : kNone));
    if (!header_) names_.clear();
  }
  bool holds_known_names() const {
    return options_.columns != nullptr && !options_.columns->columns.empty() &&
           std::all_of(options_.columns->columns.begin(), options_.columns->columns.end(),
                       [this](const TableColumn& column) {
                         return !column.name.empty() && place_of(column.name) != kNone;
                       });
  }
  std::size_t default_label() const {
    const auto columns = static_cast<std::int64_t>(file_.columns());
    const std::int64_t at =
        options_.label_column < 0 ? columns + options_.label_column : options_.label_column;
    if (at < 0 || at >= columns)
      throw ValueError(cat(name_, ": label column ", options_.label_column, " is not one of its ",
                           columns, " columns"));
    return static_cast<std::size_t>(at);
  }
  std::size_t place_of(std::string_view column) const {
    const auto found = std::find(names_.begin(), names_.end(), lower(column));
    return found == names_.end() ? kNone : static_cast<std::size_t>(found - names_.begin());
  }
  // A column that must be there.
  std::size_t find(const std::string& column) const {
    if (const std::size_t at = place_of(column); at != kNone) return at;
    throw ValueError(no_column(column));
  }
  std::string no_column(const std::string& column) const {
    const std::string near = nearest(lower(column), names_.data(), static_cast<int>(names_.size()));
    return cat(name_, ": has no column ", in_quotes(column),
               !header_       ? ", for it has no header"
               : near.empty() ? ""
                              : cat("; did you mean '", near, "'?"));
  }
  void find_label() {
    label_ = default_label();
    if (!options_.label_name.empty()) {
      label_ = find(options_.label_name);
    } else if (options_.label_column == -1) {
      std::vector<std::string> usual{"label", "class", "target", "y"};
      if (options_.columns && !options_.columns->label.empty())
        usual.insert(usual.begin(), options_.columns->label);
      for (const std::string& column : usual)
        if (const std::size_t at = place_of(column); at != kNone) {
          label_ = at;
          break;
        }
    }
    how_[label_] = options_.classes ? Reading::Labels : Reading::Numbers;
  }
  void find_inputs() {
    std::vector<bool> left_out(file_.columns());
    for (const std::string& column : options_.left_out) left_out[find(column)] = true;
    if (group_ != kNone) left_out[group_] = true;
    if (label_ != kNone) left_out[label_] = true;
    for (std::size_t c = 0; c < file_.columns(); ++c)
      if (!left_out[c]) inputs_.push_back(c), how_[c] = Reading::Numbers;
    for (const std::string& column : options_.categories) {
      const std::size_t at = find(column);
      if (left_out[at])
        throw ValueError(cat(name_, ": the column ", in_quotes(column), " is no input"));
      how_[at] = Reading::Words;
    }
    if (group_ != kNone && group_ != label_) how_[group_] = Reading::Labels;
    if (group_ != kNone && group_ == label_ && !options_.classes)
      throw ValueError(cat(name_, ": the target cannot be what groups rows"));
  }
  // By name; without names, or with none in the header that is known, by place.
  void find_known_inputs() {
    const std::vector<TableColumn>& known = options_.columns->columns;
    const bool by_name =
        header_ && std::none_of(known.begin(), known.end(),
                                [](const auto& column) { return column.name.empty(); });
    if (by_name) {
      for (const TableColumn& column : known) {
        inputs_.push_back(place_of(column.name));
        // Another table than the model learnt by, where find() is asked for what a user wrote.
        if (inputs_.back() == kNone)
          throw FormatError(cat(no_column(column.name), ", which the model reads"));
      }
    } else {
      for (std::size_t c = 0; c < file_.columns(); ++c)
        if (c != label_ && c != group_) inputs_.push_back(c);
      if (inputs_.size() != known.size())
        throw FormatError(cat(name_, ": has ", inputs_.size(),
                              " columns, and the model was trained on ", known.size(),
                              inputs_.size() == known.size() + 1 && !options_.labelled
                                  ? cat("; with labels: --data csv:", name_)
                                  : "; a header with their names would tell which"));
    }
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (inputs_[k] == label_)
        throw FormatError(cat(name_, ": the label's column ", label_ + 1, " is an input too"));
      how_[inputs_[k]] = known[k].values.empty() ? Reading::Numbers : Reading::Words;
    }
    if (group_ != kNone) how_[group_] = Reading::Labels;
  }

  // ---- Reading

  void read_columns() {
    raw_ = file_.read(how_, header_, lines_);
    rows_ = std::ssize(lines_);
    if (rows_ == 0) throw FormatError(cat(name_, ": holds a header but no rows"));
    // Columns whose fields are for the larger part no numbers are read again, as words.
    std::vector<Reading> again(how_.size());
    bool any = false;
    for (const std::size_t c : inputs_) {
      const RawColumn& column = raw_[c];
      if (how_[c] != Reading::Numbers || options_.columns || options_.image_shape.rank() > 0)
        continue;
      if (column.odd.count * 2 > rows_ - column.missing.count)
        again[c] = Reading::Words, any = true;
    }
    if (any) {
      std::vector<RawColumn> words = file_.read(again, header_, lines_);
      for (std::size_t c = 0; c < again.size(); ++c)
        if (again[c] == Reading::Words) raw_[c] = std::move(words[c]), how_[c] = Reading::Words;
    }
    refuse_odd();
  }
  [[noreturn]] void refuse(std::size_t column, const OddField& field, const char* what) const {
    throw FormatError(cat(name_, ": line ", field.line, ", column ", column + 1, ": ",
                          in_quotes(field.text), " ", what));
  }
  void refuse_odd() const {
    for (const std::size_t c : inputs_) {
      if (how_[c] != Reading::Numbers) continue;
      if (raw_[c].odd.count > 0) refuse(c, raw_[c].odd, "is not a finite number");
      if (raw_[c].missing.count > 0 && options_.image_shape.rank() > 0)
        refuse(c, raw_[c].missing, "is missing, and pictures have all their pixels");
    }
    if (group_ != kNone && raw_[group_].missing.count > 0)
      refuse(group_, raw_[group_].missing, "names no group");
    if (label_ == kNone) return;
    const RawColumn& label = raw_[label_];
    if (options_.classes) {
      if (label.missing.count > 0) refuse(label_, label.missing, "is no label");
      return;
    }
    const OddField& first =
        label.missing.count == 0 || (label.odd.count > 0 && label.odd.line < label.missing.line)
            ? label.odd
            : label.missing;
    if (first.count > 0) refuse(label_, first, "is not a finite number, as targets must be");
  }

  // ---- Labels

  // Labels that are numbers, and not all whole ones from 0, are no names of classes.
  void refuse_quantities(const std::vector<std::string>& labels) const {
    double ignored = 0;
    for (const std::string& text : labels)
      if (!known_classes().empty() || !io::parse_number(text, ignored)) return;
    const auto odd = std::find_if(labels.begin(), labels.end(),
                                  [](const std::string& text) { return class_number(text) < 0; });
    throw FormatError(cat(name_, ": column ", label_ + 1, " holds numbers such as ",
                          in_quotes(*odd),
                          ", which are no classes: classes are whole numbers from 0 "
                          "or words. Is another column the label (label=NAME)? Quantities are for "
                          "a regression: tenon train … --task regression, or open_csv with "
                          "classes = false"));
  }
  const std::vector<std::string>& known_classes() const {
    return options_.class_names.empty() && options_.columns ? options_.columns->class_names
                                                            : options_.class_names;
  }
  // Each row's class. Names that are known come first: a test set must number its classes as the
  // training set does.
  std::vector<std::int64_t> number_classes(TensorDatasetParts& parts) const {
    const std::vector<std::string>& labels = raw_[label_].texts;
    std::vector<std::int64_t> class_of;
    const bool numbers = std::all_of(labels.begin(), labels.end(), [](const std::string& text) {
      return class_number(text) >= 0;
    });
    if (known_classes().empty() && numbers) {
      for (const std::string& text : labels) {
        class_of.push_back(class_number(text));
        parts.classes = std::max(parts.classes, class_of.back() + 1);
      }
    } else {
      refuse_quantities(labels);
      parts.class_names = known_classes();
      if (parts.class_names.empty()) {
        parts.class_names = labels;
        std::sort(parts.class_names.begin(), parts.class_names.end());
      }
      parts.classes = std::ssize(parts.class_names);
      for (const std::string& text : labels) class_of.push_back(class_named(parts, text));
    }
    std::vector<std::int64_t> out;
    out.reserve(raw_[label_].places.size());
    for (const std::int32_t place : raw_[label_].places)
      out.push_back(class_of[static_cast<std::size_t>(place)]);
    return out;
  }
  std::int64_t class_named(const TensorDatasetParts& parts, const std::string& text) const {
    const std::vector<std::string>& names = parts.class_names;
    auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end() && class_number(text) >= 0)
      found = std::find(names.begin(), names.end(), cat(class_number(text)));
    if (found == names.end())
      throw FormatError(cat(name_, ": the label ", in_quotes(text), " is none of the ",
                            parts.classes, " known classes"));
    return found - names.begin();
  }

  // ---- Tensors

  std::shared_ptr<const TableColumns> fit(const std::vector<bool>& test,
                                          const std::vector<std::string>& class_names) const {
    auto out = std::make_shared<TableColumns>();
    out->class_names = class_names;
    if (header_ && label_ != kNone) out->label = trimmed(file_.first_row()[label_]);
    for (const std::size_t c : inputs_)
      out->columns.push_back(
          fit_column(raw_[c], header_ ? std::string(trimmed(file_.first_row()[c])) : std::string(),
                     how_[c] == Reading::Words, test, name_));
    return out;
  }
  Tensor input_tensor(const TableColumns& table, const std::vector<std::int64_t>& rows) const {
    std::vector<const RawColumn*> raw;
    raw.reserve(inputs_.size());
    for (const std::size_t c : inputs_) raw.push_back(&raw_[c]);
    const std::vector<float> inputs = encode_rows(table.columns, raw, rows);
    const std::int64_t count = std::ssize(rows),
                       width = std::accumulate(table.columns.begin(), table.columns.end(),
                                               std::int64_t{0},
                                               [](std::int64_t sum, const TableColumn&column) {
                                                 return sum + column.inputs();
                                               });
    if (options_.image_shape.rank() == 0) return Tensor::from(inputs, {count, width});
    return pictures(inputs, rows);
  }
  Tensor pictures(const std::vector<float>& inputs, const std::vector<std::int64_t>& rows) const {
    if (options_.image_shape.numel() != std::ssize(inputs_))
      throw ShapeError(cat(name_, ": its ", inputs_.size(),
                           " input columns are no picture of shape ", options_.image_shape));
    std::vector<std::uint8_t> bytes(inputs.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!(inputs[i] >= 0 && inputs[i] <= 255 && inputs[i] == std::floor(inputs[i])))
        throw FormatError(cat(name_, ": row ", rows[i / inputs_.size()] + 1, " holds ",
                              static_cast<double>(inputs[i]),
                              "; pictures are made of whole numbers from 0 to 255"));
      bytes[i] = static_cast<std::uint8_t>(inputs[i]);
    }
    Shape shape{std::ssize(rows)};
    for (const std::int64_t size : options_.image_shape) shape.push_back(size);
    return Tensor::from(bytes, shape);
  }
  Tensor target_tensor(const std::vector<std::int64_t>& classes,
                       const std::vector<std::int64_t>& rows) const {
    const Shape shape{std::ssize(rows)};
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
  std::string describe(const std::vector<std::int64_t>& rows) const {
    std::int64_t missing = 0;
    for (const std::size_t c : inputs_) missing += raw_[c].missing.count;
    const bool all = std::ssize(rows) == rows_;
    return cat(rows.size(), all ? "" : cat(" of ", rows_), " rows of ", name_,
               missing == 0 ? ""
                            : cat(" (", missing,
                                  missing == 1 ? " missing field" : " missing fields", " filled)"));
  }

  TableFile file_;
  const std::string& name_;
  const CsvOptions& options_;
  std::vector<Reading> how_;
  bool header_ = false;
  std::vector<std::string> names_;  // of the header, in small letters
  std::size_t label_ = kNone, group_ = kNone;
  std::vector<std::size_t> inputs_;
  std::vector<RawColumn> raw_;
  std::int64_t rows_ = 0;
  std::vector<std::int64_t> lines_;  // of the file, where rows begin
};

}  // namespace

TensorDatasetParts parse_csv(std::string_view bytes, const std::string& name,
                             const CsvOptions& options, std::optional<Split> part) {
  return CsvTable(bytes, name, options).read(part);
}

std::shared_ptr<Dataset> open_csv(const std::string& file, const CsvOptions& options) {
  return make_tensor_dataset(parse_csv(io::read_file(file), file, options));
}

std::shared_ptr<Dataset> open_csv(const std::string& file, Split part, const CsvOptions& options) {
  return part_or_null(parse_csv(io::read_file(file), file, options, part));
}

}  // namespace tenon::data
