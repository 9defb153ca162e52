// Fields of tables as texts: without the spaces around them, in lower case, and missing values.
#include "data/tables/fields.h"

namespace tenon::data {

std::string_view trimmed(std::string_view field) {
  constexpr std::string_view plain = " \t", odd[] = {"\xc2\xa0", "\xe2\x80\xaf"};
  for (bool more = true; more;) {
    more = false;
    const std::size_t first = field.find_first_not_of(plain);
    if (first == std::string_view::npos) return field.substr(0, 0);
    field = field.substr(first, field.find_last_not_of(plain) + 1 - first);
    for (const std::string_view space : odd) {
      if (field.starts_with(space)) field.remove_prefix(space.size()), more = true;
      if (field.ends_with(space)) field.remove_suffix(space.size()), more = true;
    }
  }
  return field;
}

bool is_missing(std::string_view field) {
  const std::string_view text = trimmed(field);
  if (text.size() > 6) return false;
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const char* known : {"", "?", "na", "n/a", "nan", "null", "none", "<na>", "#n/a"})
    if (small == known) return true;
  return false;
}

std::string folded(std::string_view text) {
  std::string out;
  for (char c : trimmed(text)) {
    if (c == '\t') c = ' ';
    if (c == ' ' && out.ends_with(' ')) continue;
    out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return out;
}

}  // namespace tenon::data
