// Subword pieces: splitting of a text into pieces, and learning them from a text.
//
// The number of a piece is its merge rank: of two possible merges, the one whose piece has the
// lower number comes first. Therefore the list of pieces is all that has to be stored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokens/token_model.h"

namespace tenon::data {

/// Number of bytes of the code point at this position. Throws FormatError if there is none.
std::size_t code_point(std::string_view text, std::size_t from);
/// Letters, digits, apostrophes and bytes beyond ASCII.
bool in_word(char c);

/// Merges the most frequent neighbours within words, starting from characters that are all in
/// `tokens`, until there are `most` tokens or no pair occurs twice.
void join_pieces(std::string_view text, std::int64_t most, std::vector<std::string>& tokens);

/// The last position, at most `most` bytes after `from`, at which the text can be cut without
/// splitting a word, a piece or a character. The end of the text if at most `most` bytes are left
/// or there is no such position.
std::size_t cut_between_words(std::string_view text, std::size_t from, std::size_t most);

/// Caches words. `numbers` must outlive it.
class PieceEncoder {
 public:
  explicit PieceEncoder(const TokenNumbers& numbers) : numbers_(numbers) {}
  /// Throws ValueError naming a character that is not a token.
  std::vector<std::int64_t> operator()(std::string_view text);

 private:
  const TokenNumbers& numbers_;
  std::unordered_map<std::string, std::vector<std::int64_t>, TextHash, std::equal_to<>> known_;
};

}  // namespace tenon::data
