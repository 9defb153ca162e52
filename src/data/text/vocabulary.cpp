// Splits text into tokens and joins tokens to text. Learning of pieces is in pieces.cpp.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <set>

#include <tenon/error.h>
#include <tenon/text.h>

#include "base/index.h"
#include "base/str.h"
#include "data/tokens/pieces.h"
#include "data/tokens/token_model.h"

namespace tenon::data {
namespace {

constexpr char kUnknown[] = "<unk>";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Calls use(token) for each token of the text.
template <class Use>
void split(std::string_view text, TextUnit unit, const Use& use) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t count = 1;
    if (unit == TextUnit::Characters) {
      count = code_point(text, at);
    } else if (unit == TextUnit::Words) {
      if (is_space(text[at])) {
        ++at;
        continue;
      }
      if (in_word(text[at]))
        while (at + count < text.size() && in_word(text[at + count])) ++count;
    }
    use(text.substr(at, count));
    at += count;
  }
}

std::vector<std::string> commonest(std::string_view text, std::int64_t most) {
  TokenNumbers counts;
  split(text, TextUnit::Words, [&](std::string_view word) {
    auto known = counts.find(word);
    if (known == counts.end()) known = counts.emplace(word, 0).first;
    ++known->second;
  });
  std::vector<std::pair<std::string, std::int64_t>> words(counts.begin(), counts.end());
  std::sort(words.begin(), words.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> tokens{kUnknown};
  for (const auto& [word, count] : words) {
    if (std::ssize(tokens) >= most) break;
    if (word != kUnknown) tokens.push_back(word);
  }
  return tokens;
}

// The bytes of a character as one number, first byte highest: ordered like code points.
std::uint32_t packed(std::string_view character) {
  std::uint32_t out = 0;
  for (std::size_t k = 0; k < 4; ++k)
    out = out << 8 | (k < character.size() ? static_cast<unsigned char>(character[k]) : 0);
  return out;
}

std::vector<std::string> characters(std::initializer_list<std::string_view> texts) {
  std::array<bool, 128> ascii{};
  std::set<std::uint32_t> others;
  std::uint32_t last = 0;  // skips repeats of the last character
  for (const std::string_view text : texts)
    split(text, TextUnit::Characters, [&](std::string_view character) {
      if (character.size() == 1) {
        ascii[static_cast<unsigned char>(character[0])] = true;
      } else if (const std::uint32_t bytes = packed(character); bytes != last) {
        others.insert(bytes);
        last = bytes;
      }
    });
  std::vector<std::string> tokens;
  for (std::size_t c = 0; c < ascii.size(); ++c)
    if (ascii[c]) tokens.emplace_back(1, static_cast<char>(c));
  for (const std::uint32_t bytes : others) {
    std::string& token = tokens.emplace_back();
    const unsigned lead = bytes >> 24;
    const int count = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    for (int k = 0; k < count; ++k) token.push_back(static_cast<char>(bytes >> (24 - 8 * k)));
  }
  return tokens;
}

}  // namespace

const char* name(TextUnit unit) {
  constexpr const char* names[] = {"bytes", "chars", "words", "pieces"};
  return names[static_cast<int>(unit)];
}

TextUnit text_unit(const std::string& text) {
  std::string names[4];
  for (int k = 0; k < 4; ++k) {
    names[k] = name(static_cast<TextUnit>(k));
    if (text == names[k]) return static_cast<TextUnit>(k);
  }
  const std::string near = nearest(text, names, 4);
  throw ValueError(cat("'", text, "' is not a unit of text: use bytes, chars, words or pieces",
                       near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

Vocabulary Vocabulary::of(std::string_view text, TextUnit unit, std::int64_t most) {
  if (most < 2) throw ValueError(cat("Vocabulary: ", most, " words are too few, give 2 or more"));
  if (unit == TextUnit::Words) return {unit, commonest(text, most)};
  if (unit == TextUnit::Characters) return {unit, characters({text})};
  if (unit == TextUnit::Pieces) return pieces(text, most);
  std::vector<std::string> bytes;
  bytes.reserve(256);
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  return {unit, std::move(bytes)};
}

Vocabulary Vocabulary::pieces(std::string_view text, std::int64_t most, std::string_view alphabet,
                              std::vector<std::string> first) {
  std::vector<std::string> tokens = std::move(first);
  for (std::string& c : characters({alphabet, text})) tokens.push_back(std::move(c));
  if (std::ssize(tokens) > most)
    throw ValueError(cat("Vocabulary: ", most, " pieces are fewer than the ", tokens.size(),
                         " characters and marks that they are made of"));
  join_pieces(text, most, tokens);
  return {TextUnit::Pieces, std::move(tokens)};
}

struct Vocabulary::Numbers {
  TokenNumbers of;
  std::array<std::int64_t, 256> of_byte{};  // tokens of one byte; -1: none
};

Vocabulary::Vocabulary(TextUnit unit, std::vector<std::string> tokens)
    : unit_(unit), tokens_(std::move(tokens)) {
  Numbers numbers;
  numbers.of_byte.fill(-1);
  for (std::size_t k = 0; k < tokens_.size(); ++k)
    if (!numbers.of.emplace(tokens_[k], static_cast<std::int64_t>(k)).second)
      throw ValueError(cat("Vocabulary: the token '", tokens_[k], "' is there twice"));
  for (const auto& [token, number] : numbers.of)
    if (token.size() == 1) numbers.of_byte[static_cast<unsigned char>(token[0])] = number;
  numbers_ = std::make_shared<const Numbers>(std::move(numbers));
}

std::vector<std::int64_t> Vocabulary::encode(std::string_view text, std::int64_t* unknown) const {
  const auto& numbers = numbers_->of;
  if (unit_ == TextUnit::Pieces) return PieceEncoder(numbers)(text);
  std::vector<std::int64_t> out;
  if (unit_ != TextUnit::Words) out.reserve(text.size());
  const auto other = numbers.find(kUnknown);
  std::int64_t outside = 0;
  split(text, unit_, [&](std::string_view token) {
    if (token.size() == 1)
      if (const std::int64_t number = numbers_->of_byte[static_cast<unsigned char>(token[0])];
          number >= 0)
        return out.push_back(number);
    const auto found = numbers.find(token);
    if (found != numbers.end()) {
      out.push_back(found->second);
    } else if (unit_ == TextUnit::Words && other != numbers.end()) {
      out.push_back(other->second);
      ++outside;
    } else {
      throw ValueError(cat("'", token, "' is not one of the ", size(), " known tokens"));
    }
  });
  if (unknown != nullptr) *unknown += outside;
  return out;
}

std::string Vocabulary::piece(std::int64_t token, std::string_view before) const {
  if (token < 0 || token >= size())
    throw ValueError(cat("token ", token, " is outside the vocabulary of ", size()));
  const std::string& text = tokens_[at(token)];
  if (unit_ != TextUnit::Words || before.empty() || before.back() == '\n' || text == "\n")
    return text;
  constexpr std::string_view closing = ".,;:!?)]}%", opening = "([{$#";
  const bool joined = closing.find(text.front()) != std::string_view::npos ||
                      opening.find(before.back()) != std::string_view::npos;
  return joined ? text : " " + text;
}

std::string Vocabulary::decode(std::span<const std::int64_t> tokens) const {
  std::string out;
  for (const std::int64_t token : tokens) out += piece(token, out);
  return out;
}

}  // namespace tenon::data
