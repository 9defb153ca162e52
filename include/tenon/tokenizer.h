// Tokenizers of pretrained models of language: text to the numbers that their weights were trained
// with, and back, as Hugging Face's tokenizers give them.
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

enum class TokenizerKind { Bpe, WordPiece };

/// "bpe" or "wordpiece". Throws ValueError with a near miss.
TENON_API TokenizerKind tokenizer_kind(const std::string& name);

struct TokenizerTraining {
  TokenizerKind kind = TokenizerKind::Bpe;  ///< of bytes, as GPT-2's; or BERT's
  std::int64_t tokens = 30'000;             ///< the vocabulary; fewer where a text has no more
  std::int64_t least = 2;                   ///< times that neighbours stand together to be joined
  bool lower = true;                        ///< WordPiece: capitals and accents are taken away
};

/// Words into pieces and numbers. Copies share one vocabulary; any number of threads may use one.
class TENON_API Tokenizer {
 public:
  /// Opens tokenizer.json; vocab.txt (WordPiece, as BERT's; tokenizer_config.json beside it says
  /// whether capitals count); vocab.json with merges.txt beside it (bytes, as GPT-2's); or a folder
  /// with one of them, looked for in this order. Throws IoError; FormatError for damaged files;
  /// NotSupported for parts of a tokenizer.json that are not known, by name.
  static Tokenizer open(const std::string& path);
  /// Of the text of a tokenizer.json; `name` is for messages. Throws as open().
  static Tokenizer parse(std::string_view json, const std::string& name);
  /// Learns one from a text: special tokens, then signs, then what neighbours make, commonest
  /// first; of bytes exactly what Hugging Face's trainer learns from the lines of the text. Throws
  /// FormatError for text that is not UTF-8, ValueError where so many tokens do not hold the signs.
  static Tokenizer train(std::string_view text, const TokenizerTraining& options = {});

  /// Numbers of a text, with those before and behind it that the model expects ([CLS], [SEP])
  /// unless `special` is false. `unknown`: how many words (WordPiece) or signs (BPE) the vocabulary
  /// does not hold is added there; they become the unknown token or, without one, are left out.
  /// Throws FormatError for text that is not UTF-8, ValueError for a word of more than 16 Mi signs.
  std::vector<std::int64_t> encode(std::string_view text, bool special = true,
                                   std::int64_t* unknown = nullptr) const;
  /// The same of a long text, without all numbers at once: use() takes them in order.
  void encode_parts(std::string_view text,
                    const std::function<void(std::span<const std::int64_t>)>& use,
                    bool special = true, std::int64_t* unknown = nullptr) const;
  /// The same of a file of any size in bounded memory: use() takes the numbers in order, some at a
  /// time. Throws also IoError.
  void encode_file(const std::string& path,
                   const std::function<void(std::span<const std::int64_t>)>& use,
                   bool special = true) const;
  /// The text of numbers, special tokens left out unless asked for. Throws ValueError for a number
  /// outside.
  std::string decode(std::span<const std::int64_t> tokens, bool special = false) const;

  /// One more than the largest number.
  std::int64_t size() const;
  /// As it stands in the vocabulary; "" for a number that none has.
  std::string token(std::int64_t number) const;
  /// Its number, or -1.
  std::int64_t number(std::string_view token) const;
  /// The number that stands for words or signs outside the vocabulary, or -1: they are left out.
  std::int64_t unknown() const;
  /// Writes tokenizer.json atomically, which Hugging Face's tokenizers read.
  void save(const std::string& path) const;
  /// What save() writes.
  std::string json() const;

 private:
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tenon::data
