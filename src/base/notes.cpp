// Notes as lines and as errors.
#include <tenon/notes.h>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon {

std::string to_string(const Note& note) {
  return note.first.empty() ? note.text : cat(note.first, ": ", note.text);
}

void refuse_notes(const Notes& notes) {
  if (notes.empty()) return;
  std::string message = to_string(notes.front());
  if (notes.size() > 1) message += cat(" (and ", notes.size() - 1, " more)");
  throw FormatError(message + ": refused, for 'strict' is on");
}

}  // namespace tenon
