// Text: how it becomes numbers and comes back, and sets of windows that a language model learns
// from.
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

/// What a token is. Words are runs of letters, digits, apostrophes and bytes beyond ASCII; a line's
/// end and every other sign is a token of its own, and spaces are not kept. Pieces are parts of
/// words that a text has often (Sennrich et al., "Neural machine translation of rare words with
/// subword units", 2016); a space belongs to the word behind it, and nothing is lost.
enum class TextUnit { Bytes, Characters, Words, Pieces };

/// "bytes", "chars", "words" or "pieces". Throws ValueError with a near miss.
TENON_API TextUnit text_unit(const std::string& name);
TENON_API const char* name(TextUnit unit);

/// The tokens of a language model by number.
class TENON_API Vocabulary {
 public:
  /// The tokens of a text: all 256 bytes; its characters (UTF-8 code points) in ascending order; or
  /// "<unk>" and its `most` - 1 commonest words, commonest first; or pieces(). Throws FormatError
  /// for characters of text that is not UTF-8.
  static Vocabulary of(std::string_view text, TextUnit unit, std::int64_t most = 10'000);
  /// Up to `most` pieces learnt from a text: those that are given as `first` and stand for no text,
  /// then the characters of the text and of `alphabet`, then what the commonest neighbours are
  /// together, in the order in which they were joined. Throws as of(), and ValueError where so many
  /// hold not even the characters.
  static Vocabulary pieces(std::string_view text, std::int64_t most, std::string_view alphabet = {},
                           std::vector<std::string> first = {});
  /// One that was kept. Throws ValueError for a token that is there twice.
  Vocabulary(TextUnit unit, std::vector<std::string> tokens);

  TextUnit unit() const { return unit_; }
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// A text's tokens. Words that are not among them are "<unk>", and their number is added to
  /// `unknown`; throws ValueError naming a character that is not.
  std::vector<std::int64_t> encode(std::string_view text, std::int64_t* unknown = nullptr) const;
  /// The text of tokens; words with spaces between them where people set them. Throws ValueError
  /// for a number outside.
  std::string decode(std::span<const std::int64_t> tokens) const;
  /// What `token` adds to a text that ends in `before` ("" at its start). Throws ValueError for a
  /// number outside.
  std::string piece(std::int64_t token, std::string_view before) const;

 private:
  TextUnit unit_;
  std::vector<std::string> tokens_;
  struct Numbers;  // by token
  std::shared_ptr<const Numbers> numbers_;
};

struct TextOptions {
  TextUnit unit = TextUnit::Characters;
  std::int64_t length = 64;                        ///< tokens in a window
  std::int64_t words = 10'000;                     ///< the largest vocabulary, for words and pieces
  std::shared_ptr<const Vocabulary> vocabulary{};  ///< in place of the text's own, whatever `unit`
  /// Parts are stretches of the text: training, validation, test; of a fold the test part is one of
  /// `folds` stretches. Neither groups nor classes, and nothing is shuffled.
  SplitOptions split{};
  std::string test_file{};  ///< text for testing; "": a stretch of the file
};
/// Windows of a text file: input [length] int64, target [length]: the same one token later. No
/// token is in two parts. Windows begin at every `length`-th token of a part, so that an epoch sees
/// each once. Where the validation part is too short for a window and its share is not set,
/// training has it. Throws IoError, FormatError, or ValueError for a text too short.
TENON_API std::shared_ptr<Dataset> open_text(const std::string& file, Split split,
                                             const TextOptions& options = {});

// ---- Text in the numbers of a tokenizer

class Tokenizer;

/// What of texts a network does not see: the end of those that are too long, and words or signs
/// that a vocabulary does not hold. Data sets say it in Dataset::notes(); whoever encodes texts one
/// by one counts it with this.
class TENON_API TextLosses {
 public:
  /// Counts one text, which stands at `where` ("rows.tsv, line 7").
  void add(bool cut, std::int64_t unknown, std::string_view where);
  /// Those that are not known were left out, for the vocabulary has no token for them.
  void leave_out_unknown() { left_out_ = true; }
  std::int64_t texts() const { return texts_; }
  std::int64_t cut() const { return cut_; }          ///< texts whose end was cut off
  std::int64_t unknown() const { return unknown_; }  ///< words or signs
  /// One note of each kind of loss there was. `length` is what texts were cut to; `texts` says
  /// which they are: "texts of the training part".
  Notes notes(std::int64_t length, std::string_view texts = "texts") const;

