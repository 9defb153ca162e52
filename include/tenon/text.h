// Text: how it becomes numbers and comes back, and sets of windows that a language model learns
// from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tenon/data.h>
#include <tenon/export.h>

namespace tenon::data {

/// What a token is. Words are runs of letters, digits, apostrophes and bytes beyond ASCII; a line's
/// end and every other sign is a token of its own, and spaces are not kept.
enum class TextUnit { Bytes, Characters, Words };

/// "bytes", "chars" or "words". Throws ValueError with a near miss.
TENON_API TextUnit text_unit(const std::string& name);
TENON_API const char* name(TextUnit unit);

/// The tokens of a language model by number.
class TENON_API Vocabulary {
 public:
  /// The tokens of a text: all 256 bytes; its characters (UTF-8 code points) in ascending order; or
  /// "<unk>" and its `most` - 1 commonest words, commonest first. Throws FormatError for characters
  /// of text that is not UTF-8.
  static Vocabulary of(std::string_view text, TextUnit unit, std::int64_t most = 10'000);
  /// One that was kept. Throws ValueError for a token that is there twice.
  Vocabulary(TextUnit unit, std::vector<std::string> tokens);

  TextUnit unit() const { return unit_; }
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// A text's tokens. Words that are not among them are "<unk>"; throws ValueError naming a
  /// character that is not.
  std::vector<std::int64_t> encode(std::string_view text) const;
  /// The text of tokens; words with spaces between them where people set them.
  std::string decode(std::span<const std::int64_t> tokens) const;
  /// What `token` adds to a text that ends in `before` ("" at its start). Throws ValueError for a
  /// number outside.
  std::string piece(std::int64_t token, std::string_view before) const;

 private:
  TextUnit unit_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int64_t> numbers_;
};

struct TextOptions {
  TextUnit unit = TextUnit::Characters;
  std::int64_t length = 64;     ///< tokens in a window
  std::int64_t words = 10'000;  ///< the largest vocabulary, for words
};
/// Windows of a text file: input [length] int64, target [length]: the same one token later. The
/// last tenth of the text is for testing. Windows of training begin at every `length`-th token, so
/// that an epoch sees each once. Throws IoError, FormatError, or ValueError for a text too short.
TENON_API std::shared_ptr<Dataset> open_text(const std::string& file, Split split,
                                             const TextOptions& options = {});

}  // namespace tenon::data
