// The format of a file of rows, for its reader and for the detection of its layout.
#pragma once

namespace tenon::io {

/// Format of the rows of a file.
struct CsvFormat {
  char separator = 0;  ///< ' ': runs of spaces and tabs; 0: detected from the first rows
  /// Rows that begin with this character are skipped. 0: skips rows that begin with '#' if their
  /// number of fields differs from that of the first row without a '#'.
  char comment = 0;
  bool comments = true;  ///< false: no row is skipped
  bool quotes = true;    ///< false: quotes are ordinary characters
  char decimal = '.';    ///< decimal point of numbers; never detected as the separator
};

}  // namespace tenon::io