 private:
  std::int64_t texts_ = 0, cut_ = 0, unknown_ = 0, with_unknown_ = 0;
  bool left_out_ = false;
  std::string first_cut_, first_unknown_;
};

/// The numbers of a text with those before and behind it; of a longer one the first `length`, the
/// last of which is what ends a text ([SEP]). What is lost is counted in `losses`, of a text that
/// stands at `where`.
TENON_API std::vector<std::int64_t> encode_within(const Tokenizer& tokenizer, std::string_view text,
                                                  std::int64_t length, TextLosses* losses = nullptr,
                                                  std::string_view where = {});

/// Tokens, and of each whether it is of the first text (0) or of the second (1).
struct TypedTokens {
  std::vector<std::int64_t> tokens, types;
};
/// [CLS] first [SEP] second [SEP], as BERT reads two texts. Beyond `length` the longer one is cut
/// at its end, as Hugging Face's tokenizers do ("longest_first"). `losses` and `where` as of
/// encode_within(). Throws ValueError for a tokenizer without these tokens.
TENON_API TypedTokens encode_pair_within(const Tokenizer& tokenizer, std::string_view first,
                                         std::string_view second, std::int64_t length,
                                         TextLosses* losses = nullptr, std::string_view where = {});

struct TokenTextOptions {
  std::int64_t length = 64;  ///< tokens in a window
  /// BERT's training: windows lie between [CLS] and [SEP], and 15 % of each are to be told, of
  /// which [MASK] stands for 80 %, any token for 10 %, and 10 % stay. Which they are depends on
  /// (seed, epoch, example) alone; for testing they are always the same.
  bool hide_words = false;
  SplitOptions split{};     ///< as TextOptions::split
  std::string test_file{};  ///< text for testing; "": a stretch of the file
};
/// As open_text(), by a tokenizer. Targets are the tokens one place later, or the hidden ones and
/// kIgnoredTarget elsewhere. Throws as open_text(), and ValueError for a tokenizer without [MASK].
TENON_API std::shared_ptr<Dataset> open_token_text(const std::string& file, Split split,
                                                   const Tokenizer& tokenizer,
                                                   const TokenTextOptions& options = {});

struct ClassLineOptions {
  std::int64_t length = 128;  ///< tokens of a line; longer ones are cut
  std::string test_file{};    ///< lines for testing; "": a part of the file
  /// The class stands behind the texts. A header that names it ("label", "class", "target") says so
  /// by itself.
  bool class_last = false;
  RowFormat rows{};
  SplitOptions split{};
};
/// Lines "class TAB text" of a file, or other rows (RowFormat): input [L] int64 with the longest's
/// tokens, shorter ones filled up with kPad; target the class, numbered in alphabetical order. Of
/// lines "class TAB text TAB text" inputs are [2, L]: tokens, and their types. Throws IoError,
/// FormatError naming a line, or ValueError.
TENON_API std::shared_ptr<Dataset> open_class_lines(const std::string& file, Split split,
                                                    const Tokenizer& tokenizer,
                                                    const ClassLineOptions& options = {});

struct SpanOptions {
  std::int64_t length = 384;   ///< tokens of a question and a part of its text
  std::int64_t stride = 128;   ///< tokens that neighbouring parts of a text share
  std::int64_t question = 64;  ///< tokens of a question; longer ones are cut
  std::string test_file{};     ///< questions for testing; "": a part of the file
  SplitOptions split{};        ///< questions about one text stay in one part
};
/// Questions, and where in a text their answers stand: a file of SQuAD's JSON, or of lines
/// "question TAB text TAB answer TAB place" (the place, in characters from 0, may be left out;
/// without an answer the text has none). Examples are parts of texts behind their questions: input
/// [2, L] int64 of tokens and their types, filled up with kPad; target [2]: the places of the
/// answer's first and last token, 0 and 0 where it stands elsewhere. Throws IoError, FormatError
/// naming a line or a question, or ValueError.
TENON_API std::shared_ptr<Dataset> open_spans(const std::string& file, Split split,
                                              const Tokenizer& tokenizer,
                                              const SpanOptions& options = {});

// ---- Pairs of sequences: what a network that translates learns from

/// Tokens of a vocabulary of pairs that stand for no text: what fills a row up, what a translation
/// begins after, and what ends a source and a translation.
constexpr std::int64_t kPad = 0, kBegin = 1, kEnd = 2;

enum class Language { English, French, German };
/// A number from 0 to 999,999,999 in words, as it is written out in full: "twenty-one", "vingt et
/// un", "einundzwanzig". Throws ValueError for another.
TENON_API std::string number_words(std::int64_t number, Language language);

struct PairOptions {
  std::int64_t pieces = 8'000;  ///< of the vocabulary that both sides share
  std::int64_t length = 0;      ///< pairs with a side of more tokens are left out; 0: none is
  std::shared_ptr<const Vocabulary> vocabulary{};  ///< in place of pieces learnt here
  SplitOptions split{};
  std::string test_file{};  ///< lines for testing; "": a part of the file
  RowFormat rows{};
};
/// Lines "source TAB translation" of a text file, or other rows (RowFormat). Input [2, L]
/// int64: the source and kEnd; kBegin and the translation; both filled up with kPad. Target [L]:
/// the translation and kEnd, then kIgnoredTarget. Pieces are learnt from the training part. Throws
/// IoError, FormatError naming a line, or ValueError.
TENON_API std::shared_ptr<Dataset> open_pairs(const std::string& file, Split split,
                                              const PairOptions& options = {});

struct NumberPairOptions {
  std::int64_t train = 100'000, test = 2'000;  ///< pairs
  std::uint64_t seed = 0;                      ///< of the draws
  std::int64_t below = 1'000'000'000;          ///< the numbers; at least 200
  std::vector<Language> to{Language::French, Language::German};
  std::int64_t pieces = 256;
  std::shared_ptr<const Vocabulary> vocabulary{};  ///< in place of pieces learnt here
  std::optional<double> validation{};  ///< pairs for validation as a share of `train`; unset: 0.1
};
/// Drawn numbers in English words with the language that is asked for, "French: twenty-one", and
/// their words there. Numbers of few digits are as likely as those of many. A tenth of the numbers
/// from 100 on, the same for every seed, is in the test part only. Validation pairs are of numbers
/// that training does not have, as far as there are others; those that it has are a note.
TENON_API std::shared_ptr<Dataset> number_pairs(Split split, const NumberPairOptions& options = {});

}  // namespace tenon::data
