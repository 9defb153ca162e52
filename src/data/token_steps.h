// The steps of a tokenizer before its vocabulary: how a text is made uniform, and where it falls
// into words. Each is a value that a tokenizer.json can say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/unicode.h"

namespace tenon::data {

struct NormalStep {
  /// StripAccents takes all marks away, Bert the nonspacing ones of what is taken apart.
  enum class Kind { Bert, Form, Lower, StripAccents } kind = Kind::Lower;
  NormalForm form = NormalForm::C;
  // Of Kind::Bert.
  bool clean = true, chinese = true, accents = true, lower = true;  // accents: take them away
};
std::u32string made_uniform(std::u32string text, const std::vector<NormalStep>& steps);

struct SplitStep {
  /// Bert: at white space, each sign of punctuation alone. Bytes: as GPT-2's pattern says, and
  /// every byte becomes a visible sign. Spaces: at white space.
  enum class Kind { Bert, Bytes, Spaces } kind = Kind::Bert;
  // Of Kind::Bytes.
  bool space_before = false, pattern = true;
};
std::vector<std::string> split_into_words(const std::u32string& text,
                                          const std::vector<SplitStep>& steps);

/// The visible sign that stands for a byte in GPT-2's vocabulary, and back (-1: for none).
char32_t sign_of_byte(unsigned char byte);
int byte_of_sign(char32_t sign);

/// Whether no step joins what stands on both sides of a plain space.
bool splits_at_spaces(const std::vector<SplitStep>& steps);
/// Whether a space between two visible signs of ASCII stands here: no normal form joins them, and a
/// word, of which GPT-2's begin with their space, begins there.
bool is_plain_space(std::u32string_view text, std::size_t place);

}  // namespace tenon::data
