// Reading of one table: the class that csv_table.cpp, csv_columns.cpp (roles of columns) and
// csv_notes.cpp (errors and notes) implement.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/str.h"
#include "data/tables/read_table.h"
#include "data/tables/table.h"
#include "data/tables/table_columns.h"
#include "data/tables/table_header.h"

namespace tenon::data {

/// A field as messages show it.
inline std::string in_quotes(std::string_view field) { return cat("'", field.substr(0, 60), "'"); }

/// A table from its text to tensors.
class CsvTable {
 public:
  CsvTable(std::string_view text, const std::string& name, const CsvOptions& options);

  ReadTable read(bool divided);

 private:
  Chosen every_row() const;

  // ---- Roles of columns

  std::string first_line() const { return cat(name_, ", line ", file_.first_line()); }
  ColumnTitle title(std::size_t column) const {
    return {names_.empty() ? std::string() : names_[column], column, is_named_category(column)};
  }
  bool is_named_category(std::size_t column) const {
    return std::find(categories_.begin(), categories_.end(), column) != categories_.end();
  }

  // Whether a column is given by name, not by number.
  static bool is_name(const std::string& column);
  bool options_name_columns() const;
  void find_header();
  bool has_known_names(const ColumnNames& names) const;
  std::size_t default_label() const;
  // The column of this name or number; throws if there is none.
  std::size_t find(const std::string& column) const;
  std::string no_column(const std::string& column) const;
  void find_label();
  void find_inputs();
  // Finds the model's input columns: by name, or by position if the model or the header has no
  // names. Only the parts of a date share a column.
  void find_known_inputs();
  void find_known_places();

  // ---- Reading

  void read_columns();
  // The number of missing fields in each row; empty if no field is missing.
  std::vector<std::int32_t> missing_of_rows() const;
  // Reads some columns again: as words if most fields are not numbers, as dates with the month
  // first if the fields show that order.
  void reread_columns();

  // ---- Refusals and notes

  void require_one_order(std::size_t column) const;
  [[noreturn]] void refuse_words(std::size_t column) const;
  [[noreturn]] void refuse(std::size_t column, const OddField& field,
                           const std::string& what) const;
  [[noreturn]] void refuse_number(std::size_t column, const char* more = "") const;
  [[noreturn]] void refuse_date(std::size_t column) const;
  void refuse_odd() const;
  // A label column's name that is also a label in the column is not a name.
  void refuse_header() const;
  void note_conversions(const Conversions& done);
  // Notes a first column that looks like the index of a data frame.
  void note_index();

  // ---- Labels

  const std::vector<std::string>& known_classes() const;
  // Notes rows without a label. An empty label is never a class; "NA" is one if the user declares
  // the column a category.
  void note_unlabelled(const Unlabelled& unlabelled);
  // Labels and inputs that differ only in spaces around them are one word.
  void note_spaces();
  void note_short_years();
  // A chronological split keeps the order of the rows, so rows that are not in the order of their
  // dates are noted. Of several date columns, the one closest to the row order is checked; others
  // may be dates of birth.
  void note_times(const Parts& parts);
  // The class of each row. Known class names come first, so that a test set numbers its classes
  // like the training set.
  std::vector<std::int64_t> number_classes(TensorDatasetParts& parts);

  // ---- Tensors

  std::shared_ptr<const TableColumns> fit(const std::vector<bool>& held_out,
                                          const std::vector<std::string>& class_names);
  UnknownWords unknown_words(std::size_t column, std::vector<std::int64_t>&& rows) const;
  Tensor input_tensor(const TableColumns& table, const std::vector<std::int64_t>& rows,
                      std::vector<UnknownWords>& unknown);
  Tensor images(const std::vector<float>& inputs, const std::vector<std::int64_t>& rows) const;
  Tensor target_tensor(const std::vector<std::int64_t>& classes,
                       const std::vector<std::int64_t>& rows) const;

  TableFile file_;
  const std::string& name_;
  const CsvOptions& options_;
  std::vector<Reading> how_;
  std::vector<DateOrder> orders_;
  bool header_ = false, header_found_by_label_ = false;
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

}  // namespace tenon::data
