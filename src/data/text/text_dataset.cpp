// Windows of a text.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "data/samples/joined_dataset.h"
#include "data/text/text_parts.h"
#include "data/text/text_readers.h"
#include "data/tokens/narrow_tokens.h"
#include "data/tokens/pieces.h"
#include "io/text/encoding.h"

namespace tenon::data {
namespace {

std::vector<std::string> class_names_of(const Vocabulary& vocabulary) {
  if (vocabulary.unit() != TextUnit::Bytes) return vocabulary.tokens();
  std::vector<std::string> numbers;  // a byte alone is no text
  for (std::int64_t byte = 0; byte < vocabulary.size(); ++byte)
    numbers.push_back(std::to_string(byte));
  return numbers;
}

class TextDataset final : public DatasetWith<Provenance> {
 public:
  struct Text {
    std::string file;
    Split part;
    NarrowTokens tokens;
    std::vector<std::int64_t> begins;  // of windows
    Notes notes;
  };
  TextDataset(const Vocabulary& vocabulary, Text text, std::int64_t length, std::string description)
      : DatasetWith({.input_shape = {length},
                     .input_dtype = DType::Int64,
                     .target_shape = {length},
                     .classes = vocabulary.size(),
                     .class_names = class_names_of(vocabulary),
                     .text_unit = name(vocabulary.unit()),
                     .description = std::move(description),
                     .in_memory = true}),
        text_(std::move(text)),
        length_(length) {}

  std::int64_t size() const override { return std::ssize(text_.begins); }
  Notes notes() const override { return text_.notes; }
  std::string sample_name(std::int64_t index) const override {
    return window_name(text_.file, text_.part, index);
  }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto *input = static_cast<std::int64_t*>(inputs), *target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      const std::int64_t begin = text_.begins[at(index)];
      input = text_.tokens.copy(begin, length_, input);
      target = text_.tokens.copy(begin + 1, length_, target);
    }
  }

 private:
  Text text_;
  std::int64_t length_;
};

std::string text_of(const std::string& text, const Stretches& stretches) {
  std::string out;
  for (const auto& [from, to] : stretches) out += text.substr(from, to - from);
  return out;
}

// Learns the vocabulary. It has all characters of the whole text; words and pieces are learnt from
// the training part alone.
Vocabulary vocabulary_of(const std::string& whole, const Stretches& train,
                         const TextOptions& options) {
  if (options.vocabulary != nullptr) return *options.vocabulary;
  if (options.unit == TextUnit::Pieces)
    return Vocabulary::pieces(text_of(whole, train), options.words, whole);
  if (options.unit == TextUnit::Words)
    return Vocabulary::of(text_of(whole, train), options.unit, options.words);
  return Vocabulary::of(whole, options.unit, options.words);
}

// Windows of a file's stretches.
TextDataset::Text windows_of(const std::string& file, Split part, const std::string& text,
                             const Stretches& stretches, const Vocabulary& vocabulary,
                             std::int64_t length) {
  constexpr std::size_t kAtOnce = std::size_t{1}
                                  << 20;  // bytes encoded at a time, because 64-bit numbers take
                                          // more memory than the kept tokens
  TextDataset::Text out{file, part, NarrowTokens(vocabulary.size()), {}, {}};
  std::vector<std::int64_t> counts;
  std::int64_t unknown = 0;
  for (const auto& [from, to] : stretches) {
    const std::int64_t before = out.tokens.size();
    const std::string_view stretch = std::string_view(text).substr(from, to - from);
    for (std::size_t begin = 0; begin < stretch.size();) {
      const std::size_t end = cut_between_words(stretch, begin, kAtOnce);
      out.tokens.append(vocabulary.encode(stretch.substr(begin, end - begin), &unknown));
      begin = end;
    }
    counts.push_back(out.tokens.size() - before);
  }
  out.tokens.shrink();
  // The last window's targets need one token more than its inputs.
  out.begins = window_begins(counts, length, 1);
  add_unknown_note(out.notes, unknown, {"word", "words"}, part_text("the text", part), false, file);
  return out;
}

