// Tokenizers of pretrained language models: they encode text as the token ids that a model's
// weights were trained with, and decode them, with the same results as Hugging Face's tokenizers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/export.h>

namespace tenon::data {

/// The algorithm of a tokenizer.
enum class TokenizerKind {
  Bpe,       ///< byte-level byte-pair encoding, as GPT-2
  WordPiece  ///< WordPiece, as BERT
};

/// Parses "bpe" or "wordpiece". Throws ValueError that suggests a similar name.
TENON_API TokenizerKind tokenizer_kind(const std::string& name);

/// Options of Tokenizer::train(), with the names of Hugging Face's trainers in parentheses.
struct TokenizerTraining {
  TokenizerKind kind = TokenizerKind::Bpe;  ///< the algorithm
  std::int64_t tokens = 30'000;  ///< vocabulary size (vocab_size); fewer if the text has no more
  std::int64_t least = 2;        ///< occurrences of a pair that is joined (min_frequency)
  bool lower = true;             ///< of WordPiece: lower case, and accents are removed
};

/// Encodes text as token ids and decodes them. Copies share one vocabulary. Any number of
/// threads may use a tokenizer.
class TENON_API Tokenizer {
 public:
  /// Opens a tokenizer file:
  /// - tokenizer.json
  /// - vocab.txt (WordPiece, as BERT); tokenizer_config.json beside it says whether case matters
  /// - vocab.json with merges.txt beside it (byte-level BPE, as GPT-2)
  /// - a folder with one of these, searched in this order
  ///
  /// Throws IoError; FormatError for a damaged file; NotSupported that names an unknown component
  /// of a tokenizer.json.
  static Tokenizer open(const std::string& path);
  /// Parses the text of a tokenizer.json; messages use `name`. Throws as open().
  static Tokenizer parse(std::string_view json, const std::string& name);
  /// Learns a tokenizer from a text. The vocabulary has the special tokens, then the characters,
  /// then the joined pairs of neighbours, most frequent first. For byte-level BPE the result is
  /// exactly that of Hugging Face's trainer on the lines of the text. Throws FormatError for a text
  /// that is not UTF-8, ValueError if the vocabulary size is too small for all characters.
  static Tokenizer train(std::string_view text, const TokenizerTraining& options = {});

  /// Encodes a text. Throws FormatError for a text that is not UTF-8, ValueError for a word of more
  /// than 16 Mi characters.
  ///
  /// @param text     the text
  /// @param special  whether to add the special tokens that the model expects at the start and the
  ///                 end ([CLS], [SEP])
  /// @param unknown  the number of words (WordPiece) or characters (BPE) that the vocabulary does
  ///                 not have is added here, unless it is null. They become the unknown token, or
  ///                 are left out if there is none.
  std::vector<std::int64_t> encode(std::string_view text, bool special = true,
                                   std::int64_t* unknown = nullptr) const;
  /// Encodes a long text without holding all numbers in memory: `use` receives them in order, some
  /// at a time. Throws as encode().
  void encode_parts(std::string_view text,
                    const std::function<void(std::span<const std::int64_t>)>& use,
                    bool special = true, std::int64_t* unknown = nullptr) const;
  /// Encodes a file of any size in bounded memory: `use` receives the numbers in order, some at a
  /// time. Throws IoError, else as encode().
  void encode_file(const std::string& path,
                   const std::function<void(std::span<const std::int64_t>)>& use,
                   bool special = true) const;
  /// Decodes token ids. Special tokens are left out unless `special` is true. Throws ValueError
  /// for a number out of range.
  std::string decode(std::span<const std::int64_t> tokens, bool special = false) const;

  /// One more than the largest token id.
  std::int64_t size() const;
  /// A token as the vocabulary has it; "" for a number without a token.
  std::string token(std::int64_t number) const;
  /// The number of a token, or -1.
  std::int64_t number(std::string_view token) const;
  /// The number of the token for words or characters that the vocabulary does not have. -1: there
  /// is none, and they are left out.
  std::int64_t unknown() const;
  /// Writes a tokenizer.json atomically. Hugging Face's tokenizers can read it. Throws IoError.
  void save(const std::string& path) const;
  /// The text that save() writes.
  std::string json() const;

 private:
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tenon::data
