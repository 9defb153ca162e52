// Text in the numbers of a tokenizer: windows to go on from, windows with hidden words, and lines
// with a class.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "base/index.h"
#include "base/philox.h"
#include "base/str.h"

namespace tenon::data {
namespace {

using TokenRow = std::vector<std::int64_t>;

constexpr std::int64_t kTestPartOf = 10;  // one token, or line, in so many

std::int64_t token_of(const Tokenizer& tokenizer, const char* token) {
  const std::int64_t number = tokenizer.number(token);
  if (number < 0)
    throw ValueError(
        cat("its tokenizer has no ", token, ": this takes one of BERT's kind (WordPiece)"));
  return number;
}

// The part of a text that is for training, or the rest; cut between two signs.
std::string_view part_of(std::string_view text, Split split) {
  const auto share = static_cast<std::size_t>(kTestPartOf);
  std::size_t middle = text.size() - text.size() / share;
  while (middle < text.size() && (static_cast<unsigned char>(text[middle]) & 0xc0) == 0x80)
    ++middle;
  return split == Split::Train ? text.substr(0, middle) : text.substr(middle);
}

class TokenWindows : public Dataset {
 public:
  TokenWindows(TokenRow tokens, std::int64_t vocabulary, std::int64_t length, std::string about)
      : tokens_(std::move(tokens)),
        vocabulary_(vocabulary),
        length_(length),
        description_(std::move(about)) {}

  // The last window's targets need one token more than its inputs.
  std::int64_t size() const override { return (std::ssize(tokens_) - 1) / length_; }
  Shape input_shape() const override { return {length_}; }
  DType input_dtype() const override { return DType::Int64; }
  Shape target_shape() const override { return {length_}; }
  DType target_dtype() const override { return DType::Int64; }
  std::int64_t classes() const override { return vocabulary_; }
  std::string describe() const override { return description_; }
  bool in_memory() const override { return true; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto *input = static_cast<std::int64_t*>(inputs), *target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      const std::int64_t* window = tokens_.data() + index * length_;
      input = std::copy(window, window + length_, input);
      target = std::copy(window + 1, window + length_ + 1, target);
    }
  }

 private:
  TokenRow tokens_;
  std::int64_t vocabulary_, length_;
  std::string description_;
};

// Windows between [CLS] and [SEP]. Of each 15 % of the tokens are to be told (Devlin et al., 2019):
// [MASK] stands for 80 % of them, any token for 10 %, and 10 % are as they are.
class HiddenWords : public Dataset {
 public:
  HiddenWords(TokenRow tokens, const Tokenizer& tokenizer, std::int64_t length, bool testing,
              std::string about)
      : tokens_(std::move(tokens)),
        vocabulary_(tokenizer.size()),
        length_(length),
        begin_(token_of(tokenizer, "[CLS]")),
        end_(token_of(tokenizer, "[SEP]")),
        mask_(token_of(tokenizer, "[MASK]")),
        testing_(testing),
        description_(std::move(about)) {}

  std::int64_t size() const override { return std::ssize(tokens_) / words(); }
  Shape input_shape() const override { return {length_}; }
  DType input_dtype() const override { return DType::Int64; }
  Shape target_shape() const override { return {length_}; }
  DType target_dtype() const override { return DType::Int64; }
  std::int64_t classes() const override { return vocabulary_; }
  double counted_targets() const override { return static_cast<double>(hidden()); }
  std::string describe() const override { return description_; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    fill(0, 0, indices, static_cast<std::int64_t*>(inputs), static_cast<std::int64_t*>(targets));
  }
  bool drawn_anew() const override { return !testing_; }
  void get_drawn(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch,
                 void* inputs, void* targets) const override {
    if (testing_) return get(indices, inputs, targets);
    fill(seed, epoch, indices, static_cast<std::int64_t*>(inputs),
         static_cast<std::int64_t*>(targets));
  }

 private:
  static constexpr std::uint64_t kHiddenKey = 0x4d41'534b'0000'0000ull;
  static constexpr double kHiddenShare = 0.15;
  std::int64_t words() const { return length_ - 2; }
  std::int64_t hidden() const {
    return std::max<std::int64_t>(1, std::llround(kHiddenShare * static_cast<double>(words())));
  }

