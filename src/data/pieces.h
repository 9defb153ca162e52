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

namespace tenon::data {

/// Number of bytes of the code point at this position. Throws FormatError if there is none.
std::size_t code_point(std::string_view text, std::size_t from);
/// Letters, digits, apostrophes and bytes beyond ASCII.
bool in_word(char c);

/// Merges the most frequent neighbours within words, starting from characters that are all in
/// `tokens`, until there are `most` tokens or no pair occurs twice.
void join_pieces(std::string_view text, std::int64_t most, std::vector<std::string>& tokens);

/// Caches words. `numbers` must outlive it.
class PieceEncoder {
 public:
  explicit PieceEncoder(const std::unordered_map<std::string, std::int64_t>& numbers)
      : numbers_(numbers) {}
  /// Throws ValueError naming a character that is not a token.
  std::vector<std::int64_t> operator()(std::string_view text);

 private:
  const std::unordered_map<std::string, std::int64_t>& numbers_;
  std::unordered_map<std::string, std::vector<std::int64_t>> known_;
};

}  // namespace tenon::data
