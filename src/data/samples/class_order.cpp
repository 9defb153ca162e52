// The plain order is by bytes, like Python's sorted() of UTF-8 strings.
#include "data/samples/class_order.h"

#include <algorithm>
#include <string_view>

#include "base/digit.h"

namespace tenon::data {
namespace {

// Removes the digits at the start of `text` and returns them without leading zeros.
std::string_view take_number(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

bool natural_less(const std::string& a, const std::string& b) {
  std::string_view x = a, y = b;
  while (!x.empty() && !y.empty()) {
    if (is_digit(x.front()) && is_digit(y.front())) {
      const std::string_view m = take_number(x), n = take_number(y);
      if (m != n) return m.size() != n.size() ? m.size() < n.size() : m < n;
    } else if (x.front() != y.front()) {
      return static_cast<unsigned char>(x.front()) < static_cast<unsigned char>(y.front());
    } else {
      x.remove_prefix(1), y.remove_prefix(1);
    }
  }
  if (x.empty() != y.empty()) return x.empty();
  return a < b;  // "01" and "1"
}

std::vector<std::string> ordered_classes(std::vector<std::string> names, ClassOrder order,
                                         bool from_folders) {
  const auto is_number = [](const std::string& name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), is_digit);
  };
  // Labels that are all numbers are ordered by value: 2 before 10.
  const bool natural =
      order == ClassOrder::Natural || (order == ClassOrder::Usual && !from_folders &&
                                       std::all_of(names.begin(), names.end(), is_number));
  std::sort(names.begin(), names.end());
  if (natural) std::sort(names.begin(), names.end(), natural_less);
  return names;
}

}  // namespace tenon::data
