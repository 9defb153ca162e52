// Categories and normal forms from utf8proc's tables.
#include "data/tokens/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::data {
namespace {

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

constexpr char32_t kFirstMark = 0x300;

bool is_ascii(char32_t c) { return c < 0x80; }
bool is_ascii_letter(char32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

struct Range {
  char32_t first, last;
};

template <std::size_t N>
bool within(const Range (&ranges)[N], char32_t c) {
  for (const Range& range : ranges)
    if (c >= range.first && c <= range.last) return true;
  return false;
}

// Decomposes each character separately.
std::vector<utf8proc_int32_t> decomposed(std::u32string_view text, utf8proc_option_t options) {
  constexpr int kMost = 18;  // for U+FDFA, the longest decomposition
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    if (is_ascii(c)) {
      out.push_back(static_cast<utf8proc_int32_t>(c));
      continue;
    }
    utf8proc_int32_t parts[kMost];
    int boundary = 0;
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, kMost, options, &boundary);
    if (count < 0 || count > kMost)
      throw InternalError(cat("utf8proc: ", count < 0
                                                ? utf8proc_errmsg(count)
                                                : "a character whose decomposition is too long"));
    out.insert(out.end(), parts, parts + count);
  }
  return out;
}

// Each run of marks by their combining classes; those of one class stay in their order. utf8proc's
// own exchange of neighbours takes the square of a run's length.
void put_marks_in_order(std::vector<utf8proc_int32_t>& text) {
  using Mark = std::pair<int, utf8proc_int32_t>;
  std::vector<Mark> run;
  const auto combining_class = [](utf8proc_int32_t c) {
    return c < static_cast<utf8proc_int32_t>(kFirstMark)
               ? 0
               : int{utf8proc_get_property(c)->combining_class};
  };
  for (std::size_t from = 0; from < text.size();) {
    std::size_t end = from;
    run.clear();
    for (int of_next = 0; end < text.size() && (of_next = combining_class(text[end])) != 0; ++end)
      run.emplace_back(of_next, text[end]);
    if (run.size() > 1) {
      std::stable_sort(run.begin(), run.end(),
                       [](const Mark& a, const Mark& b) { return a.first < b.first; });
      std::transform(run.begin(), run.end(), text.begin() + static_cast<std::ptrdiff_t>(from),
                     [](const Mark& mark) { return mark.second; });
    }
    from = end + 1;
  }
}

}  // namespace

std::u32string code_points(std::string_view text) {
  std::u32string out;
  append_code_points(out, text);
  return out;
}

void append_code_points(std::u32string& out, std::string_view text, std::uint64_t first) {
  out.reserve(out.size() + text.size());
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t k = 0; k < text.size();) {
    if (is_ascii(at[k])) {
      out.push_back(at[k++]);
      continue;
    }
    utf8proc_int32_t c = 0;
    const auto count = utf8proc_iterate(at + k, static_cast<utf8proc_ssize_t>(text.size() - k), &c);
    if (count <= 0) throw FormatError(cat("the text is not UTF-8 at byte ", first + k));
    out.push_back(static_cast<char32_t>(c));
    k += static_cast<std::size_t>(count);
  }
}

std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > back ? back : 0;
  }
  return 0;
}

std::size_t encode_utf8(char32_t c, char* bytes) {
  if (is_ascii(c)) {
    *bytes = static_cast<char>(c);
    return 1;
  }
  return static_cast<std::size_t>(utf8proc_encode_char(static_cast<utf8proc_int32_t>(c),
                                                       reinterpret_cast<utf8proc_uint8_t*>(bytes)));
}

void append_utf8(std::string& out, char32_t c) {
  char bytes[4];
  out.append(bytes, encode_utf8(c, bytes));
}

std::string utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

bool is_letter(char32_t c) {
  if (is_ascii(c)) return is_ascii_letter(c);
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
bool is_number(char32_t c) {
  if (is_ascii(c)) return is_digit(c);
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}
bool is_white_space(char32_t c) {
  if (is_ascii(c)) return c == ' ' || (c >= '\t' && c <= '\r');
  static constexpr Range spaces[] = {{0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
                                     {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                                     {0x205f, 0x205f}, {0x3000, 0x3000}};
  return within(spaces, c);
}
bool is_punctuation(char32_t c) {
  if (is_ascii(c)) return c > ' ' && c < 0x7f && !is_ascii_letter(c) && !is_digit(c);
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}
bool is_control_character(char32_t c) {
  if (is_ascii(c)) return (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
  const auto category = category_of(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS;
}
bool is_nonspacing_mark(char32_t c) {
  return c >= kFirstMark && category_of(c) == UTF8PROC_CATEGORY_MN;
}
bool is_mark(char32_t c) {
  if (c < kFirstMark) return false;
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}
bool is_word_character(char32_t c) {
  if (is_ascii(c)) return is_ascii_letter(c) || is_digit(c) || c == '_';
  // Joiners, and letters in circles and squares.
  static constexpr Range others[] = {{0x200c, 0x200d},
                                     {0x24b6, 0x24e9},
                                     {0x1f130, 0x1f149},
                                     {0x1f150, 0x1f169},
                                     {0x1f170, 0x1f189}};
  const auto category = category_of(c);
  return is_letter(c) || is_mark(c) || category == UTF8PROC_CATEGORY_ND ||
         category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_PC || within(others, c);
}
bool is_chinese(char32_t c) {
  if (c < 0x3400) return false;
  static constexpr Range ideographs[] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                         {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
                                         {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  return within(ideographs, c);
}

void append_lower(std::u32string& out, char32_t c) {
  if (is_ascii(c)) return out.push_back(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  out.push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  constexpr char32_t capital_i_with_dot = 0x130, dot_above = 0x307;
  if (c == capital_i_with_dot)
    out.push_back(dot_above);  // the only character whose lower case has two code points
}

std::u32string normal_form(std::u32string_view text, NormalForm form) {
  const bool composed = form == NormalForm::C || form == NormalForm::KC,
             compatible = form == NormalForm::KC || form == NormalForm::KD;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
      (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> out = decomposed(text, options);
  put_marks_in_order(out);
  const auto count =
      utf8proc_normalize_utf32(out.data(), static_cast<utf8proc_ssize_t>(out.size()), options);
  if (count < 0) throw InternalError(cat("utf8proc: ", utf8proc_errmsg(count)));
  return {out.begin(), out.begin() + count};
}

bool never_combines(char32_t c) {
  // Letters, digits and punctuation of the most common scripts, without marks, vowel signs and
  // composed characters.
  static constexpr Range apart[] = {
      {0x20, 0x7e},     {0xa1, 0xac},     {0xae, 0x2ff},    {0x391, 0x3a1},   {0x3a3, 0x3c9},
      {0x400, 0x482},   {0x48a, 0x52f},   {0x5d0, 0x5ea},   {0x621, 0x63a},   {0x641, 0x64a},
      {0x904, 0x939},   {0xe01, 0xe30},   {0x2010, 0x2027}, {0x3001, 0x3029}, {0x3041, 0x3096},
      {0x30a1, 0x30fa}, {0xac00, 0xd7a3}, {0xff01, 0xff60}};
  return c == '\t' || c == '\n' || c == '\r' || within(apart, c) || is_chinese(c);
}

}  // namespace tenon::data
