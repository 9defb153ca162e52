// Text datasets with a tokenizer: windows for language modelling, and windows with masked words.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/philox.h"
#include "base/str.h"
#include "data/samples/joined_dataset.h"
#include "data/text/encode_within.h"
#include "data/text/text_parts.h"
#include "data/text/text_readers.h"
#include "data/tokens/narrow_tokens.h"
#include "io/text/encoding.h"

namespace tenon::data {
namespace {

using TokenRow = std::vector<std::int64_t>;

// The tokens of a part of a text, the starts of its windows, and notes on unknown words.
struct WindowText {
  std::string file;
  Split part;
  NarrowTokens tokens;
  TokenRow begins;
  Notes notes;
};

class TokenWindows : public DatasetWith<Provenance> {
 public:
  TokenWindows(WindowText text, std::int64_t vocabulary, std::int64_t length, std::string about)
      : DatasetWith({.input_shape = {length},
                     .input_dtype = DType::Int64,
                     .target_shape = {length},
                     .classes = vocabulary,
                     .description = std::move(about),
                     .in_memory = true}),
        text_(std::move(text)),
        length_(length) {}

  std::int64_t size() const override { return std::ssize(text_.begins); }
  std::string sample_name(std::int64_t index) const override {
    return window_name(text_.file, text_.part, index);
  }
  Notes notes() const override { return text_.notes; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto *input = static_cast<std::int64_t*>(inputs), *target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      const std::int64_t begin = text_.begins[at(index)];
      input = text_.tokens.copy(begin, length_, input);
      target = text_.tokens.copy(begin + 1, length_, target);
    }
  }

 private:
  WindowText text_;
  std::int64_t length_;
};

// Windows between [CLS] and [SEP]. In each, 15 % of the tokens are predicted (Devlin et al., 2019):
// 80 % of them are replaced by [MASK], 10 % by any token, and 10 % are kept.
class HiddenWords : public DatasetWith<Provenance, AugmentedSamples> {
 public:
  HiddenWords(WindowText text, const Tokenizer& tokenizer, std::int64_t length, std::string about)
      : DatasetWith({.input_shape = {length},
                     .input_dtype = DType::Int64,
                     .target_shape = {length},
                     .classes = tokenizer.size(),
                     .counted_targets = static_cast<double>(hidden_of(length)),
                     .description = std::move(about)}),
        text_(std::move(text)),
        vocabulary_(tokenizer.size()),
        length_(length),
        begin_(token_of(tokenizer, "[CLS]")),
        end_(token_of(tokenizer, "[SEP]")),
        mask_(token_of(tokenizer, "[MASK]")),
        testing_(text_.part != Split::Train) {}

  std::int64_t size() const override { return std::ssize(text_.begins); }
  std::string sample_name(std::int64_t index) const override {
    return window_name(text_.file, text_.part, index);
  }
  Notes notes() const override { return text_.notes; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    fill(0, 0, indices, static_cast<std::int64_t*>(inputs), static_cast<std::int64_t*>(targets));
  }
  void get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch,
                     void* inputs, void* targets) const override {
    fill(seed, epoch, indices, static_cast<std::int64_t*>(inputs),
         static_cast<std::int64_t*>(targets));
  }

 private:
  static constexpr std::uint64_t kHiddenKey = 0x4d41'534b'0000'0000ull;
  static constexpr double kHiddenShare = 0.15;
  static std::int64_t hidden_of(std::int64_t length) {
    return std::max<std::int64_t>(1, std::llround(kHiddenShare * static_cast<double>(length - 2)));
  }
  std::int64_t words() const { return length_ - 2; }
  std::int64_t hidden() const { return hidden_of(length_); }
  void capabilities(Capabilities& offered) const override {
    offered.add<Provenance>(this);
    if (!testing_) offered.add<AugmentedSamples>(this);
  }

  void fill(std::uint64_t seed, std::int64_t epoch, std::span<const std::int64_t> indices,
            std::int64_t* input, std::int64_t* target) const {
    TokenRow places(at(words()));
    for (const std::int64_t index : indices) {
      input[0] = begin_, input[length_ - 1] = end_;
      text_.tokens.copy(text_.begins[at(index)], words(), input + 1);
      std::fill(target, target + length_, kIgnoredTarget);
      for (std::int64_t k = 0; k < words(); ++k) places[at(k)] = k + 1;
      for (std::int64_t k = 0; k < hidden(); ++k) {
        const Philox4 drawn =
            philox(seed ^ kHiddenKey, static_cast<std::uint64_t>(index),
                   (static_cast<std::uint64_t>(epoch) << 32) + static_cast<std::uint64_t>(k));
        const std::int64_t left = words() - k;
        std::swap(places[at(k)], places[at(k + drawn.v[0] % left)]);
        const std::int64_t place = places[at(k)];
        target[place] = input[place];
        const float share = uniform01(drawn.v[1]);
        if (share < 0.8F)
          input[place] = mask_;
        else if (share < 0.9F)
          input[place] = drawn.v[2] % vocabulary_;
      }
      input += length_, target += length_;
    }
  }

