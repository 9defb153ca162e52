// Splits text into tokens and joins tokens to text. Learning of pieces is in pieces.cpp.
#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include <tenon/error.h>
#include <tenon/text.h>

#include "base/index.h"
#include "base/str.h"
#include "data/pieces.h"

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
    use(std::string(text.substr(at, count)));
    at += count;
  }
}

std::vector<std::string> commonest(std::string_view text, std::int64_t most) {
  std::unordered_map<std::string, std::int64_t> counts;
  split(text, TextUnit::Words, [&](const std::string& word) { ++counts[word]; });
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

std::vector<std::string> characters(std::string_view text) {
  std::map<std::string, bool> seen;  // bytes of UTF-8 ascend as code points do
  split(text, TextUnit::Characters, [&](const std::string& c) { seen.emplace(c, true); });
  std::vector<std::string> tokens;
  tokens.reserve(seen.size());
  for (const auto& [c, yes] : seen) tokens.push_back(c);
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
  throw ValueError(cat("'", text, "' is no unit of text: bytes, chars, words or pieces",
                       near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

Vocabulary Vocabulary::of(std::string_view text, TextUnit unit, std::int64_t most) {
  if (most < 2) throw ValueError(cat("Vocabulary: ", most, " words are too few, give 2 or more"));
  if (unit == TextUnit::Words) return {unit, commonest(text, most)};
  if (unit == TextUnit::Characters) return {unit, characters(text)};
  if (unit == TextUnit::Pieces) return pieces(text, most);
  std::vector<std::string> bytes;
  bytes.reserve(256);
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  return {unit, std::move(bytes)};
}

Vocabulary Vocabulary::pieces(std::string_view text, std::int64_t most, std::string_view alphabet,
                              std::vector<std::string> first) {
  std::vector<std::string> tokens = std::move(first);
  for (std::string& c : characters(cat(alphabet, text))) tokens.push_back(std::move(c));
  if (std::ssize(tokens) > most)
    throw ValueError(cat("Vocabulary: ", most, " pieces are fewer than the ", tokens.size(),
                         " characters and marks that they are made of"));
  join_pieces(text, most, tokens);
  return {TextUnit::Pieces, std::move(tokens)};
}

struct Vocabulary::Numbers {
  std::unordered_map<std::string, std::int64_t> of;
};

Vocabulary::Vocabulary(TextUnit unit, std::vector<std::string> tokens)
    : unit_(unit), tokens_(std::move(tokens)) {
  Numbers numbers;
  for (std::size_t k = 0; k < tokens_.size(); ++k)
    if (!numbers.of.emplace(tokens_[k], static_cast<std::int64_t>(k)).second)
      throw ValueError(cat("Vocabulary: the token '", tokens_[k], "' is there twice"));
  numbers_ = std::make_shared<const Numbers>(std::move(numbers));
}

std::vector<std::int64_t> Vocabulary::encode(std::string_view text) const {
  const auto& numbers = numbers_->of;
  if (unit_ == TextUnit::Pieces) return PieceEncoder(numbers)(text);
  std::vector<std::int64_t> out;
  const auto unknown = numbers.find(kUnknown);
  split(text, unit_, [&](const std::string& token) {
    const auto found = numbers.find(token);
    if (found != numbers.end())
      out.push_back(found->second);
    else if (unit_ == TextUnit::Words && unknown != numbers.end())
      out.push_back(unknown->second);
    else
      throw ValueError(cat("'", token, "' is none of the ", size(), " tokens that are known"));
  });
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
