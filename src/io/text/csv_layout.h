// Detects the layout of a file from its first rows: the separator and the number of fields.
#pragma once

#include <cstddef>
#include <string_view>

#include "io/text/csv_format.h"

namespace tenon::io {

inline bool is_csv_space(char c) noexcept { return c == ' ' || c == '\t'; }

/// The separator declared by a first line "sep=;", as spreadsheets write it; 0 if there is none.
char separator_line(std::string_view text) noexcept;

struct CsvLayout {
  char separator = ',';
  std::size_t fields = 0;  ///< of the first row without a leading '#'; 0: no such row
};

/// Detects the layout from the first rows. Values that `format` sets are kept.
CsvLayout csv_layout(std::string_view text, const CsvFormat& format);

/// Number of fields of a row without its line end; ' ' means runs of spaces and tabs.
std::size_t fields_in(std::string_view row, char separator, bool quotes);

}  // namespace tenon::io
