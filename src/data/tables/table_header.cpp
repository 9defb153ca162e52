// Detects and names a header. The content of columns is read elsewhere.
#include "data/tables/table_header.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include <tenon/error.h>

#include "base/digit.h"
#include "base/make_error.h"
#include "base/str.h"

namespace tenon::data {
namespace {

// Whether no row below that was read has a field in this column that passes the test.
template <class Test>
bool none_below(const TableFile& file, std::size_t column, Test test) {
  return std::none_of(file.next_rows().begin(), file.next_rows().end(), [&](const auto& row) {
    return column < row.size() && test(std::string_view(row[column]));
  });
}

bool above_numbers(const TableFile& file, std::size_t column) {
  bool any = false;
  for (const auto& row : file.next_rows()) {
    if (column >= row.size() || is_missing(row[column])) continue;
    if (!file.is_number(row[column])) return any;
    any = true;
  }
  return any;
}

bool above_words(const TableFile& file, std::size_t column) {
  bool any = false;
  for (const auto& row : file.next_rows()) {
    if (column >= row.size() || is_missing(row[column])) continue;
    if (file.is_number(row[column])) return false;
    any = true;
  }
  return any;
}

bool comes_again(const TableFile& file, std::size_t column) {
  const std::string_view field = trimmed(file.first_row()[column]);
  return !none_below(file, column, [&](auto below) { return trimmed(below) == field; });
}

// Whether the row is 0, 1, 2 …, the names that pandas gives to unnamed columns; an empty name for
// the index may come first.
bool counts_columns(const std::vector<std::string>& row) {
  const std::size_t from = trimmed(row[0]).empty() ? 1 : 0;
  for (std::size_t c = from; c < row.size(); ++c)
    if (trimmed(row[c]) != std::to_string(c - from)) return false;
  return row.size() >= from + 2;
}

// Whether all fields are distinct integers or words, as column names are; some may be empty.
bool may_be_names(const TableFile& file) {
  std::set<std::string_view> seen;
  return std::all_of(file.first_row().begin(), file.first_row().end(), [&](const auto& field) {
    const std::string_view name = trimmed(field);
    const bool whole = std::all_of(name.begin(), name.end(), [](char c) { return is_digit(c); });
    return (whole || !file.is_number(name)) && (name.empty() || seen.insert(name).second);
  });
}

// Facts about the fields of the first row, without the label.
struct FirstRow {
  std::size_t words = 0, numbers = 0;
  bool above_number = false, above_word = false, comes_again = false;
};

FirstRow look_at(const TableFile& file, std::size_t label) {
  FirstRow out;
  for (std::size_t c = 0; c < file.columns(); ++c) {
    if (c == label) continue;
    const std::string_view field = trimmed(file.first_row()[c]);
    if (file.is_number(field)) {
      ++out.numbers;
      out.above_word = out.above_word || above_words(file, c);
      continue;
    }
    ++out.words;
    if (is_missing(field)) continue;
    out.above_number = out.above_number || above_numbers(file, c);
    out.comes_again = out.comes_again || comes_again(file, c);
  }
  return out;
}

// Guesses for a first row with numbers in which no word is above a number.
HeaderGuess guess_numbers(const TableFile& file, const FirstRow& first, std::size_t label) {
  const std::vector<std::string>& row = file.first_row();
  const bool counts = counts_columns(row);
  const bool label_above_word =
      label != kNone && file.is_number(trimmed(row[label])) && above_words(file, label);
  const bool again = first.comes_again || (label != kNone && comes_again(file, label));
  const bool above_word = (first.above_word || label_above_word) && !again;
  if ((counts && row.size() > 2) || (above_word && may_be_names(file)))
    return {true, false,
            cat("the first row ('", trimmed(row[0]).substr(0, 40),
                "' …) is read as a header, though it has numbers, because ",
                counts ? "it counts the columns" : "some of them are above words",
                " (header=no says otherwise)")};
  const bool word = first.words > 0 || (label != kNone && !file.is_number(trimmed(row[label])));
  const bool new_words = word && !again && !file.next_rows().empty();
  if (!counts && !above_word && !new_words) return {};
  return {false, false,
          cat("the first row ('", trimmed(row[0]).substr(0, 40), "' …) is read as a row, though ",
              counts       ? "it counts the columns"
              : above_word ? "a number of it is above words"
                           : "none of its words occurs again",
              " (header=yes says otherwise)")};
}

}  // namespace

bool is_one_of(std::string_view name, std::initializer_list<const char*> names) {
  const std::string word = folded(name);
  return std::any_of(names.begin(), names.end(), [&](const char* known) { return word == known; });
}

const std::vector<std::string>& label_names() {
  static const std::vector<std::string> kNames{"label", "class", "target", "y"};
  return kNames;
}
bool is_label_name(std::string_view name) {
  return is_one_of(name, {"label", "class", "target", "y", "labels", "classes", "targets",
                          "category", "sentiment", "species", "class_name", "label_name"});
}
const std::vector<std::string>& path_names() {
  static const std::vector<std::string> kNames{
      "filename",   "file_name",  "file name", "filepath",   "file_path",  "path",
      "image_path", "image path", "img_path",  "image_name", "video_path", "video_name",
      "file",       "image",      "images",    "img",        "picture",    "photo",
      "video",      "image_id",   "name",      "id"};
  return kNames;
}
bool is_path_name(std::string_view name) {
  return std::count(path_names().begin(), path_names().end(), folded(name)) > 0;
}
bool is_text_name(std::string_view name) {
  return is_one_of(name,
                   {"text",     "texts",     "sentence",  "sentence1",  "sentence2",  "review",
                    "content",  "message",   "comment",   "tweet",      "title",      "body",
                    "question", "question1", "question2", "premise",    "hypothesis", "text1",
                    "text2",    "text_a",    "text_b",    "description"});
}

std::string column_text(std::string_view name, std::size_t column) {
  return name.empty() ? cat("column ", column, " (counted from 0)")
                      : cat("column '", name.substr(0, 60), "'");
}

HeaderGuess guess_header(const TableFile& file, std::size_t label) {
  const FirstRow first = look_at(file, label);
  const auto numbered = [&](bool by_label_name) {
    return HeaderGuess{true, by_label_name,
                       first.numbers == 0 ? ""
                                          : cat("the first row is read as a header, though ",
                                                first.numbers, " of its ", file.columns(),
                                                " names are numbers (header=yes says so)")};
  };
  if (label != kNone) {
    const std::string_view name = trimmed(file.first_row()[label]);
    const bool number = file.is_number(name);
    if (!number && !is_missing(name) && above_numbers(file, label)) return numbered(false);
    if (is_label_name(name) &&
        none_below(file, label, [&](auto below) { return trimmed(below) == name; }))
      return numbered(true);
    // The label may be in another column.
    for (std::size_t c = 0; c < file.columns(); ++c)
      if (is_one_of(file.first_row()[c], {"label", "class", "target"}) && !comes_again(file, c))
        return numbered(true);
    if (number && !first.above_number) return guess_numbers(file, first, label);
  }
  if (first.above_number) return numbered(false);
  if (first.numbers > 0) return guess_numbers(file, first, label);
  if (first.words == 0 || first.comes_again) return {};
  const bool usual =
      std::any_of(file.first_row().begin(), file.first_row().end(), [](const std::string& name) {
        return is_label_name(name) || is_text_name(name) || is_path_name(name);
      });
  return {true, false,
          usual ? ""
                : cat("the first row ('", trimmed(file.first_row()[0]).substr(0, 40),
                      "' …) is read as a header, because none of its fields occurs again "
                      "(header=no says otherwise)")};
}

ColumnNames::ColumnNames(const std::vector<std::string>& row, const std::string& where,
                         Notes& notes) {
  unnamed_.resize(row.size());
  Note again{"", 0, where}, empty{"", 0, where};
  for (const std::string& field : row) exact_.emplace(trimmed(field), kNone);
  for (std::size_t c = 0; c < row.size(); ++c) {
    std::string name(trimmed(row[c]));
    if (c == 0 && name.size() > 1 && name[0] == '#') {
      name = trimmed(std::string_view(name).substr(1));
      notes.push_back(
          {cat("the first column is called '", name, "', without the '#' before it"), 1, where});
    }
    unnamed_[c] = name.empty();
    if (name.empty()) name = cat("Unnamed: ", c);
    if (unnamed_[c] && empty.count++ == 0)
      empty.text = cat(column_text("", c), " has no name and is called '", name, "'");
    const auto found = exact_.find(name);
    if (found != exact_.end() && found->second != kNone) {
      std::string free;
      // The search for a free suffix starts after the last suffix given to this name.
      for (std::size_t k = std::max<std::size_t>(1, suffixes_[name]);; ++k) {
        free = cat(name, ".", k);
        if (exact_.contains(free)) continue;
        suffixes_[name] = k + 1;
        break;
      }
      if (again.count++ == 0)
        again.text = cat("column ", c, " is called '", name, "' as column ", found->second,
                         " is (counted from 0), and becomes '", free, "'");
      name = free;
    }
    exact_[name] = c;
    folded_[folded(name)].push_back(c);
    names_.push_back(std::move(name));
  }
  suffixes_.clear();
  for (Note* note : {&empty, &again}) {
    if (note->count > 1) note->text += cat("; ", note->count - 1, " more like it");
    if (note->count > 0) notes.push_back(*note);
  }
}

std::size_t ColumnNames::find(std::string_view name, const std::string& where) const {
  const std::string wanted(trimmed(name));
  if (const auto found = exact_.find(wanted); found != exact_.end() && found->second != kNone)
    return found->second;
  const auto alike = folded_.find(folded(wanted));
  if (alike == folded_.end()) return kNone;
  if (alike->second.size() > 1)
    throw make_error<ValueError>(FileName{where}, ": '", wanted, "' may be the column '",
                                 names_[alike->second[0]], "' or '", names_[alike->second[1]],
                                 "', which differ only in case or spaces: write the name exactly");
  return alike->second[0];
}

std::string ColumnNames::near(std::string_view name) const {
  return nearest(folded(name), names_.data(), static_cast<int>(names_.size()));
}

}  // namespace tenon::data
