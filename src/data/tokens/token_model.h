// The vocabularies of tokenizers: how a word becomes numbers, and how one is learnt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::data {

/// Finds std::string keys by views.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>()(text);
  }
};
using TokenNumbers = std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>>;

/// A merge: the token that two neighbours become. Earlier merges have priority.
struct TokenMerge {
  std::int64_t left, right, joined;
};

/// Byte-pair encoding: starts with characters and merges the neighbours with the earliest merge.
class PairMerger {
 public:
  explicit PairMerger(const std::vector<TokenMerge>& merges);
  /// Merges in place, in n log n for n characters; n is below 2^32.
  void join(std::vector<std::int64_t>& tokens) const;

 private:
  struct Merge {
    std::int32_t rank;
    std::int64_t joined;
  };
  static constexpr std::size_t kFew = 24;
  void join_few(std::vector<std::int64_t>& tokens) const;
  const Merge* find(std::int64_t left, std::int64_t right) const;
  std::unordered_map<std::uint64_t, Merge> merges_;
};

struct TokenModel {
  enum class Kind { Bpe, WordPiece } kind = Kind::Bpe;
  TokenNumbers numbers;
  std::vector<TokenMerge> merges;
  std::optional<std::int64_t> unknown;
  bool join_unknown = false;  // BPE: neighbouring unknown characters become one token
  bool whole_words = false;   // BPE: a word in the vocabulary is not split
  std::string prefix = "##";  // WordPiece: prefix of tokens that continue a word
  std::size_t longest = 100;  // WordPiece: longer words are unknown, in characters
};

/// Converts words to token numbers. The model must outlive it.
class WordEncoder {
 public:
  explicit WordEncoder(const TokenModel& model);
  /// Appends the numbers of a word. Returns how much of it is not in the vocabulary: characters, or
  /// for WordPiece 1 for the word.
  std::int64_t append(std::string_view word, std::vector<std::int64_t>& out) const;

 private:
  std::int64_t append_pairs(std::string_view word, std::vector<std::int64_t>& out) const;
  std::int64_t append_longest(std::string_view word, std::vector<std::int64_t>& out) const;

  const TokenModel& model_;
  PairMerger merger_;
  /// WordPiece: the lengths in bytes of tokens that may begin a word, and of tokens that continue
  /// one (without prefix), descending. Other lengths need not be tried.
  std::vector<std::size_t> first_sizes_, later_sizes_;
};

/// Words of a text and how often each occurs, in the order of first occurrence.
using WordCounts = std::vector<std::pair<std::u32string, std::int64_t>>;
/// Learns up to `most` tokens: the `first` ones, which have no text; the characters of the
/// words and of `alphabet` in ascending order; then merged neighbours that occur together at least
/// `least` times, the most frequent first and, if equally frequent, the ones with lower numbers
/// first. Throws ValueError if `most` is below the number of characters.
TokenModel learn_tokens(const WordCounts& words, TokenModel::Kind kind, std::int64_t most,
                        std::int64_t least, const std::u32string& alphabet,
                        const std::vector<std::string>& first);

}  // namespace tenon::data