  WindowText text_;
  std::int64_t vocabulary_, length_, begin_, end_, mask_;
  bool testing_;
};

// A text, and the ranges of its parts.
struct OwnText {
  std::string text;
  TextParts parts;
};

// The whole text is checked here, because the tokenizer reads one range at a time and would count
// bytes from its start.
std::string whole_text_of(const std::string& file) {
  std::string text = io::as_text(io::read_file(file), file);
  if (const std::size_t bad = io::not_utf8(text); bad != std::string::npos)
    throw make_error<FormatError>(FileName{file}, ": the text is not UTF-8 at byte ", bad,
                                  ": convert it");
  return text;
}

// The windows of a part; `stretches` are its ranges of the file's text.
WindowText token_windows(const std::string& path, Split part, std::string_view text,
                         const Stretches& stretches, const Tokenizer& tokenizer,
                         const TokenTextOptions& options) {
  const std::int64_t words = options.hide_words ? options.length - 2 : options.length,
                     after = options.hide_words ? 0 : 1;
  WindowText out{path, part, NarrowTokens(tokenizer.size()), {}, {}};
  TokenRow counts;
  std::int64_t unknown = 0;
  for (const auto& [from, to] : stretches) {
    const std::int64_t before = out.tokens.size();
    tokenizer.encode_parts(
        text.substr(from, to - from),
        [&](std::span<const std::int64_t> numbers) { out.tokens.append(numbers); }, false,
        &unknown);
    counts.push_back(out.tokens.size() - before);
  }
  out.tokens.shrink();
  // The last window's targets need one token more than its inputs.
  out.begins = window_begins(counts, words, after);
  add_unknown_note(out.notes, unknown, {"word or character", "words or characters"},
                   part_text("the text", part), tokenizer.unknown() < 0, path);
  return out;
}

// The file that the other parts are of.
OwnText read_text_for_tokens(const std::string& file, const Tokenizer& tokenizer,
                             const TokenTextOptions& options) {
  OwnText out{whole_text_of(file), {}};
  out.parts = text_parts(out.text, options.split, !options.test_file.empty(), true, file);
  if (!out.parts.validation.empty() && !options.split.validation &&
      token_windows(file, Split::Validation, out.text, out.parts.validation, tokenizer, options)
          .begins.empty())
    out.parts = without_validation(out.parts);
  return out;
}

std::shared_ptr<Dataset> windows_dataset(WindowText text, const Tokenizer& tokenizer,
                                         const TokenTextOptions& options) {
  if (text.begins.empty())
    throw ValueError(cat(part_text("the text", text.part), " has ", text.tokens.size(),
                         " tokens, too few for a window of ", options.length,
                         ": give a shorter length"));
  std::string about = cat(text.tokens.size(), " tokens of ", text.file, " in windows of ",
                          options.length, options.hide_words ? ", with hidden words" : "");
  if (options.hide_words)
    return std::make_shared<HiddenWords>(std::move(text), tokenizer, options.length,
                                         std::move(about));
  return std::make_shared<TokenWindows>(std::move(text), tokenizer.size(), options.length,
                                        std::move(about));
}

}  // namespace

PartReader read_token_text(const std::string& file, std::shared_ptr<const Tokenizer> tokenizer,
                           const TokenTextOptions& options) {
  const std::int64_t least = options.hide_words ? 3 : 1;
  if (options.length < least)
    throw make_error<ValueError>(FileName{file}, ": windows of ", options.length, " tokens: give ",
                                 least, " or more");
  const auto own = once([=] {
    return naming_file(file, [&] { return read_text_for_tokens(file, *tokenizer, options); });
  });
  return [=](Split part) -> std::shared_ptr<Dataset> {
    const auto windows = [&](const std::string& path, Split of, std::string_view text,
                             const Stretches& stretches) {
      return naming_file(path, [&] {
        return windows_dataset(token_windows(path, of, text, stretches, *tokenizer, options),
                               *tokenizer, options);
      });
    };
    const auto of_test_file = [&] {
      const std::string text = whole_text_of(options.test_file);
      (void)text_parts(text, options.split, true, true, file);  // checks the options
      return windows(options.test_file, Split::Test, text, {{0, text.size()}});
    };
    const bool own_test = !options.test_file.empty();
    if (own_test && part == Split::Test) return of_test_file();
    const OwnText& read = own();
    if (part == Split::All) {
      auto all = windows(file, part, read.text, {{0, read.text.size()}});
      return own_test ? joined_dataset({std::move(all), of_test_file()}) : all;
    }
    if (read.parts.of(part).empty()) return nullptr;
    return windows(file, part, read.text, read.parts.of(part));
  };
}

std::shared_ptr<Dataset> open_token_text(const std::string& file, Split split,
                                         const Tokenizer& tokenizer,
                                         const TokenTextOptions& options) {
  return read_token_text(file, non_owning(tokenizer), options)(split);
}

}  // namespace tenon::data
