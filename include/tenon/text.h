// Text: vocabularies, and datasets of text for language models, classifiers, question answering and
// translation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>
#include <tenon/export.h>

namespace tenon::data {

/// The unit of a token of a Vocabulary.
enum class TextUnit {
  Bytes,       ///< single bytes
  Characters,  ///< Unicode code points
  /// Runs of letters, digits, apostrophes and bytes beyond ASCII. A line end and every other
  /// character is a token too. Spaces are not kept.
  Words,
  /// Subwords that are frequent in a text (Sennrich et al., "Neural machine translation of rare
  /// words with subword units", 2016). A space belongs to the word after it. Nothing is lost.
  Pieces
};

/// Parses "bytes", "chars", "words" or "pieces". Throws ValueError that suggests a similar name.
TENON_API TextUnit text_unit(const std::string& name);
/// The name that text_unit() parses.
TENON_API const char* name(TextUnit unit);

/// The tokens of a language model by number.
class TENON_API Vocabulary {
 public:
  /// The vocabulary of a text: all 256 bytes; its characters (UTF-8 code points) in ascending
  /// order; "<unk>" and its `most` - 1 most frequent words, most frequent first; or pieces().
  /// Throws FormatError if the text is not UTF-8, except for bytes and words.
  static Vocabulary of(std::string_view text, TextUnit unit, std::int64_t most = 10'000);
  /// Learns subwords from a text by byte-pair encoding. The vocabulary has, in order: the tokens in
  /// `first`, which encode no text; the characters of the text and of `alphabet`; and the joined
  /// pieces, in the order in which they were joined (the most frequent pair of neighbours first).
  /// Throws FormatError if the text is not UTF-8, and ValueError if `most` is too small for all
  /// characters.
  ///
  /// @param text      the text
  /// @param most      the largest size of the vocabulary
  /// @param alphabet  characters to include even if the text lacks them
  /// @param first     tokens to put first, for instance for padding
  static Vocabulary pieces(std::string_view text, std::int64_t most, std::string_view alphabet = {},
                           std::vector<std::string> first = {});
  /// A vocabulary of given tokens. Throws ValueError for a token that occurs twice.
  Vocabulary(TextUnit unit, std::vector<std::string> tokens);

  /// The unit of the tokens.
  TextUnit unit() const { return unit_; }
  /// Number of tokens.
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// The tokens in order.
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// Encodes a text as token numbers. Unknown words become "<unk>"; their number is added to
  /// `unknown` unless it is null. Throws ValueError that names an unknown character.
  std::vector<std::int64_t> encode(std::string_view text, std::int64_t* unknown = nullptr) const;
  /// Decodes token numbers. Words are joined with spaces according to usual punctuation. Throws
  /// ValueError for a number out of range.
  std::string decode(std::span<const std::int64_t> tokens) const;
  /// The text that `token` adds after a text that ends in `before` ("" at the start). Throws
  /// ValueError for a number out of range.
  std::string piece(std::int64_t token, std::string_view before) const;

 private:
  TextUnit unit_;
  std::vector<std::string> tokens_;
  struct Numbers;  // by token
  std::shared_ptr<const Numbers> numbers_;
};

/// Options of open_text().
struct TextOptions {
  TextUnit unit = TextUnit::Characters;  ///< the unit of a token
  std::int64_t length = 64;              ///< sequence length in tokens
  std::int64_t words = 10'000;           ///< largest vocabulary size, of words and pieces
  /// Vocabulary to use instead of the text's own and of `unit`; null: the text's own.
  std::shared_ptr<const Vocabulary> vocabulary{};
  /// Division into parts, which are stretches of the text: training, then validation, then test. Of
  /// cross-validation the test part is one of `folds` stretches. There are no groups and no
  /// classes, and nothing is shuffled.
  SplitOptions split{};
  std::string test_file{};  ///< text for testing; "": a stretch of the file
};
/// A text file as a dataset for language modelling: input [length] int64, target [length], the
/// input one token later. A sample begins at every `length`-th token of a part, so an epoch sees
/// each token once. No token is in two parts. If the validation part is too short for one sample
/// and its share is not set, its tokens belong to the training part.
///
/// Throws IoError, FormatError, or ValueError for a text that is too short.
TENON_API std::shared_ptr<Dataset> open_text(const std::string& file, Split split,
                                             const TextOptions& options = {});

// ---- Text with a tokenizer

class Tokenizer;

/// Counts what is lost when texts are encoded: the ends of texts that are too long, and words or
/// characters that a vocabulary does not have. Datasets report the losses in Dataset::notes(). Use
/// this class if you encode texts one by one.
class TENON_API TextLosses {
 public:
  /// Counts one text.
  ///
  /// @param cut      whether its end was cut off
  /// @param unknown  number of unknown words or characters
  /// @param where    where the text is from, for messages: "rows.tsv, line 7"
  void add(bool cut, std::int64_t unknown, std::string_view where);
  /// Declares that unknown words or characters were left out, because the vocabulary has no token
  /// for them.
  void leave_out_unknown() { left_out_ = true; }
  std::int64_t texts() const { return texts_; }      ///< texts that were counted
  std::int64_t cut() const { return cut_; }          ///< texts whose end was cut off
  std::int64_t unknown() const { return unknown_; }  ///< unknown words or characters
  /// One note for each kind of loss that occurred.
  ///
  /// @param length  the number of tokens to which texts were cut
  /// @param texts   what the texts are, for the notes: "texts of the training part"
  Notes notes(std::int64_t length, std::string_view texts = "texts") const;

