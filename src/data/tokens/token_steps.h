// The steps of a tokenizer before its vocabulary: normalization of the text, and splitting into
// words. tokenizer.json can express each of them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokens/unicode.h"

namespace tenon::data {

struct NormalStep {
  /// StripAccents removes all marks; Bert decomposes characters and removes nonspacing marks.
  enum class Kind { Bert, Form, Lower, StripAccents } kind = Kind::Lower;
  NormalForm form = NormalForm::C;
  // Of Kind::Bert.
  bool clean = true, chinese = true, accents = true, lower = true;  // accents: remove them
};
std::u32string normalize_text(std::u32string text, const std::vector<NormalStep>& steps);

struct SplitStep {
  /// Bert: at white space, with each punctuation character on its own. Bytes: by GPT-2's pattern,
  /// and every byte becomes a visible character. Spaces: at white space.
  enum class Kind { Bert, Bytes, Spaces } kind = Kind::Bert;
  // Of Kind::Bytes.
  bool space_before = false, pattern = true;
};
/// Calls use(word) for each word of a text, in UTF-8 that is valid until use() returns. `begins`:
/// the text is no later part of one that was cut where word_ends_between() says so.
void each_word(std::u32string_view text, const std::vector<SplitStep>& steps, bool begins,
               const std::function<void(std::string_view)>& use);
/// Whether a word ends between two neighbours, for any text around them.
bool word_ends_between(char32_t before, char32_t after, const std::vector<SplitStep>& steps);

/// The visible character for a byte in GPT-2's vocabulary, and the byte of such a
/// character (-1: of another character).
char32_t character_of_byte(unsigned char byte);
int byte_of_character(char32_t character);

}  // namespace tenon::data
