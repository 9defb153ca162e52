// Detects the layout of a file from its first rows: the separator and the number of fields.
#pragma once

#include <cstddef>
#include <string_view>

#include "io/csv.h"

namespace tenon::io {

inline bool is_csv_space(char c) noexcept { return c == ' ' || c == '\t'; }

/// The separator of a first line "sep=;", as spreadsheets write it; 0 where there is none.
char separator_line(std::string_view text) noexcept;

struct CsvLayout {
  char separator = ',';
  std::size_t fields = 0;  ///< of the first row that does not begin with '#'; 0: there is none
};

/// Looks at no more than the first rows. What `format` says already stays.
CsvLayout csv_layout(std::string_view text, const CsvFormat& format);

/// Fields of a row without its end; ' ' divides as runs of spaces and tabs do.
std::size_t fields_in(std::string_view row, char separator, bool quotes);

}  // namespace tenon::io