void check_utf8(std::string_view text) {
  for (std::size_t k = 0; k < text.size();) k += code_point(text, k);
}

// The same for a file without a test part.
TextOptions whole_text(const TextOptions& options) {
  TextOptions out = options;
  out.split.test = 0;
  out.test_file.clear();
  return out;
}

// A text, the ranges of its parts, and the vocabulary learnt from the training part.
struct ReadText {
  std::string text;
  TextParts parts;
  Vocabulary vocabulary;
};

bool needs_utf8(const TextOptions& options) {
  return options.unit == TextUnit::Characters || options.unit == TextUnit::Pieces;
}

std::string checked_text(const std::string& file, const TextOptions& options) {
  std::string text = io::as_text(io::read_file(file), file);
  // The whole file is checked, so that the position in an error is a position in the file.
  if (needs_utf8(options)) check_utf8(text);
  return text;
}

TextDataset::Text windows_of_part(const ReadText& read, const std::string& file, Split part,
                                  const TextOptions& options) {
  return windows_of(file, part, read.text,
                    part == Split::All ? Stretches{{0, read.text.size()}} : read.parts.of(part),
                    read.vocabulary, options.length);
}

ReadText read_whole_text(const std::string& file, const TextOptions& options) {
  const bool own_test = !options.test_file.empty();
  const bool words = options.unit == TextUnit::Words || options.unit == TextUnit::Pieces;
  std::string text = checked_text(file, options);
  TextParts parts = text_parts(text, options.split, own_test, words, file);
  Vocabulary vocabulary = vocabulary_of(text, parts.train, options);
  ReadText out{std::move(text), std::move(parts), std::move(vocabulary)};
  if (!out.parts.validation.empty() && !options.split.validation &&
      windows_of_part(out, file, Split::Validation, options).begins.empty()) {
    out.parts = without_validation(out.parts);
    out.vocabulary = vocabulary_of(out.text, out.parts.train, options);
  }
  return out;
}

std::shared_ptr<Dataset> part_of_text(const ReadText& read, const std::string& file, Split split,
                                      const TextOptions& options) {
  const bool other_file = !options.test_file.empty() && split == Split::Test;
  if (read.parts.of(split).empty() && split != Split::All && !other_file) return nullptr;
  const std::string& of_part = other_file ? options.test_file : file;
  const auto of_test_file = [&] {
    const std::string test = checked_text(of_part, options);
    return windows_of(of_part, split, test, {{0, test.size()}}, read.vocabulary, options.length);
  };
  TextDataset::Text own = other_file ? of_test_file() : windows_of_part(read, file, split, options);
  if (own.begins.empty())
    throw ValueError(cat(part_text("the text", split), " has ", own.tokens.size(),
                         " tokens, too few for a window of ", options.length,
                         " and the token after it: give a shorter length"));
  std::string description = cat(own.tokens.size(), " tokens of ", of_part, " in windows of ",
                                options.length, " (", read.vocabulary.size(), " different)");
  return std::make_shared<TextDataset>(read.vocabulary, std::move(own), options.length,
                                       std::move(description));
}

}  // namespace

PartReader read_text(const std::string& file, const TextOptions& options) {
  if (options.length < 1)
    throw make_error<ValueError>(FileName{file}, ": windows of ", options.length,
                                 " tokens: give 1 or more");
  const auto read =
      once([=] { return naming_file(file, [&] { return read_whole_text(file, options); }); });
  return [=](Split part) -> std::shared_ptr<Dataset> {
    if (!options.test_file.empty() && part == Split::All)
      return joined_parts({open_text(file, Split::All, whole_text(options)),
                           open_text(file, Split::Test, options)});
    return naming_file(file, [&] { return part_of_text(read(), file, part, options); });
  };
}

std::shared_ptr<Dataset> open_text(const std::string& file, Split split,
                                   const TextOptions& options) {
  return read_text(file, options)(split);
}

}  // namespace tenon::data
