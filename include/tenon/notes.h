// What a reader of files skipped, renamed, converted or assumed.
//
// A reader that goes on where the file is not exactly what it expects adds a note; it never does so
// in silence. The command prints each note as one line with its count; with SourceOptions::strict
// (--strict) the first note is an error instead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/export.h>

namespace tenon {

/// One kind of thing that was done to what was read.
struct Note {
  std::string text{};      ///< "12 lines that begin with '#' were skipped", without a place
  std::int64_t count = 0;  ///< how often it was done; 1 for a decision about the whole file
  std::string first{};     ///< where it was done first: "rows.csv, line 17"; "" for a whole file
  /// Tells what a reader found where nothing was lost or assumed: refuse_notes() lets it pass.
  bool information = false;
};

/// Notes in the order in which they first occurred.
using Notes = std::vector<Note>;

/// "photos.csv, line 17: 12 lines that begin with '#' were skipped": a note as one line for people.
TENON_API std::string to_string(const Note& note);

/// Throws FormatError with the first note and the number of the others; returns where there are
/// none but information.
TENON_API void refuse_notes(const Notes& notes);

}  // namespace tenon
