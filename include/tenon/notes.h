// Notes: what a reader of files skipped, renamed, converted or assumed.
//
// A reader that continues although a file is not exactly as expected adds a note; it never
// continues silently. The command prints each note as one line with its count. With
// SourceOptions::strict
// (--strict) the first note is an error instead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/export.h>

namespace tenon {

/// One kind of deviation in what was read.
struct Note {
  std::string text{};      ///< "12 lines that begin with '#' were skipped", without a position
  std::int64_t count = 0;  ///< number of occurrences; 1 for a decision about the whole file
  std::string first{};     ///< first occurrence: "rows.csv, line 17"; "" for a whole file
  /// True: the note only reports what was found; nothing was lost or assumed. refuse_notes()
  /// ignores it.
  bool information = false;
  /// The name by which a user may accept the note although notes are errors (Settings::allow):
  /// "seen"; "": there is none.
  std::string name{};
};

/// Notes in the order in which they first occurred.
using Notes = std::vector<Note>;

/// A note as one line for people: "photos.csv, line 17: 12 lines that begin with '#' were skipped".
TENON_API std::string to_string(const Note& note);

/// Throws FormatError with the first note and the number of the others. Returns if there are no
/// notes but information.
TENON_API void refuse_notes(const Notes& notes);

}  // namespace tenon
