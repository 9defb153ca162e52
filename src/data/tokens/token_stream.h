// Encodes a text of any length part by part, in bounded memory. The end of a part may belong to a
// token of the next part and is held back until then. The result equals encoding the whole text at
// once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokens/added_tokens.h"
#include "data/tokens/token_model.h"
#include "data/tokens/tokenizer_impl.h"

namespace tenon::data {

class TokenStream {
 public:
  /// Appends token numbers to `out`. All arguments must outlive it.
  TokenStream(const TokenizerParts& parts, const WordEncoder& words, const AddedFinder& raw,
              const AddedFinder& normalized, std::vector<std::int64_t>& out);
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  /// Bytes may be cut anywhere. Throws FormatError for what is not UTF-8, ValueError for a word of
  /// more than kLongestWord characters.
  void push(std::string_view bytes);
  void end();
  /// How much of the text so far is not in the vocabulary, as WordEncoder::append() counts it.
  std::int64_t unknown() const { return unknown_; }

  static constexpr std::size_t kPartBytes = std::size_t{1} << 16;
  static constexpr std::size_t kLongestWord = std::size_t{1} << 24;

 private:
  void normalize(std::u32string_view part, bool last);
  void take_words(std::u32string_view part, bool last);
  void append(std::string_view word);

  const TokenizerParts& parts_;
  const WordEncoder& words_;
  std::vector<std::int64_t>& out_;
  std::int64_t unknown_ = 0;
  std::uint64_t read_ = 0;  // bytes
  std::string begun_;       // bytes of an incomplete character
  std::u32string characters_, undecided_, word_;
  bool begins_ = true;  // the next word is the first between two added tokens
  AddedScanner normalized_, raw_;
  std::function<void(std::string_view)> use_;

  // Cache of encoded words, with at most kMostKept tokens in all.
  struct Kept {
    std::size_t first = 0;
    std::uint32_t count = 0, unknown = 0;
  };
  static constexpr std::size_t kLongestKept = 48, kMostKept = std::size_t{1} << 18;
  std::unordered_map<std::string, Kept, TextHash, std::equal_to<>> kept_;
  std::vector<std::int64_t> kept_tokens_;
};

}  // namespace tenon::data
