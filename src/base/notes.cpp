// Formats notes as lines of text and as errors.
#include <tenon/notes.h>

#include <algorithm>
#include <iterator>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon {

std::string to_string(const Note& note) {
  return note.first.empty() ? note.text : cat(note.first, ": ", note.text);
}

void refuse_notes(const Notes& notes) {
  const auto refused = [](const Note& note) { return !note.information; };
  const auto first = std::find_if(notes.begin(), notes.end(), refused);
  if (first == notes.end()) return;
  std::string message = to_string(*first);
  const auto more = std::count_if(std::next(first), notes.end(), refused);
  if (more > 0) message += cat(" (and ", more, " more)");
  const std::string accept =
      first->name.empty() ? "" : cat("; to accept it, allow '", first->name, "'");
  throw FormatError(cat(message, ": refused because 'strict' is on", accept));
}

}  // namespace tenon