 private:
  std::int64_t texts_ = 0, cut_ = 0, unknown_ = 0, with_unknown_ = 0;
  bool left_out_ = false;
  std::string first_cut_, first_unknown_;
};

/// Encodes a text with the special tokens that the model expects. A longer text is cut to `length`
/// tokens; the last one is still the token that ends a text ([SEP]).
///
/// @param tokenizer  the tokenizer
/// @param text       the text
/// @param length     the largest number of tokens
/// @param losses     counts what is lost; null: not counted
/// @param where      where the text is from, for `losses`
TENON_API std::vector<std::int64_t> encode_within(const Tokenizer& tokenizer, std::string_view text,
                                                  std::int64_t length, TextLosses* losses = nullptr,
                                                  std::string_view where = {});

/// The tokens of two texts.
struct TypedTokens {
  std::vector<std::int64_t> tokens;  ///< token numbers
  std::vector<std::int64_t> types;   ///< 0 for tokens of the first text, 1 for the second
};
/// Encodes two texts for BERT: [CLS] first [SEP] second [SEP]. Beyond `length` tokens the longer
/// text is cut at its end, as in Hugging Face's tokenizers ("longest_first"). `losses` and `where`
/// as in encode_within(). Throws ValueError for a tokenizer without these tokens.
TENON_API TypedTokens encode_pair_within(const Tokenizer& tokenizer, std::string_view first,
                                         std::string_view second, std::int64_t length,
                                         TextLosses* losses = nullptr, std::string_view where = {});

/// Options of open_token_text().
struct TokenTextOptions {
  std::int64_t length = 64;  ///< sequence length in tokens
  /// Masked language modelling (BERT). Samples begin with [CLS] and end with [SEP]. 15 % of the
  /// tokens are to be predicted: 80 % of them are replaced by [MASK], 10 % by a random token, and
  /// 10 % are unchanged. The choice depends on (seed, epoch, sample) alone; in evaluations it is
  /// always the same.
  bool hide_words = false;
  SplitOptions split{};     ///< as TextOptions::split
  std::string test_file{};  ///< text for testing; "": a stretch of the file
};
/// A text file as a dataset, encoded by a tokenizer; else as open_text(). Targets are the tokens
/// one position later, or with `hide_words` the masked tokens, and kIgnoredTarget elsewhere. Throws
/// as open_text(), and ValueError with `hide_words` for a tokenizer without [MASK].
TENON_API std::shared_ptr<Dataset> open_token_text(const std::string& file, Split split,
                                                   const Tokenizer& tokenizer,
                                                   const TokenTextOptions& options = {});

/// Options of open_class_lines().
struct ClassLineOptions {
  std::int64_t length = 128;  ///< largest number of tokens of a line; longer lines are cut
  std::string test_file{};    ///< lines for testing; "": a part of the file
  /// The class comes after the texts. Not needed if a header names the class column ("label",
  /// "class" or "target").
  bool class_last = false;
  RowFormat rows{};      ///< encoding, separator, comments, header and quotes
  SplitOptions split{};  ///< division into parts
};
/// A file of classified texts: lines "class TAB text", or other rows (RowFormat). Input [L] int64,
/// where L is the length of the longest line; shorter lines are padded with kPad. Target: the
/// class, numbered in alphabetical order. For lines "class TAB text TAB text" inputs are [2, L]:
/// tokens and their types (TypedTokens). Throws IoError, FormatError that names a line, or
/// ValueError.
TENON_API std::shared_ptr<Dataset> open_class_lines(const std::string& file, Split split,
                                                    const Tokenizer& tokenizer,
                                                    const ClassLineOptions& options = {});

/// Options of open_spans().
struct SpanOptions {
  std::int64_t length = 384;   ///< tokens of a question with a window of its text
  std::int64_t stride = 128;   ///< tokens that neighbouring windows of a text share
  std::int64_t question = 64;  ///< largest number of tokens of a question; longer ones are cut
  std::string test_file{};     ///< questions for testing; "": a part of the file
  SplitOptions split{};        ///< division into parts; questions about one text stay in one part
};
/// A dataset for extractive question answering: SQuAD's JSON, or lines "question TAB text TAB
/// answer TAB position". The position is in characters from 0 and may be left out. Without an
/// answer the text has none.
///
/// A sample is a question with a window of its text: input [2, L] int64, tokens and their types,
/// padded with kPad; target [2], the positions of the answer's first and last token, or 0 and 0 if
/// the answer is not in the window. Throws IoError, FormatError that names a line or a question, or
/// ValueError.
TENON_API std::shared_ptr<Dataset> open_spans(const std::string& file, Split split,
                                              const Tokenizer& tokenizer,
                                              const SpanOptions& options = {});

// ---- Pairs of sequences, for translation

constexpr std::int64_t kPad = 0;    ///< padding token of a vocabulary of pairs
constexpr std::int64_t kBegin = 1;  ///< the token from which a translation starts
constexpr std::int64_t kEnd = 2;    ///< the token that ends a source and a translation

/// A language of number_words().
enum class Language {
  English,  ///< "twenty-one"
  French,   ///< "vingt et un"
  German    ///< "einundzwanzig"
};
/// A number from 0 to 999,999,999 written out in words: "twenty-one", "vingt et un",
/// "einundzwanzig". Throws ValueError for another number.
TENON_API std::string number_words(std::int64_t number, Language language);

/// Options of open_pairs().
struct PairOptions {
  std::int64_t pieces = 8'000;  ///< size of the vocabulary that both languages share
  std::int64_t length = 0;      ///< pairs with more tokens on one side are left out; 0: no limit
  /// Vocabulary to use; null: learned from the training part.
  std::shared_ptr<const Vocabulary> vocabulary{};
  SplitOptions split{};     ///< division into parts
  std::string test_file{};  ///< lines for testing; "": a part of the file
  RowFormat rows{};         ///< encoding, separator, comments, header and quotes
};
/// A dataset for translation: lines "source TAB translation", or other rows (RowFormat). Input [2,
/// L] int64: the source followed by kEnd, and kBegin followed by the translation; both padded with
/// kPad. Target [L]: the translation and kEnd, then kIgnoredTarget. The vocabulary of pieces is
/// learned from the training part. Throws IoError, FormatError that names a line, or ValueError.
TENON_API std::shared_ptr<Dataset> open_pairs(const std::string& file, Split split,
                                              const PairOptions& options = {});

/// Options of number_pairs().
struct NumberPairOptions {
  std::int64_t train = 100'000;        ///< pairs for training
  std::int64_t test = 2'000;           ///< pairs for testing
  std::uint64_t seed = 0;              ///< seed of the generated pairs
  std::int64_t below = 1'000'000'000;  ///< numbers are below this; at least 200
  std::vector<Language> to{Language::French, Language::German};  ///< target languages
  std::int64_t pieces = 256;                                     ///< size of the vocabulary
  /// Vocabulary to use; null: learned from the training part.
  std::shared_ptr<const Vocabulary> vocabulary{};
  /// Validation pairs as a share of `train`; unset: 0.1.
  std::optional<double> validation{};
};
/// Generated pairs for translation: a number in English words with the target language, "French:
/// twenty-one", and its words in that language. Numbers with few digits are as likely as numbers
/// with many. A tenth of the numbers from 100 on, the same for every seed, is in the test part
/// only. Validation pairs have numbers that training does not have, as far as there are enough; a
/// note counts the others. Shapes as open_pairs().
TENON_API std::shared_ptr<Dataset> number_pairs(Split split, const NumberPairOptions& options = {});

}  // namespace tenon::data
