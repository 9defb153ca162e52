// Sizes as text, and the search for the nearest name behind "did you mean …?".
#include "base/str.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tenon {
namespace {

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
// Ignores case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_back(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  const auto alike = [&](std::size_t i, std::size_t j) {
    return small_letter(a[i]) == small_letter(b[j]);
  };
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = previous[j - 1] + (alike(i - 1, j - 1) ? 0 : 1);
      row[j] = std::min({substitution, previous[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && alike(i - 1, j - 2) && alike(i - 2, j - 1))
        row[j] = std::min(row[j], two_back[j - 2] + 1);
    }
    two_back.swap(previous);
    previous.swap(row);
  }
  return previous[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::string* candidates, int count) {
  // the distance takes time proportional to the product of both lengths
  constexpr std::size_t kLongest = 256;
  if (word.size() > kLongest) return "";
  // At most a third of the letters may be wrong; beyond that a suggestion misleads more than it
  // helps.
  std::size_t best = std::max<std::size_t>(word.size() / 3, 1) + 1;
  std::string found;
  for (int i = 0; i < count; ++i) {
    if (candidates[i].size() > kLongest) continue;
    const std::size_t distance = edit_distance(word, candidates[i]);
    if (distance < best) {
      best = distance;
      found = candidates[i];
    }
  }
  return found;
}

bool is_identifier(std::string_view text) {
  const auto is_letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

std::string size_text(std::int64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  // Two decimals at most, none for bytes.
  const auto hundredths = static_cast<std::int64_t>(std::llround(value * 100));
  std::string text = cat(hundredths / 100);
  if (unit > 0 && hundredths % 100 != 0) {
    text += cat(".", hundredths / 10 % 10);
    if (hundredths % 10 != 0) text += cat(hundredths % 10);
  }
  return cat(text, " ", units[unit]);
}

}  // namespace tenon
