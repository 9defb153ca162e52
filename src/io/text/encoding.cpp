// Detects the encoding of a text (byte order mark, then UTF-8, then a fallback) and converts it to
// UTF-8 in one pass. UTF-8 without a byte order mark is returned without a copy.
#include "io/text/encoding.h"

#include <algorithm>
#include <cstdint>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/lfs.h"

namespace tenon::io {
namespace {

constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf", kLittleMark = "\xff\xfe",
                           kBigMark = "\xfe\xff";
constexpr std::size_t kFine = std::string_view::npos;

unsigned unsigned_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// Length in bytes of the UTF-8 character at `at`; 0 if it is invalid. Overlong forms, surrogates
// and code points above U+10FFFF are invalid.
std::size_t utf8_length(std::string_view text, std::size_t at) noexcept {
  const unsigned first = unsigned_at(text, at);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || first > 0xf4 || text.size() - at < length) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((unsigned_at(text, at + k) & 0xc0) != 0x80) return 0;
  const unsigned second = unsigned_at(text, at + 1);
  const bool odd = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return odd ? 0 : length;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  if (code < 0x10000) {
    put(0xe0 | code >> 12);
  } else {
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f));
  }
  put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
}

// Code points of the bytes 0x80 to 0x9f in Windows-1252; 0: undefined.
constexpr std::uint16_t kWindows[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

[[noreturn]] void refuse_line(const std::string& name, std::int64_t line, const std::string& what) {
  throw make_error<FormatError>(FileName{name}, ": line ", LineNumber{line}, " ", what);
}

std::int64_t line_of(std::string_view text, std::size_t at) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

std::string from_single_bytes(std::string_view bytes, bool windows, const std::string& name) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 8);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const unsigned byte = unsigned_at(bytes, at);
    const bool other = windows && byte >= 0x80 && byte < 0xa0;
    if (other && kWindows[byte - 0x80] == 0)
      refuse_line(name, line_of(bytes, at),
                  cat("has byte ", byte, ", which cp1252 does not define"));
    append_utf8(out, other ? kWindows[byte - 0x80] : byte);
  }
  return out;
}

// Guesses the byte order of text without a mark: in spaces, digits, separators and line ends the
// high byte is 0.
bool is_big_endian(std::string_view bytes) {
  constexpr std::size_t kHead = 1u << 16;
  std::size_t first = 0, second = 0;
  for (std::size_t at = 0; at + 1 < std::min(bytes.size(), kHead); at += 2) {
    first += bytes[at] == 0;
    second += bytes[at + 1] == 0;
  }
  return first > second;
}

// `order` is "", "le" or "be"; a byte order mark overrides it.
std::string from_utf16(std::string_view bytes, const std::string& name,
                       std::string_view order = {}) {
  const bool little_mark = bytes.starts_with(kLittleMark), big_mark = bytes.starts_with(kBigMark);
  const bool big =
      big_mark || (!little_mark && (order.empty() ? is_big_endian(bytes) : order == "be"));
  if (big_mark || little_mark) bytes.remove_prefix(2);
  std::string out;
  out.reserve(bytes.size());
  std::int64_t line = 1;
  if (bytes.size() % 2 != 0)
    throw make_error<FormatError>(FileName{name},
                                  ": is not UTF-16: the file ends within a character");
  const auto unit = [&](std::size_t at) {
    return static_cast<std::uint32_t>(big ? unsigned_at(bytes, at) << 8 | unsigned_at(bytes, at + 1)
                                          : unsigned_at(bytes, at + 1) << 8 |
                                                unsigned_at(bytes, at));
  };
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    std::uint32_t code = unit(at);
    if (code >= 0xd800 && code < 0xe000) {
      const std::uint32_t low = at + 2 < bytes.size() ? unit(at + 2) : 0;
      if (code >= 0xdc00 || low < 0xdc00 || low >= 0xe000)
        refuse_line(name, line, "is not UTF-16: half of a surrogate pair is missing");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      at += 2;
    }
    line += code == '\n';
    append_utf8(out, code);
  }
  return out;
}

std::string from_utf8(std::string bytes, const std::string& name) {
  if (const std::size_t bad = not_utf8(bytes); bad != kFine)
    refuse_line(name, line_of(bytes, bad),
                cat("is not UTF-8 (byte ", unsigned_at(bytes, bad),
                    "): set the file's encoding: encoding=cp1252 (Windows), latin1 or utf-16"));
  if (const std::size_t nul = bytes.find('\0'); nul != kFine)
    refuse_line(name, line_of(bytes, nul),
                "has a zero byte, so it is not text; if it is UTF-16 without a byte order mark, "
                "set encoding=utf-16");
  if (bytes.starts_with(kUtf8Mark)) bytes.erase(0, kUtf8Mark.size());
  return bytes;
}

}  // namespace

std::size_t not_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return kFine;
}

std::string_view without_mark(std::string_view text) noexcept {
  if (text.starts_with(kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
  return text;
}

std::string to_utf8(std::string bytes, const std::string& encoding, const std::string& name,
                    const std::string& fallback) {
  refuse_lfs_pointer(bytes, name);
  const bool marked = bytes.starts_with(kLittleMark) || bytes.starts_with(kBigMark);
  if (encoding == "utf-16" || (encoding.empty() && marked)) return from_utf16(bytes, name);
  if (encoding == "utf-16-le" || encoding == "utf-16-be")
    return from_utf16(bytes, name, std::string_view(encoding).substr(7));
  if (encoding == "latin1" || encoding == "cp1252")
    return from_single_bytes(bytes, encoding == "cp1252", name);
  if (!encoding.empty() && encoding != "utf-8")
    throw make_error<ValueError>(
        FileName{name}, ": encoding '", encoding,
        "' is unknown: use utf-8, latin1, cp1252, utf-16, utf-16-le or utf-16-be");
  if (encoding.empty() && !fallback.empty() && not_utf8(bytes) != kFine)
    return to_utf8(std::move(bytes), fallback, name);
  return from_utf8(std::move(bytes), name);
}

std::string read_text(const std::string& file, const std::string& encoding,
                      const std::string& fallback) {
  return to_utf8(read_file(file), encoding, file, fallback);
}

std::string as_text(std::string bytes, const std::string& name) {
  refuse_lfs_pointer(bytes, name);
  if (bytes.starts_with(kLittleMark) || bytes.starts_with(kBigMark)) return from_utf16(bytes, name);
  if (bytes.starts_with(kUtf8Mark)) bytes.erase(0, kUtf8Mark.size());
  return bytes;
}

}  // namespace tenon::io
