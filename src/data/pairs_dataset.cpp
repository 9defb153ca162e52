// Pairs of sequences: of a file, and of numbers in words.
#include <algorithm>
#include <array>
#include <cstring>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>

#include "base/index.h"
#include "base/philox.h"
#include "base/str.h"
#include "data/pieces.h"

namespace tenon::data {
namespace {

constexpr std::int64_t kTestEvery = 10;  // lines of a file
const std::vector<std::string> kMarks{"<pad>", "<s>", "</s>"};

struct TextPair {
  std::string source, target;
};

struct TokenPair {
  std::vector<std::int64_t> source, target;
};

class PairsDataset final : public Dataset {
 public:
  PairsDataset(std::vector<std::string> pieces, const std::vector<TokenPair>& pairs,
               std::string description)
      : pieces_(std::move(pieces)),
        description_(std::move(description)),
        count_(std::ssize(pairs)) {
    for (const TokenPair& pair : pairs) {
      length_ = std::max({length_, std::ssize(pair.source) + 1, std::ssize(pair.target) + 1});
      counted_ += static_cast<double>(pair.target.size() + 1) / static_cast<double>(pairs.size());
    }
    inputs_.assign(at(2 * length_ * count_), kPad);
    targets_.assign(at(length_ * count_), kIgnoredTarget);
    auto input = inputs_.begin(), target = targets_.begin();
    for (const TokenPair& pair : pairs) {
      *std::copy(pair.source.begin(), pair.source.end(), input) = kEnd;
      input += length_;
      *input = kBegin;
      std::copy(pair.target.begin(), pair.target.end(), input + 1);
      input += length_;
      *std::copy(pair.target.begin(), pair.target.end(), target) = kEnd;
      target += length_;
    }
  }

  std::int64_t size() const override { return count_; }
  Shape input_shape() const override { return {2, length_}; }
  DType input_dtype() const override { return DType::Int64; }
  Shape target_shape() const override { return {length_}; }
  DType target_dtype() const override { return DType::Int64; }
  std::int64_t classes() const override { return std::ssize(pieces_); }
  std::vector<std::string> class_names() const override { return pieces_; }
  std::string text_unit() const override { return name(TextUnit::Pieces); }
  double counted_targets() const override { return counted_; }
  std::string describe() const override { return description_; }
  bool in_memory() const override { return true; }

  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    const std::size_t row = at(length_) * sizeof(std::int64_t);
    auto *input = static_cast<char*>(inputs), *target = static_cast<char*>(targets);
    for (const std::int64_t index : indices) {
      std::memcpy(input, inputs_.data() + 2 * length_ * index, 2 * row);
      std::memcpy(target, targets_.data() + length_ * index, row);
      input += 2 * row;
      target += row;
    }
  }

 private:
  std::vector<std::string> pieces_;
  std::string description_;
  std::int64_t count_, length_ = 1;
  double counted_ = 0;
  std::vector<std::int64_t> inputs_, targets_;
};

std::string text_of(std::span<const TextPair> pairs) {
  std::string text;
  for (const TextPair& pair : pairs) text += pair.source + "\n" + pair.target + "\n";
  return text;
}

std::vector<TokenPair> encode(const std::vector<TextPair>& pairs, const Vocabulary& vocabulary) {
  std::unordered_map<std::string, std::int64_t> numbers;
  for (const std::string& token : vocabulary.tokens()) numbers.emplace(token, std::ssize(numbers));
  PieceEncoder encoder(numbers);
  std::vector<TokenPair> out;
  out.reserve(pairs.size());
  for (const TextPair& pair : pairs) out.push_back({encoder(pair.source), encoder(pair.target)});
  return out;
}

// ---- Files --------------------------------------------------------------------------------------

std::vector<TextPair> parse_pairs(std::string_view text) {
  std::vector<TextPair> out;
  std::int64_t line = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string_view row = text.substr(from, end - from);
    if (row.ends_with('\r')) row.remove_suffix(1);
    from = end + 1;
    ++line;
    if (row.empty()) continue;
    const std::size_t tab = row.find('\t');
    if (tab == std::string_view::npos || row.find('\t', tab + 1) != std::string_view::npos)
      throw FormatError(cat("line ", line, " is not SOURCE TAB TRANSLATION"));
    out.push_back({std::string(row.substr(0, tab)), std::string(row.substr(tab + 1))});
  }
  return out;
}

// ---- Numbers ------------------------------------------------------------------------------------

constexpr std::int64_t kLeastHeldOut = 100, kHeldOutShare = 10;
constexpr std::size_t kPairsThatTeachPieces = 4'000;
constexpr std::uint64_t kSplitKey = 0x5f11'7e57'0000'0000ull;

