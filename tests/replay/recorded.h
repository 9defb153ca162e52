// Recorded texts: a test compares what it computes with files of tests/replay, or writes them.
//
// TENON_REPLAY decides: "write" records (./dev replay); "write=FOLDER" writes whole texts into a
// folder, for a comparison of two versions of the sources (./dev replay FOLDER).
#pragma once

#include <doctest/doctest.h>

#include <tenon/io.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace tenon::test {

inline std::string replay_mode() {
  const char* mode = std::getenv("TENON_REPLAY");
  return mode == nullptr ? "" : mode;
}

inline bool records() { return replay_mode() == "write"; }

/// The folder for whole texts; empty: none are written.
inline std::string whole_texts_folder() {
  const std::string mode = replay_mode(), prefix = "write=";
  return mode.rfind(prefix, 0) == 0 ? mode.substr(prefix.size()) : "";
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The lines that only one of the texts has, as a diff shows them, at most 12; empty if the texts
/// are equal.
inline std::string difference(const std::string& before, const std::string& after) {
  constexpr std::size_t kMost = 12;
  const auto a = lines_of(before), b = lines_of(after);
  const auto is_in = [](const std::vector<std::string>& lines, const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  std::vector<std::string> found;
  for (const std::string& line : a)
    if (!is_in(b, line)) found.push_back("\n- " + line);
  for (const std::string& line : b)
    if (!is_in(a, line)) found.push_back("\n+ " + line);
  if (found.empty() && before != after) found.push_back("\nthe same lines in another order");
  std::string text;
  for (std::size_t k = 0; k < std::min(found.size(), kMost); ++k) text += found[k];
  if (found.size() > kMost) text += "\n… " + std::to_string(found.size() - kMost) + " more lines";
  return text;
}

/// Compares the text with the recorded one of this path, or records it.
inline void check_recorded(const std::string& path, const std::string& text) {
  if (records()) {
    io::write_file(path, text);
    return;
  }
  const bool exists = std::filesystem::exists(path);
  CHECK_MESSAGE(exists, path << " is missing: ./dev replay records it");
  if (!exists) return;
  const std::string changed = difference(io::read_file(path), text);
  CHECK_MESSAGE(changed.empty(),
                path << " differs; ./dev replay records the new plans:" << changed);
}

}  // namespace tenon::test
