// Errors of a table, with the line and the column, and notes about rows that are skipped, converted
// or assumed.
#include <algorithm>
#include <set>
#include <string>

#include <tenon/error.h>

#include "base/make_error.h"
#include "data/tables/csv_reading.h"

namespace tenon::data {

void CsvTable::require_one_order(std::size_t column) const {
  const RawColumn& raw = raw_[column];
  if (raw.odd.count > 0 || (raw.date_orders & kYearFirst) != 0) return;
  if (raw.date_orders == (kDayFirst | kMonthFirst))
    throw make_error<FormatError>(FileName{name_}, ": ", title(column).text(),
                                  " contains dates with ambiguous day and month: dayfirst=yes or "
                                  "dayfirst=no says which comes first");
}

void CsvTable::refuse_words(std::size_t column) const {
  const OddField& field = raw_[column].odd;
  throw make_error<FormatError>(FileName{name_}, ": line ", LineNumber{field.line}, ", ",
                                title(column).text(), ": ", in_quotes(field.text),
                                " is not a number, and ", field.count, " of ", rows_,
                                " fields of the column are like it: ",
                                reading_hint(field.text, title(column), file_.numbers()));
}

void CsvTable::refuse(std::size_t column, const OddField& field, const std::string& what) const {
  throw make_error<FormatError>(FileName{name_}, ": line ", LineNumber{field.line}, ", ",
                                title(column).text(), ": ", in_quotes(field.text), " ", what);
}

void CsvTable::refuse_number(std::size_t column, const char* more) const {
  const OddField &odd = raw_[column].odd, &large = raw_[column].too_large;
  if (large.count > 0 && large.line == odd.line)
    refuse(column, large, cat("is not a finite number of float32", more));
  const bool second_header = header_ && odd.count == 1 && odd.line == lines_[0];
  refuse(column, odd,
         cat("is not a finite number", more, "; ",
             second_header ? "where the line is a second header, leave one of the two out"
                           : reading_hint(odd.text, title(column), file_.numbers())));
}

void CsvTable::refuse_date(std::size_t column) const {
  const OddField& odd = raw_[column].odd;
  const std::string why = date_problem(odd.text, title(column).option());
  refuse(
      column, odd,
      why.empty() ? "is not a date, or has day and month in another order than other rows" : why);
}

void CsvTable::refuse_odd() const {
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

void CsvTable::refuse_header() const {
  if (!header_found_by_label_ || label_ == kNone || !options_.classes) return;
  const std::vector<std::string>& labels = raw_[label_].texts;
  if (std::find(labels.begin(), labels.end(), names_[label_]) != labels.end())
    throw make_error<FormatError>(
        FileName{name_}, ": line ", LineNumber{file_.first_line()}, ": ", in_quotes(names_[label_]),
        " may be the name of the label's column or a label as further down: "
        "header=yes or header=no says which");
}

void CsvTable::note_conversions(const Conversions& done) {
  const auto note = [&](const Conversions::Kind& kind, const char* one, const char* several,
                        const char* what) {
    if (kind.count > 0)
      notes_.push_back({cat(kind.count, kind.count == 1 ? one : several, what), kind.count,
                        cat(name_, ", line ", kind.line, ", ", title(kind.column).text())});
  };
  note(done.percent, " percentage is", " percentages are", " read as hundredths (12 % is 0.12)");
  note(done.minus, " number has", " numbers have", " a typographic minus sign (U+2212)");
  note(done.spaces, " number has", " numbers have", " no-break or thin spaces in or around it");
  note(done.exponents, " number has", " numbers have", " a Fortran exponent (1.5D+03)");
  note(done.rounded, " integer is", " integers are",
       " rounded, because float32 cannot represent the value");
}

void CsvTable::note_index() {
  if (!header_ || !names_.unnamed(0) ||
      std::find(inputs_.begin(), inputs_.end(), 0u) == inputs_.end() || how_[0] != Reading::Numbers)
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

void CsvTable::note_unlabelled(const Unlabelled& unlabelled) {
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
      {cat(rows.count, rows.count == 1 ? " row has" : " rows have", " no label (", forms, ")", left,
           word ? cat("; category=", title(label_).option(), " reads such words as classes") : ""),
       rows.count, cat(name_, ", line ", rows.line)});
}

void CsvTable::note_spaces() {
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
                    ", are read as the same word without spaces");
    note.first = cat(name_, ", line ", line);
    notes_.push_back(std::move(note));
  }
}

void CsvTable::note_short_years() {
  for (const std::size_t c : std::set<std::size_t>(inputs_.begin(), inputs_.end()))
    if (const OddField& years = raw_[c].short_years; years.count > 0)
      notes_.push_back({cat(title(c).text(), ": ", years.count,
                            years.count == 1 ? " date has a year" : " dates have years",
                            " of two digits: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to "
                            "2068"),
                        years.count, cat(name_, ", line ", years.line)});
}

void CsvTable::note_times(const Parts& parts) {
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

}  // namespace tenon::data
