// CSV to tensors: finds the header and the role of each column, fits the encoding of words and
// missing values on the training rows, and encodes all rows.
#include "data/tables/csv_table.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "data/tables/table.h"
#include "data/tables/table_columns.h"
#include "data/tables/table_header.h"
#include "data/tables/table_labels.h"
#include "io/text/encoding.h"

namespace tenon::data {
namespace {

std::string in_quotes(std::string_view field) { return cat("'", field.substr(0, 60), "'"); }

// The number format: from the options, otherwise from the table that the model was trained on.
io::NumberFormat numbers_of(const CsvOptions& options, const std::string& name) {
  const bool told = !options.decimal.empty() || !options.thousands.empty();
  if (told || !options.columns) return number_format(options.decimal, options.thousands, name);
  return number_format(options.columns->decimal, options.columns->thousands, name);
}

class CsvTable {
 public:
  CsvTable(std::string_view text, const std::string& name, const CsvOptions& options)
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

  ReadTable read(bool divided) {
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

 private:
  Chosen every_row() const {
    Chosen out{.parts = Parts(static_cast<std::size_t>(rows_), Split::Train)};
    out.samples = samples_of(out.parts, Split::All);
    return out;
  }

  // ---- Roles of columns

  std::string first_line() const { return cat(name_, ", line ", file_.first_line()); }
  ColumnTitle title(std::size_t column) const {
    return {names_.empty() ? std::string() : names_[column], column, how_asked(column)};
  }
  bool how_asked(std::size_t column) const {
    return std::find(categories_.begin(), categories_.end(), column) != categories_.end();
  }

  // Whether a column is given by name, not by number.
  static bool is_name(const std::string& column) {
    return column.empty() || column.find_first_not_of("0123456789") != std::string::npos;
  }
  bool options_name_columns() const {
    std::vector<std::string> told{options_.split.group};
    if (options_.labelled) told.push_back(options_.label_name);
    for (const auto* more : {&options_.categories, &options_.left_out, &options_.dates})
      told.insert(told.end(), more->begin(), more->end());
    return std::any_of(told.begin(), told.end(), [](const std::string& column) {
      return !column.empty() && is_name(column);
    });
  }
  void find_header() {
    Notes of_names;
    const ColumnNames names(file_.first_row(), first_line(), of_names);
    HeaderGuess guess{options_.rows.header.value_or(true)};
    if (!options_.rows.header && !has_known_names(names) && !options_name_columns())
      guess = guess_header(file_, options_.labelled ? default_label() : kNone);
    header_ = guess.header;
    if (header_) {
      names_ = names;
      notes_ = std::move(of_names);
      told_by_label_ = guess.by_label_name;
    }
    if (!header_ && !options_.rows.header && file_.next_rows().empty() && !options_.columns)
      guess.assumed = "the only row is read as a row, not as a header (header=yes says otherwise)";
    // With a trained model, the guess needs no note: a header would have the model's column names.
    if (!header_ && options_.columns) guess.assumed.clear();
    if (!guess.assumed.empty()) notes_.push_back({guess.assumed, 1, first_line()});
  }
  bool has_known_names(const ColumnNames& names) const {
    return options_.columns != nullptr && !options_.columns->columns.empty() &&
           std::all_of(options_.columns->columns.begin(), options_.columns->columns.end(),
                       [&](const TableColumn& column) {
                         return !column.name.empty() && names.find(column.name, name_) != kNone;
                       });
  }
  std::size_t default_label() const {
    const auto columns = static_cast<std::int64_t>(file_.columns());
    const std::int64_t at =
        options_.label_column < 0 ? columns + options_.label_column : options_.label_column;
    if (at < 0 || at >= columns)
      throw make_error<ValueError>(FileName{name_}, ": label column ", options_.label_column,
                                   " is not one of its ", columns, " columns");
    return static_cast<std::size_t>(at);
  }
  // The column of this name or number; throws if there is none.
  std::size_t find(const std::string& column) const {
    if (const std::size_t at = names_.find(column, name_); at != kNone) return at;
    if (!header_ && !is_name(column) && column.size() < 9)
      if (const std::size_t at = std::stoul(column); at < file_.columns()) return at;
    throw ValueError(no_column(column));
  }
  std::string no_column(const std::string& column) const {
    const std::string near = names_.near(column);
    return cat(name_, ": has no column ", in_quotes(column),
               !header_       ? ", because it has no header"
               : near.empty() ? ""
                              : cat("; did you mean '", near, "'?"));
  }
  void find_label() {
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
        throw FormatError(
            cat(no_column(options_.columns->label),
                ", which has the labels in the model's training data: name the column of "
                "labels (label=NAME)"));
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
  void find_inputs() {
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
  // Finds the model's input columns: by name, or by position if the model or the header has no
  // names. Only the parts of a date share a column.
  void find_known_inputs() {
    const std::vector<TableColumn>& known = options_.columns->columns;
    const bool by_name =
        header_ && std::none_of(known.begin(), known.end(),
                                [](const auto& column) { return column.name.empty(); });
    const auto shares = [&](std::size_t k) {
      return k > 0 && !known[k].date.empty() && known[k].date != kDateParts[0];
    };
    if (by_name) {
      std::vector<bool> taken(file_.columns());
      for (std::size_t k = 0; k < known.size(); ++k) {
        const std::size_t at = names_.find(known[k].name, name_);
        // Not find(): its error is for a name that the user wrote; here the table is another one.
        if (at == kNone)
          throw FormatError(cat(no_column(known[k].name), ", which the model reads"));
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
  void find_known_places() {
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

  // ---- Reading

  void read_columns() {
    TableRows rows = file_.read(how_, orders_, rule_, header_);
    raw_ = std::move(rows.columns);
    lines_ = std::move(rows.lines);
    rows_ = std::ssize(lines_);
    if (rows_ == 0 && rows.unlabelled.rows.count > 0)
      throw make_error<FormatError>(FileName{name_}, ": none of its ", rows.unlabelled.rows.count,
                                    " rows has a label in ", title(label_).text(),
                                    " (label=NAME says which column contains them)");
    if (rows_ == 0)
      throw make_error<FormatError>(FileName{name_}, ": contains a header but no rows");
    note_skipped(notes_, name_, rows.comments, rows.blank, options_.rows.comment.size() == 1);
    note_unlabelled(rows.unlabelled);
    read_again();
    refuse_odd();
    refuse_header();
    note_spaces();
    note_short_years();
    note_conversions(rows.conversions);
    note_index();
  }
  // The number of missing fields in each row; empty if no field is missing.
  std::vector<std::int32_t> missing_of_rows() const {
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
  // Reads some columns again: as words if most fields are not numbers, as dates with the month
  // first if the fields show that order.
  void read_again() {
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
  void require_one_order(std::size_t column) const {
    const RawColumn& raw = raw_[column];
    if (raw.odd.count > 0 || (raw.date_orders & kYearFirst) != 0) return;
    if (raw.date_orders == (kDayFirst | kMonthFirst))
      throw make_error<FormatError>(FileName{name_}, ": ", title(column).text(),
                                    " contains dates with ambiguous day and month: dayfirst=yes or "
                                    "dayfirst=no says which comes first");
  }
  [[noreturn]] void refuse_words(std::size_t column) const {
    const OddField& field = raw_[column].odd;
    throw make_error<FormatError>(FileName{name_}, ": line ", LineNumber{field.line}, ", ",
                                  title(column).text(), ": ", in_quotes(field.text),
                                  " is not a number, and ", field.count, " of ", rows_,
                                  " fields of the column are like it: ",
                                  reading_hint(field.text, title(column), file_.numbers()));
  }
  [[noreturn]] void refuse(std::size_t column, const OddField& field,
                           const std::string& what) const {
    throw make_error<FormatError>(FileName{name_}, ": line ", LineNumber{field.line}, ", ",
                                  title(column).text(), ": ", in_quotes(field.text), " ", what);
  }
  [[noreturn]] void refuse_number(std::size_t column, const char* more = "") const {
    const OddField &odd = raw_[column].odd, &large = raw_[column].too_large;
    if (large.count > 0 && large.line == odd.line)
      refuse(column, large, cat("is not a finite number of float32", more));
    const bool second_header = header_ && odd.count == 1 && odd.line == lines_[0];
    refuse(column, odd,
           cat("is not a finite number", more, "; ",
               second_header ? "where the line is a second header, leave one of the two out"
                             : reading_hint(odd.text, title(column), file_.numbers())));
  }
  [[noreturn]] void refuse_date(std::size_t column) const {
    const OddField& odd = raw_[column].odd;
    const std::string why = not_a_date(odd.text, title(column).option());
    refuse(
        column, odd,
        why.empty() ? "is not a date, or has day and month in another order than other rows" : why);
  }
  void refuse_odd() const {
    for (const std::size_t c : inputs_) {
      if (raw_[c].odd.count > 0 && how_[c] == Reading::Numbers) refuse_number(c);
      if (raw_[c].odd.count > 0 && how_[c] == Reading::Dates) refuse_date(c);
      if (raw_[c].missing.count > 0 && options_.image_shape.rank() > 0)
        refuse(c, raw_[c].missing, "is missing, and images have all their pixels");
    }
    if (group_ != kNone && raw_[group_].missing.count > 0)
      refuse(group_, raw_[group_].missing, "names no group");
    if (label_ == kNone) return;
    if (!options_.classes && raw_[label_].odd.count > 0)
      refuse_number(label_, ", as targets must be");
  }
  // A label column's name that is also a label in the column is not a name.
  void refuse_header() const {
    if (!told_by_label_ || label_ == kNone || !options_.classes) return;
    const std::vector<std::string>& labels = raw_[label_].texts;
    if (std::find(labels.begin(), labels.end(), names_[label_]) != labels.end())
      throw make_error<FormatError>(
          FileName{name_}, ": line ", LineNumber{file_.first_line()}, ": ",
          in_quotes(names_[label_]),
          " may be the name of the label's column or a label as further down: "
          "header=yes or header=no says which");
  }
  void note_conversions(const Conversions& done) {
    const auto note = [&](const Conversions::Kind& kind, const char* what) {
      if (kind.count > 0)
        notes_.push_back({cat(kind.count, " ", what), kind.count,
                          cat(name_, ", line ", kind.line, ", ", title(kind.column).text())});
    };
    note(done.percent, "percentages are read as hundredths (12 % is 0.12)");
    note(done.minus, "numbers have a typographic minus sign (U+2212)");
    note(done.spaces, "numbers have no-break or thin spaces in or around them");
    note(done.exponents, "numbers have Fortran's exponents (1.5D+03)");
    note(done.rounded, "integers are rounded, because float32 cannot represent them");
  }
  // Notes a first column that looks like the index of a data frame.
  void note_index() {
    if (!header_ || !names_.unnamed(0) ||
        std::find(inputs_.begin(), inputs_.end(), 0u) == inputs_.end() ||
        how_[0] != Reading::Numbers)
      return;
    const std::vector<float>& numbers = raw_[0].numbers;
    for (std::size_t i = 1; i < numbers.size(); ++i)
      if (numbers[i] != numbers[i - 1] + 1) return;
    notes_.push_back(
        {cat("the first column has no name and counts the rows, as the index of a data frame "
             "does; it is an input (drop=",
             names_[0], " leaves it out)"),
         1, first_line()});
  }

  // ---- Labels

  const std::vector<std::string>& known_classes() const {
    return options_.class_names.empty() && options_.columns ? options_.columns->class_names
                                                            : options_.class_names;
  }
  // Notes rows without a label. An empty label is never a class; "NA" is one if the user declares
  // the column a category.
  void note_unlabelled(const Unlabelled& unlabelled) {
    const OddField& rows = unlabelled.rows;
    if (rows.count == 0) return;
    std::string forms;
    bool word = false;
    for (const auto& [form, count] : unlabelled.forms) {
      forms += cat(forms.empty() ? "" : ", ", in_quotes(form));
      if (unlabelled.forms.size() > 1) forms += cat(" in ", count);
      word = word || (options_.classes && !form.empty());
    }
    const char* const left = rule_.keep_rows   ? ""
                             : rows.count == 1 ? " and is left out"
                                               : " and are left out";
    notes_.push_back(
        {cat(rows.count, rows.count == 1 ? " row has" : " rows have", " no label (", forms, ")",
             left,
             word ? cat("; category=", title(label_).option(), " takes such words for classes")
                  : ""),
         rows.count, cat(name_, ", line ", rows.line)});
  }
  // Labels and inputs that differ only in spaces around them are one word.
  void note_spaces() {
    for (std::size_t c = 0; c < raw_.size(); ++c) {
      Note note;
      std::int64_t line = 0;
      const std::string* text = nullptr;
      for (std::size_t k = 0; k < raw_[c].texts.size(); ++k) {
        const SpacedWord& word = raw_[c].spaced[k];
        if (!word.bare || word.count == 0) continue;
        if (note.count == 0 || word.line < line) line = word.line, text = &raw_[c].texts[k];
        note.count += word.count;
      }
      if (note.count == 0) continue;
      note.text = cat(title(c).text(), ": ", note.count, note.count == 1 ? " field" : " fields",
                      " with spaces around a word, such as ", in_quotes(*text),
                      ", are taken for the same word without");
      note.first = cat(name_, ", line ", line);
      notes_.push_back(std::move(note));
    }
  }
  void note_short_years() {
    for (const std::size_t c : std::set<std::size_t>(inputs_.begin(), inputs_.end()))
      if (const OddField& years = raw_[c].short_years; years.count > 0)
        notes_.push_back({cat(title(c).text(), ": ", years.count,
                              years.count == 1 ? " date has a year" : " dates have years",
                              " of two digits: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to "
                              "2068"),
                          years.count, cat(name_, ", line ", years.line)});
  }
  // A chronological split keeps the order of the rows, so rows that are not in the order of their
  // dates are noted. Of several date columns, the one closest to the row order is checked; others
  // may be dates of birth.
  void note_times(const Parts& parts) {
    std::size_t column = kNone;
    OrderOfTimes order;
    for (const std::size_t c : std::set<std::size_t>(inputs_.begin(), inputs_.end())) {
      if (how_[c] != Reading::Dates) continue;
      const OrderOfTimes found = order_of_times(raw_[c].dates, parts);
      if (column == kNone || found.earlier < order.earlier) column = c, order = found;
    }
    const auto note = [&](std::int64_t count, const char* what) {
      if (count > 0)
        notes_.push_back({cat(title(column).text(), ": ", count, what), count,
                          cat(name_, ", line ", lines_[static_cast<std::size_t>(order.first)])});
    };
    note(order.earlier, order.earlier == 1
                            ? " row has an earlier date than the row before. 'chronological' keeps "
                              "the order of the rows: sort them by date"
                            : " rows have earlier dates than the row before. 'chronological' keeps "
                              "the order of the rows: sort them by date");
    note(order.shared,
         " rows have the same date as a row in another part. 'chronological' divides between rows");
  }
  // The class of each row. Known class names come first, so that a test set numbers its classes
  // like the training set.
  std::vector<std::int64_t> number_classes(TensorDatasetParts& parts) {
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

  // ---- Tensors

  std::shared_ptr<const TableColumns> fit(const std::vector<bool>& held_out,
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
  UnknownWords unknown_words(std::size_t column, std::vector<std::int64_t>&& rows) const {
    UnknownWords out{.column = title(column).text(), .rows = std::move(rows)};
    out.texts = raw_[column].texts;
    out.places.reserve(out.rows.size());
    for (const std::int64_t row : out.rows)
      out.places.push_back(raw_[column].places[static_cast<std::size_t>(row)]);
    return out;
  }
  Tensor input_tensor(const TableColumns& table, const std::vector<std::int64_t>& rows,
                      std::vector<UnknownWords>& unknown) {
    constexpr std::uint64_t kLeastMemory = 1u << 30, kMemoryOfFile = 16;
    require_memory(table.columns, rows.size(),
                   options_.memory > 0 ? options_.memory
                                       : std::max(kLeastMemory, kMemoryOfFile * file_.bytes()),
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
  Tensor images(const std::vector<float>& inputs, const std::vector<std::int64_t>& rows) const {
    if (options_.image_shape.numel() != std::ssize(inputs_))
      throw make_error<ShapeError>(FileName{name_}, ": its ", inputs_.size(),
                                   " input columns are no image of shape ", options_.image_shape);
    std::vector<std::uint8_t> bytes(inputs.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!(inputs[i] >= 0 && inputs[i] <= 255 && inputs[i] == std::floor(inputs[i])))
        throw make_error<FormatError>(
            FileName{name_}, ": line ", lines_[static_cast<std::size_t>(rows[i / inputs_.size()])],
            " contains ", static_cast<double>(inputs[i]), "; images need integers from 0 to 255");
      bytes[i] = static_cast<std::uint8_t>(inputs[i]);
    }
    Shape shape{std::ssize(rows)};
    for (const std::int64_t size : options_.image_shape) shape.push_back(size);
    return Tensor::from(bytes, shape);
  }
  Tensor target_tensor(const std::vector<std::int64_t>& classes,
                       const std::vector<std::int64_t>& rows) const {
    // A regression target has shape [N, 1], like the output of a layer with one output.
    const Shape shape = options_.labelled && !options_.classes ? Shape{std::ssize(rows), 1}
                                                               : Shape{std::ssize(rows)};
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
  TableFile file_;
  const std::string& name_;
  const CsvOptions& options_;
  std::vector<Reading> how_;
  std::vector<DateOrder> orders_;
  bool header_ = false, told_by_label_ = false;
  ColumnNames names_;
  std::size_t label_ = kNone, group_ = kNone;
  LabelRule rule_;
  std::vector<std::size_t> inputs_;  // the file's column of each TableColumn
  std::vector<std::size_t> categories_;
  std::vector<RawColumn> raw_;
  std::vector<std::int64_t> lines_;  // line of the file at which each row begins
  std::int64_t rows_ = 0;
  Notes notes_;
};

}  // namespace

ReadTable read_table(std::string bytes, const std::string& name, const CsvOptions& options,
                     bool divided) {
  const std::string text = io::to_utf8(std::move(bytes), options.rows.encoding, name,
                                       options.columns ? options.columns->encoding : "");
  ReadTable table = CsvTable(text, name, options).read(divided);
  if (options.strict) refuse_notes(table.all.notes);
  return table;
}

}  // namespace tenon::data
