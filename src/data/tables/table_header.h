// The first row of a table: whether it is a header, and the names of the columns.
//
// Lists of images and lines with a class use the same rules.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tenon/notes.h>

#include "data/tables/table.h"

namespace tenon::data {

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Whether a name is in the list, ignoring case.
bool is_one_of(std::string_view name, std::initializer_list<const char*> names);
/// Names of label columns in order of preference: "label", "class", "target", "y".
const std::vector<std::string>& label_names();
/// Whether a name is one of these or a similar one, ignoring case.
bool is_label_name(std::string_view name);
/// Names of path columns of lists, in order of preference: "filename", "path", "image" …
const std::vector<std::string>& path_names();
bool is_path_name(std::string_view name);
/// Names of text columns: "text", "sentence", "review" …
bool is_text_name(std::string_view name);

struct HeaderGuess {
  bool header = false;
  /// Detected by a common label name only: no label below may have that value.
  bool by_label_name = false;
  std::string assumed{};  ///< text for a note on the guess; "" if there is no doubt
};
/// Guesses whether the first row contains names. It does if, in some column, a word is above
/// numbers; if the label column has a usual label name, or another column is called label, class or
/// target; if all fields except the label's are words that do not occur again below; if a number is
/// above words, and no other number is above numbers and no word occurs again; or if the row counts
/// three or more columns: 0, 1, 2.
HeaderGuess guess_header(const TableFile& file, std::size_t label);

/// A column in messages: "column 'town'", or "column 3 (counted from 0)" if it has no name.
std::string column_text(std::string_view name, std::size_t column);

/// Columns by name.
class ColumnNames {
 public:
  ColumnNames() = default;
  /// Sets the header. As in pandas, repeated names become "name.1" and empty ones "Unnamed: 3"
  /// (counted from 0); both are noted, as is a '#' before the first name.
  ColumnNames(const std::vector<std::string>& row, const std::string& where, Notes& notes);
  bool empty() const { return names_.empty(); }
  const std::string& operator[](std::size_t column) const { return names_[column]; }
  bool unnamed(std::size_t column) const { return unnamed_[column]; }
  /// The column with that name, else the only one that differs in case or spaces only; kNone.
  /// Throws ValueError that begins with `where` if several match.
  std::size_t find(std::string_view name, const std::string& where) const;
  std::string near(std::string_view name) const;

 private:
  std::vector<std::string> names_;
  std::vector<bool> unnamed_;
  std::unordered_map<std::string, std::size_t> exact_;
  std::unordered_map<std::string, std::size_t> suffixes_;  // the next one to try, while reading
  std::unordered_map<std::string, std::vector<std::size_t>> folded_;
};

}  // namespace tenon::data
