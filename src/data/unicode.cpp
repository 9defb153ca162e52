// Categories and normal forms by utf8proc's tables.
#include "data/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::data {
namespace {

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

struct Range {
  char32_t first, last;
};

template <std::size_t N>
bool within(const Range (&ranges)[N], char32_t c) {
  for (const Range& range : ranges)
    if (c >= range.first && c <= range.last) return true;
  return false;
}

}  // namespace

std::u32string code_points(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t k = 0; k < text.size();) {
    utf8proc_int32_t c = 0;
    const auto count = utf8proc_iterate(at + k, static_cast<utf8proc_ssize_t>(text.size() - k), &c);
    if (count <= 0) throw FormatError(cat("the text is no UTF-8 at byte ", k));
    out.push_back(static_cast<char32_t>(c));
    k += static_cast<std::size_t>(count);
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
}

std::string utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

bool is_letter(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
bool is_number(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}
bool is_white_space(char32_t c) {
  static constexpr Range spaces[] = {
      {0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
      {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
  return within(spaces, c);
}
bool is_punctuation(char32_t c) {
  static constexpr Range ascii[] = {{0x21, 0x2f}, {0x3a, 0x40}, {0x5b, 0x60}, {0x7b, 0x7e}};
  const auto category = category_of(c);
  return within(ascii, c) || (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO);
}
bool is_control_sign(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const auto category = category_of(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS;
}
bool is_nonspacing_mark(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_MN; }
bool is_mark(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}
bool is_chinese(char32_t c) {
  static constexpr Range ideographs[] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                         {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
                                         {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  return within(ideographs, c);
}

void append_lower(std::u32string& out, char32_t c) {
  out.push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  constexpr char32_t capital_i_with_dot = 0x130, dot_above = 0x307;
  if (c == capital_i_with_dot) out.push_back(dot_above);  // the one that becomes two
}

std::u32string normal_form(std::u32string_view text, NormalForm form) {
  const std::string bytes = utf8(text);
  const bool composed = form == NormalForm::C || form == NormalForm::KC,
             compatible = form == NormalForm::KC || form == NormalForm::KD;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
      (compatible ? UTF8PROC_COMPAT : 0));
  utf8proc_uint8_t* made = nullptr;
  const auto count = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                                  static_cast<utf8proc_ssize_t>(bytes.size()), &made, options);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(made, std::free);
  if (count < 0) throw MemoryError(cat("utf8proc: ", utf8proc_errmsg(count)));
  return code_points({reinterpret_cast<const char*>(made), static_cast<std::size_t>(count)});
}

}  // namespace tenon::data
