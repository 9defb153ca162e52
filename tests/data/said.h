// Helpers to check errors and notes of readers.
#pragma once

#include <string>

#include <tenon/notes.h>

namespace said {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The note that contains these words, as a line; "" if there is none.
inline std::string note(const tenon::Notes& notes, const std::string& words) {
  for (const tenon::Note& one : notes)
    if (has(one.text, words)) return to_string(one);
  return "";
}

}  // namespace said