  void fill(std::uint64_t seed, std::int64_t epoch, std::span<const std::int64_t> indices,
            std::int64_t* input, std::int64_t* target) const {
    TokenRow places(at(words()));
    for (const std::int64_t index : indices) {
      input[0] = begin_, input[length_ - 1] = end_;
      const std::int64_t* window = tokens_.data() + index * words();
      std::copy(window, window + words(), input + 1);
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

  TokenRow tokens_;
  std::int64_t vocabulary_, length_, begin_, end_, mask_;
  bool testing_;
  std::string description_;
};

struct ClassLine {
  std::string name, text, second;
};

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t from = 0;;) {
    const std::size_t tab = line.find('\t', from);
    out.push_back(line.substr(from, tab - from));
    if (tab == std::string_view::npos) return out;
    from = tab + 1;
  }
}

// Lines of a class and as many texts as the first line has.
struct ClassLineSet {
  std::vector<ClassLine> lines;
  bool pairs = false;
};

ClassLineSet parse_class_lines(std::string_view text, bool class_last) {
  ClassLineSet out;
  std::int64_t number = 0;
  std::size_t wanted = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string_view line = text.substr(from, end - from);
    if (line.ends_with('\r')) line.remove_suffix(1);
    from = end + 1;
    ++number;
    if (line.empty()) continue;
    std::vector<std::string_view> columns = columns_of(line);
    if (class_last) std::rotate(columns.begin(), columns.end() - 1, columns.end());
    const std::size_t count = columns.size();
    if (count < 2 || count > 3 || columns[0].empty())
      throw FormatError(cat("line ", number, " is not ",
                            class_last ? "TEXT TAB CLASS, or TEXT TAB TEXT TAB CLASS"
                                       : "CLASS TAB TEXT, or CLASS TAB TEXT TAB TEXT"));
    if (wanted == 0) wanted = count;
    if (count != wanted)
      throw FormatError(cat("line ", number, " has ", count - 1, count == 2 ? " text" : " texts",
                            " where the first line has ", wanted - 1));
    out.lines.push_back({std::string(columns[0]), std::string(columns[1]),
                         count == 3 ? std::string(columns[2]) : std::string()});
  }
  out.pairs = wanted == 3;
  return out;
}

class ClassLines : public Dataset {
 public:
  ClassLines(std::vector<std::string> names, const ClassLineSet& set, const Tokenizer& tokenizer,
             std::int64_t length, std::string about)
      : names_(std::move(names)), description_(std::move(about)), pairs_(set.pairs) {
    std::vector<TypedTokens> rows;
    rows.reserve(set.lines.size());
    classes_.reserve(set.lines.size());
    for (const ClassLine& line : set.lines) {
      rows.push_back(pairs_ ? encode_pair_within(tokenizer, line.text, line.second, length)
                            : TypedTokens{encode_within(tokenizer, line.text, length), {}});
      length_ = std::max(length_, std::ssize(rows.back().tokens));
      const auto name = std::lower_bound(names_.begin(), names_.end(), line.name);
      if (name == names_.end() || *name != line.name)
        throw ValueError(cat("class '", line.name, "' is not among those of training"));
      classes_.push_back(name - names_.begin());
    }
    inputs_.assign(at(row_size()) * rows.size(), kPad);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      std::int64_t* row = inputs_.data() + k * at(row_size());
      std::copy(rows[k].tokens.begin(), rows[k].tokens.end(), row);
      std::copy(rows[k].types.begin(), rows[k].types.end(), row + length_);
    }
  }

  std::int64_t size() const override { return std::ssize(classes_); }
  Shape input_shape() const override { return pairs_ ? Shape{2, length_} : Shape{length_}; }
  DType input_dtype() const override { return DType::Int64; }
  std::int64_t classes() const override { return std::ssize(names_); }
  std::vector<std::string> class_names() const override { return names_; }
  std::string describe() const override { return description_; }
  bool in_memory() const override { return true; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto *input = static_cast<std::int64_t*>(inputs), *target = static_cast<std::int64_t*>(targets);
    for (const std::int64_t index : indices) {
      const std::int64_t* row = inputs_.data() + index * row_size();
      input = std::copy(row, row + row_size(), input);
      *target++ = classes_[at(index)];
    }
  }

 private:
  std::int64_t row_size() const { return pairs_ ? 2 * length_ : length_; }
  std::vector<std::string> names_;
  std::string description_;
  bool pairs_;
  std::int64_t length_ = 1;
  TokenRow inputs_, classes_;
};

}  // namespace

TokenRow encode_within(const Tokenizer& tokenizer, std::string_view text, std::int64_t length) {
  TokenRow tokens = tokenizer.encode(text);
  if (std::ssize(tokens) <= length) return tokens;
  // What ends a text stays: [SEP].
  const TokenRow around = tokenizer.encode("");
  const std::int64_t last = tokens.back();
  tokens.resize(at(length));
  if (!around.empty() && around.back() == last && length > 0) tokens.back() = last;
  return tokens;
}

