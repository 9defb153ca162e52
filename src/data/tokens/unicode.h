// Unicode functions for tokenizers: code points, their categories and normal forms, from utf8proc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::data {

/// Code points of UTF-8. Throws FormatError, naming the byte, for invalid bytes.
std::u32string code_points(std::string_view text);
/// The same, appended; bytes are counted from `first`.
void append_code_points(std::u32string& out, std::string_view text, std::uint64_t first = 0);
/// The number of bytes at the end of `text` that begin an unfinished character.
std::size_t unfinished_bytes(std::string_view text);
/// Writes up to 4 bytes and returns how many.
std::size_t encode_utf8(char32_t c, char* bytes);
void append_utf8(std::string& out, char32_t c);
std::string utf8(std::u32string_view text);

bool is_letter(char32_t c);             ///< category L
bool is_number(char32_t c);             ///< category N
bool is_white_space(char32_t c);        ///< the property White_Space
bool is_punctuation(char32_t c);        ///< category P, and all ASCII punctuation and symbols
bool is_control_character(char32_t c);  ///< categories Cc, Cf, Co and Cs, except tab and line ends
bool is_nonspacing_mark(char32_t c);    ///< category Mn
bool is_mark(char32_t c);               ///< category M
bool is_word_character(char32_t c);     ///< matches \w in regular expressions of Unicode
bool is_chinese(char32_t c);            ///< an ideograph, which BERT sets apart
void append_lower(std::u32string& out, char32_t c);

enum class NormalForm { C, D, KC, KD };
std::u32string normal_form(std::u32string_view text, NormalForm form);
/// Whether no normal form composes or reorders this character with the one before it, even after
/// lower-casing and removal of marks and control characters. False if unknown.
bool never_combines(char32_t c);

}  // namespace tenon::data
