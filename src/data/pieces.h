// Pieces of words: how a text falls into them, and how they are learnt from one.
//
// A piece is a token whose number says when it was joined: of two neighbours that could be joined,
// those whose piece has the lower number come first. So the list of tokens is all that is kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/token_model.h"

namespace tenon::data {

/// Bytes of the code point that begins here. Throws FormatError where none does.
std::size_t code_point(std::string_view text, std::size_t from);
/// Letters, digits, apostrophes and bytes beyond ASCII.
bool in_word(char c);

/// Joins the commonest neighbours within the words of a text, of which all characters are among
/// `tokens`, until there are `most` tokens or no two neighbours stand together twice.
void join_pieces(std::string_view text, std::int64_t most, std::vector<std::string>& tokens);

/// The last place up to `most` bytes behind `from` at which text may be cut without a word, a piece
/// or a character being cut; the text's end where no more than `most` are left, and where there is
/// no such place.
std::size_t cut_between_words(std::string_view text, std::size_t from, std::size_t most);

/// Remembers the words that it met. `numbers` must outlive it.
class PieceEncoder {
 public:
  explicit PieceEncoder(const TokenNumbers& numbers) : numbers_(numbers) {}
  /// Throws ValueError naming a character that is none of the tokens.
  std::vector<std::int64_t> operator()(std::string_view text);

 private:
  const TokenNumbers& numbers_;
  std::unordered_map<std::string, std::vector<std::int64_t>, TextHash, std::equal_to<>> known_;
};

}  // namespace tenon::data