TypedTokens encode_pair_within(const Tokenizer& tokenizer, std::string_view first,
                               std::string_view second, std::int64_t length) {
  TokenRow a = tokenizer.encode(first, false), b = tokenizer.encode(second, false);
  const std::int64_t begin = token_of(tokenizer, "[CLS]"), end = token_of(tokenizer, "[SEP]");
  const std::int64_t most = std::max<std::int64_t>(0, length - 3);
  if (std::ssize(a) + std::ssize(b) > most) {
    // The longer one gives; both where neither fits half the places.
    const bool swapped = a.size() > b.size();
    std::int64_t shorter = std::min(std::ssize(a), std::ssize(b));
    std::int64_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
    if (shorter + longer > most) shorter = most / 2, longer = most / 2 + most % 2;
    (swapped ? b : a).resize(at(shorter));
    (swapped ? a : b).resize(at(longer));
  }
  TypedTokens out{{begin}, {}};
  out.tokens.insert(out.tokens.end(), a.begin(), a.end());
  out.tokens.push_back(end);
  out.types.assign(out.tokens.size(), 0);
  out.tokens.insert(out.tokens.end(), b.begin(), b.end());
  out.tokens.push_back(end);
  out.types.resize(out.tokens.size(), 1);
  return out;
}

std::shared_ptr<Dataset> open_token_text(const std::string& file, Split split,
                                         const Tokenizer& tokenizer,
                                         const TokenTextOptions& options) {
  const std::int64_t least = options.hide_words ? 3 : 1;
  if (options.length < least)
    throw ValueError(
        cat(file, ": windows of ", options.length, " tokens: give ", least, " or more"));
  const std::string text = io::read_file(file);
  try {
    TokenRow tokens = tokenizer.encode(part_of(text, split), false);
    const std::int64_t needed = options.hide_words ? options.length - 2 : options.length + 1;
    if (std::ssize(tokens) < needed)
      throw ValueError(cat("its ", split == Split::Train ? "training" : "test", " part has ",
                           tokens.size(), " tokens, too few for a window of ", options.length,
                           ": give a shorter length"));
    std::string about = cat(tokens.size(), " tokens of ", file, " in windows of ", options.length,
                            options.hide_words ? ", with hidden words" : "");
    if (options.hide_words)
      return std::make_shared<HiddenWords>(std::move(tokens), tokenizer, options.length,
                                           split == Split::Test, std::move(about));
    return std::make_shared<TokenWindows>(std::move(tokens), tokenizer.size(), options.length,
                                          std::move(about));
  } catch (const FormatError& error) {
    throw FormatError(cat(file, ": ", error.what()));
  } catch (const ValueError& error) {
    throw ValueError(cat(file, ": ", error.what()));
  }
}

std::shared_ptr<Dataset> open_class_lines(const std::string& file, Split split,
                                          const Tokenizer& tokenizer,
                                          const ClassLineOptions& options) {
  if (options.length < 1)
    throw ValueError(cat(file, ": lines of ", options.length, " tokens: give 1 or more"));
  const std::string& of_part =
      split == Split::Test && !options.test_file.empty() ? options.test_file : file;
  try {
    if (tokenizer.number("[PAD]") > 0)
      throw ValueError(
          cat("its tokenizer's [PAD] is ", tokenizer.number("[PAD]"), ", must be 0: BERT's"));
    const ClassLineSet all = parse_class_lines(io::read_file(file), options.class_last);
    std::set<std::string> names;
    for (const ClassLine& line : all.lines) names.insert(line.name);
    ClassLineSet part{{}, all.pairs};
    if (!options.test_file.empty()) {
      part = split == Split::Train ? all
                                   : parse_class_lines(io::read_file(of_part), options.class_last);
      if (part.pairs != all.pairs && !part.lines.empty())
        throw ValueError(cat("has lines of ", part.pairs ? "two texts, " : "one text, ", file,
                             " of ", all.pairs ? "two" : "one"));
    } else {
      for (std::size_t k = 0; k < all.lines.size(); ++k)
        if ((static_cast<std::int64_t>(k) % kTestPartOf == kTestPartOf - 1) ==
            (split == Split::Test))
          part.lines.push_back(all.lines[k]);
    }
    if (part.lines.empty())
      throw ValueError(cat("has no lines for ", split == Split::Train ? "training" : "testing",
                           ", which every tenth is for"));
    if (all.pairs && options.length < 4)
      throw ValueError(cat("two texts of ", options.length, " tokens: give 4 or more"));
    std::string about = cat(part.lines.size(), all.pairs ? " pairs of texts of " : " lines of ",
                            of_part, " in ", names.size(), " classes");
    return std::make_shared<ClassLines>(std::vector<std::string>(names.begin(), names.end()), part,
                                        tokenizer, options.length, std::move(about));
  } catch (const FormatError& error) {
    throw FormatError(cat(of_part, ": ", error.what()));
  } catch (const ValueError& error) {
    throw ValueError(cat(of_part, ": ", error.what()));
  }
}

}  // namespace tenon::data