bool is_held_out(std::int64_t number) {
  return number >= kLeastHeldOut &&
         philox(kSplitKey, static_cast<std::uint64_t>(number), 0).v[0] % kHeldOutShare == 0;
}

// A number of digits, then a number of so many, until it is one of the split's.
std::int64_t draw_number(std::uint64_t key, std::int64_t index, std::int64_t below, Split split) {
  std::int64_t digits = 1;
  for (std::int64_t n = below - 1; n >= 10; n /= 10) ++digits;
  for (std::uint64_t attempt = 0;; ++attempt) {
    const Philox4 words = philox(key, static_cast<std::uint64_t>(index), attempt);
    std::int64_t low = 1, high = 10;
    for (std::int64_t k = words.v[0] % digits; k > 0; --k) low = high, high *= 10;
    if (low == 1) low = 0;
    const std::int64_t number = low + words.v[1] % (std::min(high, below) - low);
    if (is_held_out(number) == (split == Split::Test)) return number;
  }
}

std::vector<TextPair> draw_pairs(Split split, std::int64_t count, const NumberPairOptions& o) {
  std::vector<TextPair> out;
  out.reserve(at(count));
  const std::uint64_t key = split == Split::Train ? o.seed : o.seed ^ kSplitKey;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t number = draw_number(key, i, o.below, split);
    const Language to = o.to[at(i) % o.to.size()];
    out.push_back({cat(to == Language::French ? "French: " : "German: ",
                       number_words(number, Language::English)),
                   number_words(number, to)});
  }
  return out;
}

}  // namespace

std::shared_ptr<Dataset> open_pairs(const std::string& file, Split split,
                                    const PairOptions& options) {
  const std::string text = io::read_file(file);
  try {
    std::vector<TextPair> train, test;
    for (TextPair& pair : parse_pairs(text)) {
      const bool tests = (std::ssize(train) + std::ssize(test)) % kTestEvery == kTestEvery - 1;
      (tests ? test : train).push_back(std::move(pair));
    }
    if (test.empty()) throw ValueError(cat("has ", train.size(), " pairs: 10 or more are needed"));
    // Every character must have a number; which pieces are common, only the training part says.
    const Vocabulary vocabulary =
        options.vocabulary != nullptr
            ? *options.vocabulary
            : Vocabulary::pieces(text_of(train), options.pieces, text_of(test), kMarks);
    std::vector<TokenPair> pairs = encode(split == Split::Train ? train : test, vocabulary);
    const std::size_t all = pairs.size();
    if (options.length > 0)
      std::erase_if(pairs, [&](const TokenPair& pair) {
        return std::max(std::ssize(pair.source), std::ssize(pair.target)) > options.length;
      });
    if (pairs.empty())
      throw ValueError(cat("no pair has at most ", options.length, " tokens a side"));
    std::string description =
        cat(pairs.size(), " pairs of ", file, " (", vocabulary.size(), " pieces");
    description += all == pairs.size() ? ")" : cat("; ", all - pairs.size(), " are too long)");
    return std::make_shared<PairsDataset>(vocabulary.tokens(), pairs, std::move(description));
  } catch (const FormatError& error) {
    throw FormatError(cat(file, ": ", error.what()));
  } catch (const ValueError& error) {
    throw ValueError(cat(file, ": ", error.what()));
  }
}

std::shared_ptr<Dataset> number_pairs(Split split, const NumberPairOptions& options) {
  constexpr std::int64_t most = 1'000'000'000, least = 200;
  if (options.below < least || options.below > most)
    throw ValueError(
        cat("number_pairs: below ", options.below, ", must lie from ", least, " to ", most));
  if (options.train < 1 || options.test < 1)
    throw ValueError("number_pairs: each part needs at least one pair");
  if (options.to.empty() || std::count(options.to.begin(), options.to.end(), Language::English) > 0)
    throw ValueError("number_pairs: translate to French, to German or to both");
  const std::vector<TextPair> train = draw_pairs(Split::Train, options.train, options);
  const auto some = std::span(train).first(std::min(train.size(), kPairsThatTeachPieces));
  // Whatever was drawn, all characters of the three languages are known.
  const Vocabulary vocabulary =
      options.vocabulary != nullptr
          ? *options.vocabulary
          : Vocabulary::pieces(text_of(some), options.pieces,
                               "FrenchGerman: -abcdefghijklmnopqrstuvwxyzßäéöüM", kMarks);
  const std::vector<TextPair> pairs =
      split == Split::Train ? train : draw_pairs(split, options.test, options);
  return std::make_shared<PairsDataset>(
      vocabulary.tokens(), encode(pairs, vocabulary),
      cat(pairs.size(), " numbers below ", options.below, " in words (seed ", options.seed, ")"));
}

}  // namespace tenon::data
