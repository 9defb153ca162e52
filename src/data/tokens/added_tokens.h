// Added tokens are searched in a text before it is split into words, as in Hugging Face's
// tokenizers: the longest of those that begin first. A token that must be a word of its own, and is
// not, is text, and no other token is searched within it.
//
// One automaton of all tokens' texts (Aho and Corasick, "Efficient string matching", 1975) reads
// the text from its end and finds the token that begins at a place. Time is linear in the text, for
// any tokens.
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
  /// Of the tokens that are looked for in a text as it is, or of those `normalized`. `parts` must
  /// outlive it.
  AddedFinder(const TokenizerParts& parts, bool normalized);

  bool empty() const { return tokens_.empty(); }
  std::size_t longest() const { return longest_; }
  bool takes_left() const { return takes_left_; }
  const AddedToken& token(std::int32_t index) const { return *tokens_[at(index)].token; }
  std::size_t size(std::int32_t index) const { return tokens_[at(index)].size; }

  /// For each of the first places of `text` the index of the longest token that begins there, or
  /// -1.
  void find(std::u32string_view text, std::span<std::int32_t> begins) const;

 private:
  struct Known {
    const AddedToken* token;
    std::size_t size;
  };
  struct State {
    std::int32_t shorter = 0;  // the longest other state whose text this one's ends with
    std::int32_t token = -1;   // the longest that this one's text ends with
  };
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  std::size_t slot(std::int32_t state, char32_t sign) const;
  std::int32_t after(std::int32_t state, char32_t sign) const;
  std::int32_t step(std::int32_t state, char32_t sign) const;

  std::vector<Known> tokens_;
  std::vector<State> states_;
  std::vector<std::uint64_t> keys_;  // of edges: state and sign, plus 1
  std::vector<std::int32_t> ends_;
  std::array<std::int32_t, 128> first_ascii_{};  // where edges of ASCII from the first state lead
  int shift_ = 0;  // of a product, so that the highest bits say the slot
  std::size_t longest_ = 0;
  bool takes_left_ = false;
};

/// Divides a text that comes part by part.
class AddedScanner {
 public:
  /// text(part, last): the text between tokens; after `last`, which may come with no more text, a
  /// token or the end follows.
  using Text = std::function<void(std::u32string_view part, bool last)>;
  using Token = std::function<void(const AddedToken&)>;
  AddedScanner(const AddedFinder& finder, Text text, Token token)
      : finder_(finder), text_(std::move(text)), token_(std::move(token)) {}

  void push(std::u32string_view part);
  /// The text ends here; another one may follow.
  void end();

 private:
  void scan(bool ended);
  void look_at(std::size_t end);
  void found(std::int32_t index, std::size_t end);
  void give(std::size_t end, bool last);

  const AddedFinder& finder_;
  Text text_;
  Token token_;
  std::u32string kept_;  // what is not settled yet
  // Places in it: of what no text() had yet, and of what no token was looked for in yet; and after
  // the last sign that is no white space.
  std::size_t from_ = 0, at_ = 0, solid_ = 0;
  char32_t before_ = 0;        // the character before it; 0 at the start of a text
  bool takes_spaces_ = false;  // the token before it takes the white space that follows
  std::vector<std::int32_t> begins_;
};

}  // namespace tenon::data
