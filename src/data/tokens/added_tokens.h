// Added tokens are searched in a text before it is split into words, as in Hugging Face's
// tokenizers: the longest of those that begin first. If a token must be a whole word and is not, it
// is plain text, and no other token is searched within it.
//
// One automaton of all tokens' texts (Aho and Corasick, "Efficient string matching", 1975) reads
// the text from its end and finds the token that begins at each position. Time is linear in the
// text, for any tokens.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokens/tokenizer_impl.h"

namespace tenon::data {

class AddedFinder {
 public:
  /// A finder of the tokens that are searched in the original text, or of those searched in the
  /// normalized text. `parts` must outlive it.
  AddedFinder(const TokenizerParts& parts, bool normalized);

  bool empty() const { return tokens_.empty(); }
  std::size_t longest() const { return longest_; }
  bool takes_left() const { return takes_left_; }
  const AddedToken& token(std::int32_t index) const { return *tokens_[at(index)].token; }
  std::size_t size(std::int32_t index) const { return tokens_[at(index)].size; }

  /// For each of the first positions of `text` the index of the longest token that begins there, or
  /// -1.
  void find(std::u32string_view text, std::span<std::int32_t> begins) const;

 private:
  struct Known {
    const AddedToken* token;
    std::size_t size;
  };
  struct State {
    std::int32_t shorter = 0;  // the longest proper suffix of this state's text that is a state
    std::int32_t token = -1;   // the longest token that is a suffix of this state's text
  };
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  std::size_t slot(std::int32_t state, char32_t character) const;
  std::int32_t after(std::int32_t state, char32_t character) const;
  std::int32_t step(std::int32_t state, char32_t character) const;

  std::vector<Known> tokens_;
  std::vector<State> states_;
  std::vector<std::uint64_t> keys_;  // edges: state and character, plus 1
  std::vector<std::int32_t> ends_;
  std::array<std::int32_t, 128> first_ascii_{};  // the first state's edges for ASCII characters
  int shift_ = 0;                                // shift of the hash that leaves the slot number
  std::size_t longest_ = 0;
  bool takes_left_ = false;
};

/// Splits a text, which arrives in parts, into added tokens and the text between them.
class AddedScanner {
 public:
  /// text(part, last) receives the text between tokens in parts. `last` marks the final part before
  /// a token or the end; that part may be empty.
  using Text = std::function<void(std::u32string_view part, bool last)>;
  using Token = std::function<void(const AddedToken&)>;
  AddedScanner(const AddedFinder& finder, Text text, Token token)
      : finder_(finder), text_(std::move(text)), token_(std::move(token)) {}

  void push(std::u32string_view part);
  /// The text ends here; another one may follow.
  void end();

 private:
  void scan(bool ended);
  void find_tokens(std::size_t end);
  void found(std::int32_t index, std::size_t end);
  void give(std::size_t end, bool last);

  const AddedFinder& finder_;
  Text text_;
  Token token_;
  std::u32string kept_;  // text that is not decided yet
  // Positions in kept_: the first character not passed to text(), the first not searched for
  // tokens, and the one after the last character that is not white space.
  std::size_t from_ = 0, at_ = 0, solid_ = 0;
  char32_t before_ = 0;        // the character before it; 0 at the start of a text
  bool takes_spaces_ = false;  // the preceding token includes the white space after it
  std::vector<std::int32_t> begins_;
};

}  // namespace tenon::data
