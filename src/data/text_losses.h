// Losses of tokenization: text beyond the network's sequence length, and words unknown to the
// tokenizer. Counted for notes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tenon/notes.h>
#include <tenon/tokenizer.h>

namespace tenon::data {

class TextLosses {
 public:
  /// Nothing counts as unknown if the tokenizer has no unknown token.
  explicit TextLosses(const Tokenizer& tokenizer);
  /// Counts the losses of a text or pair, given the row of at most `length` tokens that
  /// encode_within() or encode_pair_within() produced.
  void add(std::string_view text, std::span<const std::int64_t> row, std::int64_t length,
           const std::string& place);
  void add_pair(std::string_view first, std::string_view second, std::span<const std::int64_t> row,
                std::int64_t length, const std::string& place);
  /// Counts the tokens of a text that was not truncated.
  void add(std::span<const std::int64_t> tokens, const std::string& place);
  /// Counts a text of which only the last `length` tokens are used.
  void add_cut(std::int64_t length, const std::string& place);
  Notes notes() const;

 private:
  Tokenizer tokenizer_;
  std::int64_t unknown_ = -1, length_ = 0, tokens_ = 0;
  Note cut_{}, unknown_tokens_{};
};

}  // namespace tenon::data
