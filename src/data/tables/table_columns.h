// Columns of a table as inputs of a network: an encoding that is fitted on the training part.
//
// A numeric column is one input; a missing value becomes the mean of the training part. A word
// column is one-hot encoded over the words of the training part; a missing or unknown word gives
// only zeros. A date column gives one TableColumn, and one input, for each component of its dates
// (data/tables/dates.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/data.h>

#include "data/tables/table.h"

namespace tenon::data {

/// Name of a column in messages, and whether the user declared it a category, which allows any
/// number of words.
struct ColumnTitle {
  std::string name{};
  std::size_t column = 0;
  bool category = false;
  /// "column 'town'", or "column 3 (counted from 0)" if it has no name.
  std::string text() const;
  /// Its name in options, or its number from 0.
  std::string option() const;
};

/// Fits one TableColumn to the training rows, or five for dates. Throws FormatError with file and
/// column if nearly every row has a word of its own.
std::vector<TableColumn> fit_column(const RawColumn& raw, const ColumnTitle& title, Reading how,
                                    const std::vector<bool>& held_out, const std::string& file,
                                    Notes& notes);

struct EncodedRows {
  std::int64_t width = 0;                          ///< inputs per row
  std::vector<float> inputs;                       ///< inputs of all rows, row by row
  std::vector<std::vector<std::int64_t>> unknown;  ///< of each column: rows with an unknown word
};

/// Encodes `raw[k]` according to columns[k].
EncodedRows encode_rows(const std::vector<TableColumn>& columns,
                        const std::vector<const RawColumn*>& raw,
                        const std::vector<std::int64_t>& rows);

/// Throws FormatError if the inputs take more than `most` bytes.
void require_memory(const std::vector<TableColumn>& columns, std::size_t rows, std::uint64_t most,
                    const std::string& file);

/// The option that would read a field that is not a plain number, for messages: "decimal=, reads
/// decimal commas".
std::string reading_hint(const std::string& field, const ColumnTitle& title,
                         const io::NumberFormat& format);

}  // namespace tenon::data
