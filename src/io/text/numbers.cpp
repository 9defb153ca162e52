// Parses numbers of tables. Plain numbers go to from_chars() directly. Others (decimal commas,
// thousands separators, percent) are first rewritten to C syntax in a buffer on the stack.
#include "io/text/numbers.h"

#include <charconv>
#include <cmath>
#include <cstddef>

#include "base/digit.h"

namespace tenon::io {
namespace {

constexpr std::size_t kMostSigns = 400;  // length of a rewritten number

std::string_view trim(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

NumberKind from_plain(std::string_view text, double& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || text.empty()) return NumberKind::None;
  if (error == std::errc::result_out_of_range) {
    if (text.starts_with('-')) text.remove_prefix(1);
    const bool small = text.find("e-") != std::string_view::npos ||
                       text.find("E-") != std::string_view::npos || text.starts_with('.') ||
                       text.starts_with("0.");
    value = 0;
    return small ? NumberKind::Number : NumberKind::TooLarge;
  }
  if (error != std::errc() || std::isnan(value)) return NumberKind::None;
  return std::isinf(value) ? NumberKind::TooLarge : NumberKind::Number;
}

// Rewrites one number to C syntax.
class Rewriter {
 public:
  Rewriter(std::string_view text, const NumberFormat& format) : rest_(text), format_(format) {}

  NumberKind run(double& value, unsigned& signs) {
    sign();
    whole_part();
    if (take(format_.decimal)) put('.'), digits();
    exponent();
    skip_spaces();
    const bool percent = take('%');
    if (percent) signs_ |= kPercentSign;
    skip_spaces();
    if (!rest_.empty() || digits_ == 0 || size_ >= kMostSigns) return NumberKind::None;
    const NumberKind kind = from_plain({buffer_, size_}, value);
    if (kind == NumberKind::Number && percent) value /= 100;
    signs |= signs_;
    return kind;
  }

 private:
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view text) {
    if (rest_.empty() || rest_.front() != text.front() || !rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void put(char c) {
    if (size_ < kMostSigns) buffer_[size_++] = c;
  }
  bool take_odd_space() {
    if (!take("\xc2\xa0") && !take("\xe2\x80\x89") && !take("\xe2\x80\xaf")) return false;
    signs_ |= kNoBreakSpace;
    return true;
  }
  void skip_spaces() {
    while (take(' ') || take('\t') || take_odd_space()) {
    }
  }
  void sign() {
    skip_spaces();
    if (take('-')) {
      put('-');
    } else if (take("\xe2\x88\x92")) {
      put('-');
      signs_ |= kMinusSign;
    } else {
      take('+');
    }
    skip_spaces();
  }
  int digits() {
    int count = 0;
    for (; !rest_.empty() && is_digit(rest_.front()); ++count) {
      put(rest_.front());
      rest_.remove_prefix(1);
    }
    digits_ += count;
    return count;
  }
  bool take_separator() {
    const std::string_view before = rest_;
    const unsigned signs = signs_;
    if ((format_.thousands != 0 && take(format_.thousands)) || take_odd_space()) {
      if (!rest_.empty() && is_digit(rest_.front())) return true;
      rest_ = before;  // a space after the number is not a separator
      signs_ = signs;
    }
    return false;
  }
  // Digits with separators: the last group has three digits, those before two or three (India), the
  // first one to three.
  void whole_part() {
    int group = digits(), groups = 1;
    bool fits = group >= 1 && group <= 3;
    while (take_separator()) {
      if (groups > 1) fits = fits && (group == 2 || group == 3);
      group = digits();
      ++groups;
    }
    if (groups > 1 && !(fits && group == 3)) digits_ = 0, rest_ = "?";
  }
  void exponent() {
    if (rest_.empty() || digits_ == 0) return;
    const char letter = rest_.front();
    const bool fortran = letter == 'd' || letter == 'D';
    if (!fortran && letter != 'e' && letter != 'E') return;
    rest_.remove_prefix(1);
    put('e');
    if (take('-') || take("\xe2\x88\x92"))
      put('-');
    else
      take('+');
    if (digits() == 0) rest_ = "?";
    if (fortran) signs_ |= kFortranExponent;
  }

  std::string_view rest_;
  const NumberFormat& format_;
  char buffer_[kMostSigns];
  std::size_t size_ = 0;
  int digits_ = 0;
  unsigned signs_ = 0;
};

}  // namespace

NumberKind read_number(std::string_view field, const NumberFormat& format, double& value,
                       unsigned& signs) noexcept {
  field = trim(field);
  if (field.empty()) return NumberKind::None;
  if (format.decimal == '.' || field.find('.') == std::string_view::npos)
    if (const NumberKind kind = from_plain(field, value); kind != NumberKind::None) return kind;
  // The first character excludes most words.
  const char first = field.front();
  const bool may_be = is_digit(first) || first == '-' || first == '+' || first == format.decimal ||
                      first == '\xc2' || first == '\xe2';
  return may_be ? Rewriter(field, format).run(value, signs) : NumberKind::None;
}

bool parse_number(std::string_view field, double& value) noexcept {
  return from_plain(trim(field), value) == NumberKind::Number;
}

}  // namespace tenon::io
