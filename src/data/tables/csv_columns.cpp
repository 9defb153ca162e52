// The roles of a table's columns: the label, the inputs and the groups, and whether there is a
// header. They follow from the options or from the table that a model was trained on.
#include <algorithm>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "base/make_error.h"
#include "data/tables/csv_reading.h"

namespace tenon::data {

bool CsvTable::is_name(const std::string& column) {
  return column.empty() || column.find_first_not_of("0123456789") != std::string::npos;
}

bool CsvTable::options_name_columns() const {
  std::vector<std::string> told{options_.split.group};
  if (options_.labelled) told.push_back(options_.label_name);
  for (const auto* more : {&options_.categories, &options_.left_out, &options_.dates})
    told.insert(told.end(), more->begin(), more->end());
  return std::any_of(told.begin(), told.end(),
                     [](const std::string& column) { return !column.empty() && is_name(column); });
}

void CsvTable::find_header() {
  Notes of_names;
  const ColumnNames names(file_.first_row(), first_line(), of_names);
  HeaderGuess guess{options_.rows.header.value_or(true)};
  if (!options_.rows.header && !has_known_names(names) && !options_name_columns())
    guess = guess_header(file_, options_.labelled ? default_label() : kNone);
  header_ = guess.header;
  if (header_) {
    names_ = names;
    notes_ = std::move(of_names);
    header_found_by_label_ = guess.by_label_name;
  }
  if (!header_ && !options_.rows.header && file_.next_rows().empty() && !options_.columns)
    guess.assumed = "the only row is read as a row, not as a header (header=yes says otherwise)";
  // With a trained model, the guess needs no note: a header would have the model's column names.
  if (!header_ && options_.columns) guess.assumed.clear();
  if (!guess.assumed.empty()) notes_.push_back({guess.assumed, 1, first_line()});
}

bool CsvTable::has_known_names(const ColumnNames& names) const {
  return options_.columns != nullptr && !options_.columns->columns.empty() &&
         std::all_of(options_.columns->columns.begin(), options_.columns->columns.end(),
                     [&](const TableColumn& column) {
                       return !column.name.empty() && names.find(column.name, name_) != kNone;
                     });
}

std::size_t CsvTable::default_label() const {
  const auto columns = static_cast<std::int64_t>(file_.columns());
  const std::int64_t at =
      options_.label_column < 0 ? columns + options_.label_column : options_.label_column;
  if (at < 0 || at >= columns)
    throw make_error<ValueError>(FileName{name_}, ": label column ", options_.label_column,
                                 " is not one of its ", columns, " columns");
  return static_cast<std::size_t>(at);
}

std::size_t CsvTable::find(const std::string& column) const {
  if (const std::size_t at = names_.find(column, name_); at != kNone) return at;
  if (!header_ && !is_name(column) && column.size() < 9)
    if (const std::size_t at = std::stoul(column); at < file_.columns()) return at;
  throw make_error<ValueError>(FileName{name_}, ": ", no_column(column));
}

std::string CsvTable::no_column(const std::string& column) const {
  const std::string near = names_.near(column);
  return cat("has no column ", in_quotes(column),
             !header_       ? ", because it has no header"
             : near.empty() ? ""
                            : cat("; did you mean '", near, "'?"));
}

void CsvTable::find_label() {
  label_ = default_label();
  if (!options_.label_name.empty()) {
    label_ = find(options_.label_name);
  } else if (options_.label_column == -1) {
    std::vector<std::string> usual = label_names();
    if (options_.columns && !options_.columns->label.empty())
      usual.insert(usual.begin(), options_.columns->label);
    std::vector<std::size_t> found;
    for (const std::string& column : usual)
      if (const std::size_t at = names_.find(column, name_); at != kNone) found.push_back(at);
    if (!found.empty()) label_ = found[0];
    const bool known = options_.columns && !options_.columns->label.empty();
    // This is another table than the one the model was trained on, and no option names its label
    // column.
    if (known && header_ && names_.find(options_.columns->label, name_) == kNone)
      throw make_error<FormatError>(
          FileName{name_}, ": ", no_column(options_.columns->label),
          ", which has the labels in the model's training data: name the column of "
          "labels (label=NAME)");
    const bool same_place = options_.columns && !known && !header_ &&
                            options_.columns->label_column >= 0 &&
                            options_.columns->label_column < std::ssize(file_.first_row());
    if (same_place) label_ = static_cast<std::size_t>(options_.columns->label_column);
    if (!known && found.size() > 1 && found[1] != found[0])
      notes_.push_back({cat("the label is the column '", names_[found[0]], "', and '",
                            names_[found[1]], "' is an input (label=NAME says otherwise)"),
                        1, first_line()});
  }
  how_[label_] = options_.classes ? Reading::Labels : Reading::Numbers;
  rule_.column = label_;
  rule_.known.insert(known_classes().begin(), known_classes().end());
}

void CsvTable::find_inputs() {
  std::vector<bool> left_out(file_.columns());
  for (const std::string& column : options_.left_out) left_out[find(column)] = true;
  if (group_ != kNone) left_out[group_] = true;
  if (label_ != kNone) left_out[label_] = true;
  for (std::size_t c = 0; c < file_.columns(); ++c)
    if (!left_out[c]) inputs_.push_back(c), how_[c] = Reading::Numbers;
  const auto ask = [&](const std::vector<std::string>& columns, Reading how) {
    for (const std::string& column : columns) {
      const std::size_t at = find(column);
      if (at == label_ && how == Reading::Words && options_.classes) {
        rule_.only_empty = true;
        continue;
      }
      if (left_out[at])
        throw make_error<ValueError>(FileName{name_}, ": the column ", in_quotes(column),
                                     " is not an input");
      how_[at] = how;
      if (how == Reading::Words) categories_.push_back(at);
      if (options_.day_first && how == Reading::Dates)
        orders_[at] = *options_.day_first ? kDayFirst : kMonthFirst;
    }
  };
  ask(options_.categories, Reading::Words);
  ask(options_.dates, Reading::Dates);
  if (group_ != kNone && group_ != label_) how_[group_] = Reading::Groups;
  if (group_ != kNone && group_ == label_ && !options_.classes)
    throw make_error<ValueError>(FileName{name_}, ": the target cannot be what groups rows");
}

void CsvTable::find_known_inputs() {
  const std::vector<TableColumn>& known = options_.columns->columns;
  const bool by_name = header_ && std::none_of(known.begin(), known.end(), [](const auto& column) {
                         return column.name.empty();
                       });
  const auto shares = [&](std::size_t k) {
    return k > 0 && !known[k].date.empty() && known[k].date != kDateParts[0];
  };
  if (by_name) {
    std::vector<bool> taken(file_.columns());
    for (std::size_t k = 0; k < known.size(); ++k) {
      const std::size_t at = names_.find(known[k].name, name_);
      // Not find(): its error is for a name that the user wrote; here the table is another one.
      if (at == kNone)
        throw make_error<FormatError>(FileName{name_}, ": ", no_column(known[k].name),
                                      ", which the model reads");
      if (taken[at] && !shares(k))
        throw make_error<FormatError>(FileName{name_}, ": the column ", in_quotes(names_[at]),
                                      " matches two of the model's columns, '", known[k].name,
                                      "' is the second: column names must differ as in training");
      taken[at] = true;
      inputs_.push_back(at);
    }
  } else {
    find_known_places();
  }
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k] == label_)
      throw make_error<FormatError>(FileName{name_}, ": the label's ", title(label_).text(),
                                    " is an input too");
    how_[inputs_[k]] = !known[k].date.empty()    ? Reading::Dates
                       : known[k].values.empty() ? Reading::Numbers
                                                 : Reading::Words;
    if (!known[k].date.empty()) orders_[inputs_[k]] = date_order(known[k].date_order);
  }
  if (group_ != kNone && group_ != label_) how_[group_] = Reading::Groups;
}

void CsvTable::find_known_places() {
  const std::vector<TableColumn>& known = options_.columns->columns;
  std::vector<std::size_t> places;
  for (std::size_t c = 0; c < file_.columns(); ++c)
    if (c != label_ && c != group_) places.push_back(c);
  const auto needed = static_cast<std::size_t>(
      std::count_if(known.begin(), known.end(), [](const TableColumn& column) {
        return column.date.empty() || column.date == kDateParts[0];
      }));
  if (places.size() != needed)
    throw make_error<FormatError>(FileName{name_}, ": has ", places.size(),
                                  " columns, and the model was trained on ", needed,
                                  places.size() == needed + 1 && !options_.labelled
                                      ? cat("; with labels: --data csv:", name_)
                                      : "; a header with their names would tell which");
  std::size_t next = 0;
  for (const TableColumn& column : known) {
    if (column.date.empty() || column.date == kDateParts[0]) ++next;
    if (next == 0)
      throw make_error<FormatError>(FileName{name_}, ": the model's dates have no year");
    inputs_.push_back(places[next - 1]);
  }
}

}  // namespace tenon::data
