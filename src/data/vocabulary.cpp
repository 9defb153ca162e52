// Splitting text into tokens, and putting it together again.
#include <algorithm>
#include <map>

#include <tenon/error.h>
#include <tenon/text.h>

#include "base/index.h"
#include "base/str.h"

namespace tenon::data {
namespace {

constexpr char kUnknown[] = "<unk>";

// Bytes of the code point that begins here; 0 where none does.
std::size_t code_point(std::string_view text, std::size_t from) {
  const auto byte = static_cast<unsigned char>(text[from]);
  const std::size_t count = byte < 0x80             ? 1
                            : (byte & 0xe0) == 0xc0 ? 2
                            : (byte & 0xf0) == 0xe0 ? 3
                            : (byte & 0xf8) == 0xf0 ? 4
                                                    : 0;
  if (count == 0 || from + count > text.size()) return 0;
  for (std::size_t i = 1; i < count; ++i)
    if ((static_cast<unsigned char>(text[from + i]) & 0xc0) != 0x80) return 0;
  return count;
}

bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte == '\'';
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Calls use(token) for each token of the text.
template <class Use>
void split(std::string_view text, TextUnit unit, const Use& use) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t count = 1;
    if (unit == TextUnit::Characters) {
      count = code_point(text, at);
      if (count == 0)
        throw FormatError(
            cat("the text is not UTF-8 at byte ", at, ": read it by bytes, or convert it"));
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
  return unit == TextUnit::Bytes ? "bytes" : unit == TextUnit::Characters ? "chars" : "words";
}

TextUnit text_unit(const std::string& text) {
  std::string names[3];
  for (int k = 0; k < 3; ++k) {
    names[k] = name(static_cast<TextUnit>(k));
    if (text == names[k]) return static_cast<TextUnit>(k);
  }
  const std::string near = nearest(text, names, 3);
  throw ValueError(cat("'", text, "' is no unit of text: bytes, chars or words",
                       near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

Vocabulary Vocabulary::of(std::string_view text, TextUnit unit, std::int64_t most) {
  if (most < 2) throw ValueError(cat("Vocabulary: ", most, " words are too few, give 2 or more"));
  if (unit == TextUnit::Words) return {unit, commonest(text, most)};
  if (unit == TextUnit::Characters) return {unit, characters(text)};
  std::vector<std::string> bytes;
  bytes.reserve(256);
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  return {unit, std::move(bytes)};
}

Vocabulary::Vocabulary(TextUnit unit, std::vector<std::string> tokens)
    : unit_(unit), tokens_(std::move(tokens)) {
  for (std::size_t k = 0; k < tokens_.size(); ++k)
    if (!numbers_.emplace(tokens_[k], static_cast<std::int64_t>(k)).second)
      throw ValueError(cat("Vocabulary: the token '", tokens_[k], "' is there twice"));
}

std::vector<std::int64_t> Vocabulary::encode(std::string_view text) const {
  std::vector<std::int64_t> out;
  const auto unknown = numbers_.find(kUnknown);
  split(text, unit_, [&](const std::string& token) {
    const auto found = numbers_.find(token);
    if (found != numbers_.end())
      out.push_back(found->second);
    else if (unit_ == TextUnit::Words && unknown != numbers_.end())
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
