// Windows of a text.
#include <algorithm>
#include <cstring>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>

#include "base/index.h"
#include "base/str.h"
#include "data/pieces.h"

namespace tenon::data {
namespace {

constexpr std::int64_t kTestShare = 10;  // one token in so many, the last ones

class TextDataset final : public Dataset {
 public:
  TextDataset(Vocabulary vocabulary, std::vector<std::int64_t> tokens, std::int64_t length,
              std::string description)
      : vocabulary_(std::move(vocabulary)),
        tokens_(std::move(tokens)),
        length_(length),
        description_(std::move(description)) {}

  // The last window's targets need one token more than its inputs.
  std::int64_t size() const override { return (std::ssize(tokens_) - 1) / length_; }
  Shape input_shape() const override { return {length_}; }
  DType input_dtype() const override { return DType::Int64; }
  Shape target_shape() const override { return {length_}; }
  DType target_dtype() const override { return DType::Int64; }
  std::int64_t classes() const override { return vocabulary_.size(); }
  std::vector<std::string> class_names() const override {
    if (vocabulary_.unit() != TextUnit::Bytes) return vocabulary_.tokens();
    std::vector<std::string> numbers;  // a byte alone is no text
    for (std::int64_t byte = 0; byte < vocabulary_.size(); ++byte)
      numbers.push_back(std::to_string(byte));
    return numbers;
  }
  std::string text_unit() const override { return name(vocabulary_.unit()); }
  std::string describe() const override { return description_; }
  bool in_memory() const override { return true; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    const std::size_t bytes = at(length_) * sizeof(std::int64_t);
    auto *input = static_cast<char*>(inputs), *target = static_cast<char*>(targets);
    for (const std::int64_t index : indices) {
      const std::int64_t* window = tokens_.data() + index * length_;
      std::memcpy(input, window, bytes);
      std::memcpy(target, window + 1, bytes);
      input += bytes;
      target += bytes;
    }
  }

 private:
  Vocabulary vocabulary_;
  std::vector<std::int64_t> tokens_;
  std::int64_t length_;
  std::string description_;
};

// Where the last tenth begins: not within a character.
std::size_t test_begin(const std::string& text) {
  std::size_t at = text.size() - text.size() / kTestShare;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  return at;
}

}  // namespace

std::shared_ptr<Dataset> open_text(const std::string& file, Split split,
                                   const TextOptions& options) {
  if (options.length < 1)
    throw ValueError(cat(file, ": windows of ", options.length, " tokens: give 1 or more"));
  const std::string text = io::read_file(file);
  const std::size_t middle = test_begin(text);
  const std::string_view whole = text, train = whole.substr(0, middle),
                         part = split == Split::Train ? train : whole.substr(middle);
  try {
    // Of whichever part: the place that is named is one of the file.
    if (options.unit == TextUnit::Characters || options.unit == TextUnit::Pieces)
      for (std::size_t k = 0; k < whole.size();) k += code_point(whole, k);
    // Every character must have a number; which words are common, only the training part says.
    Vocabulary vocabulary = options.vocabulary != nullptr ? *options.vocabulary
                            : options.unit == TextUnit::Pieces
                                ? Vocabulary::pieces(train, options.words, whole)
                                : Vocabulary::of(options.unit == TextUnit::Words ? train : whole,
                                                 options.unit, options.words);
    std::vector<std::int64_t> tokens = vocabulary.encode(part);
    if (std::ssize(tokens) <= options.length)
      throw ValueError(cat("its ", split == Split::Train ? "training" : "test", " part has ",
                           tokens.size(), " tokens, too few for a window of ", options.length,
                           " and the token after it: give a shorter length"));
    std::string description = cat(tokens.size(), " tokens of ", file, " in windows of ",
                                  options.length, " (", vocabulary.size(), " different)");
    return std::make_shared<TextDataset>(std::move(vocabulary), std::move(tokens), options.length,
                                         std::move(description));
  } catch (const FormatError& error) {
    throw FormatError(cat(file, ": ", error.what()));
  } catch (const ValueError& error) {
    throw ValueError(cat(file, ": ", error.what()));
  }
}

}  // namespace tenon::data
