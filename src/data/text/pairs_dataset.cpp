// Pairs of sequences: from a file, and generated from number words.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <unordered_set>

#include <tenon/error.h>
#include <tenon/text.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/philox.h"
#include "base/str.h"
#include "data/samples/drawn_parts.h"
#include "data/samples/split.h"
#include "data/tables/line_reader.h"
#include "data/text/text_readers.h"
#include "data/tokens/pieces.h"

namespace tenon::data {
namespace {

std::vector<std::string> marks() { return {"<pad>", "<s>", "</s>"}; }

struct TextPair {
  std::string source, target;
  std::string group{}, place{};  // of a file: "pairs.tsv, line 17"
};

struct TokenPair {
  std::vector<std::int64_t> source, target;
  std::string place;
};

class PairsDataset final : public DatasetWith<Provenance> {
 public:
  PairsDataset(std::vector<std::string> pieces, const std::vector<TokenPair>& pairs,
               std::string description, std::vector<std::string> places, Notes notes)
      : DatasetWith(DatasetInfo()),
        count_(std::ssize(pairs)),
        places_(std::move(places)),
        notes_(std::move(notes)) {
    double counted = 0;
    for (const TokenPair& pair : pairs) {
      length_ = std::max({length_, std::ssize(pair.source) + 1, std::ssize(pair.target) + 1});
      counted += static_cast<double>(pair.target.size() + 1) / static_cast<double>(pairs.size());
    }
    const std::int64_t classes = std::ssize(pieces);
    set_info({.input_shape = {2, length_},
              .input_dtype = DType::Int64,
              .target_shape = {length_},
              .classes = classes,
              .class_names = std::move(pieces),
              .text_unit = name(TextUnit::Pieces),
              .counted_targets = counted,
              .description = std::move(description),
              .in_memory = true});
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
  std::string sample_name(std::int64_t index) const override {
    return places_.empty() ? Provenance::sample_name(index) : places_[at(index)];
  }
  Notes notes() const override { return notes_; }

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
  std::int64_t count_, length_ = 1;
  std::vector<std::string> places_;
  Notes notes_;
  std::vector<std::int64_t> inputs_, targets_;
};

std::string text_of(std::span<const TextPair> pairs) {
  std::string text;
  for (const TextPair& pair : pairs) text += pair.source + "\n" + pair.target + "\n";
  return text;
}

std::vector<TokenPair> encode(const std::vector<TextPair>& pairs, const Vocabulary& vocabulary) {
  TokenNumbers numbers;
  for (const std::string& token : vocabulary.tokens()) numbers.emplace(token, std::ssize(numbers));
  PieceEncoder encoder(numbers);
  std::vector<TokenPair> out;
  out.reserve(pairs.size());
  for (const TextPair& pair : pairs)
    out.push_back({encoder(pair.source), encoder(pair.target), pair.place});
  return out;
}

// ---- Files --------------------------------------------------------------------------------------

std::vector<TextPair> parse_pairs(const std::string& file, const PairOptions& options,
                                  Notes& notes) {
  LineReader lines(file, LineForm::Pairs, options.rows, options.split.group);
  std::vector<TextPair> out;
  std::vector<std::string_view> fields;
  while (lines.next(fields)) {
    if (fields.size() != 2)
      throw make_error<FormatError>("line ", LineNumber{lines.line()},
                                    " is not SOURCE TAB TRANSLATION");
    out.push_back({std::string(fields[0]), std::string(fields[1]), lines.group(), lines.where()});
  }
  const Notes more = lines.notes();
  notes.insert(notes.end(), more.begin(), more.end());
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

// Draws the numbers of a part. A validation number that is also in training is drawn again, a
// limited number of times, because there may be no other numbers.
class NumberDraws {
 public:
  NumberDraws(Split part, std::int64_t below, std::unordered_set<std::int64_t> training)
      : part_(part), below_(below), training_(std::move(training)) {
    for (std::int64_t n = below - 1; n >= 10; n /= 10) ++digits_;
  }
  // Draws the number of digits, then a number with so many digits, until the number fits the part.
  std::int64_t draw(std::uint64_t key, std::int64_t index) {
    constexpr std::uint64_t kMostAttempts = 200;
    for (std::uint64_t attempt = 0;; ++attempt) {
      const Philox4 words = philox(key, static_cast<std::uint64_t>(index), attempt);
      std::int64_t low = 1, high = 10;
      for (std::int64_t k = words.v[0] % digits_; k > 0; --k) low = high, high *= 10;
      if (low == 1) low = 0;
      const std::int64_t number = low + words.v[1] % (std::min(high, below_) - low);
      if (is_held_out(number) != (part_ == Split::Test)) continue;
      if (!training_.contains(number)) return number;
      if (attempt < kMostAttempts) continue;
      ++repeated_;
      return number;
    }
  }
  std::int64_t repeated() const { return repeated_; }

 private:
  Split part_;
  std::int64_t below_, digits_ = 1, repeated_ = 0;
  std::unordered_set<std::int64_t> training_;
};

struct DrawnPairs {
  std::vector<TextPair> pairs;
  std::int64_t repeated = 0;  // pairs whose number is also in training
};

// The numbers for training do not depend on the count for validation.
DrawnPairs draw_pairs(Split part, std::int64_t count, const NumberPairOptions& o) {
  constexpr std::uint64_t kValidationKey = 0x5a11'd000'0000'0000ull;
  DrawnPairs out;
  out.pairs.reserve(at(count));
  const std::uint64_t key = part == Split::Train  ? o.seed
                            : part == Split::Test ? o.seed ^ kSplitKey
                                                  : o.seed ^ kValidationKey;
  std::unordered_set<std::int64_t> training;
  if (part == Split::Validation) {
    NumberDraws draws(Split::Train, o.below, {});
    for (std::int64_t i = 0; i < o.train; ++i) training.insert(draws.draw(o.seed, i));
  }
  NumberDraws draws(part, o.below, std::move(training));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t number = draws.draw(key, i);
    const Language to = o.to[at(i) % o.to.size()];
    out.pairs.push_back({cat(to == Language::French ? "French: " : "German: ",
                             number_words(number, Language::English)),
                         number_words(number, to)});
  }
  out.repeated = draws.repeated();
  return out;
}

// Chooses the pairs of a part.
Chosen chosen_pairs(const std::vector<TextPair>& pairs, std::size_t of_file, Split part,
                    const PairOptions& options, const std::string& file) {
  Samples samples{.name = file, .count = std::ssize(pairs)};
  samples.fixed_parts.resize(pairs.size());
  std::fill(samples.fixed_parts.begin() + static_cast<std::ptrdiff_t>(of_file),
            samples.fixed_parts.end(), Split::Test);
  std::vector<std::string_view> groups;
  if (!options.split.group.empty())
    for (const TextPair& pair : pairs) groups.emplace_back(pair.group);
  samples.marks.groups = numbers_of_words(groups);
  return choose_samples(
      options.test_file.empty() ? options.split : without_test(options.split, file), part, samples);
}

// All pairs of a source, those of its own file first.
struct PairFiles {
  std::vector<TextPair> pairs{};
  std::size_t of_file = 0;
  Notes notes{};
};

PairFiles read_pair_files(const std::string& file, const PairOptions& options) {
  PairFiles out;
  const auto add = [&](const std::string& path) {
    naming_file(path, [&] {
      const std::size_t before = out.pairs.size();
      for (TextPair& pair : parse_pairs(path, options, out.notes))
        out.pairs.push_back(std::move(pair));
      if (out.pairs.size() == before) throw FormatError("contains no lines");
    });
  };
  add(file);
  out.of_file = out.pairs.size();
  if (!options.test_file.empty()) add(options.test_file);
  return out;
}

// The vocabulary has all characters of all parts, and pieces learnt from the training part alone.
Vocabulary vocabulary_of_pairs(const PairFiles& files, const std::string& file,
                               const PairOptions& options) {
  if (options.vocabulary != nullptr) return *options.vocabulary;
  const Chosen chosen = chosen_pairs(files.pairs, files.of_file, Split::All, options, file);
  std::vector<TextPair> train, others;
  for (std::size_t k = 0; k < files.pairs.size(); ++k)
    (chosen.parts[k] == Split::Train ? train : others).push_back(files.pairs[k]);
  return Vocabulary::pieces(text_of(train), options.pieces, text_of(others), marks());
}

template <class VocabularyOf>
std::shared_ptr<Dataset> part_of_pairs(const PairFiles& files, const VocabularyOf& vocabulary_of,
                                       const std::string& file, Split split,
                                       const PairOptions& options) {
  const Chosen chosen = chosen_pairs(files.pairs, files.of_file, split, options, file);
  if (chosen.samples.empty()) return nullptr;
  std::vector<TextPair> own;
  for (const std::int64_t i : chosen.samples) own.push_back(files.pairs[at(i)]);
  const Vocabulary& vocabulary = vocabulary_of();
  std::vector<TokenPair> pairs = encode(own, vocabulary);
  const std::size_t count = pairs.size();
  if (options.length > 0)
    std::erase_if(pairs, [&](const TokenPair& pair) {
      return std::max(std::ssize(pair.source), std::ssize(pair.target)) > options.length;
    });
  if (pairs.empty())
    throw ValueError(cat("no pair has at most ", options.length, " tokens a side"));
  Notes notes = files.notes;
  notes.insert(notes.end(), chosen.notes.begin(), chosen.notes.end());
  if (pairs.size() < count)
    notes.push_back({cat(count - pairs.size(), " pairs with more than ", options.length,
                         " tokens a side are left out"),
                     static_cast<std::int64_t>(count - pairs.size()), file});
  std::string description =
      cat(pairs.size(), " pairs of ", of_files(file, options.test_file, split), " (",
          vocabulary.size(), " pieces");
  description += pairs.size() == count ? ")" : cat("; ", count - pairs.size(), " are too long)");
  std::vector<std::string> places;
  places.reserve(pairs.size());
  for (const TokenPair& pair : pairs) places.push_back(pair.place);
  return std::make_shared<PairsDataset>(vocabulary.tokens(), pairs, std::move(description),
                                        std::move(places), std::move(notes));
}

}  // namespace

PartReader read_pairs(const std::string& file, const PairOptions& options) {
  const auto files = once([=] { return read_pair_files(file, options); });
  const auto vocabulary = once([=] { return vocabulary_of_pairs(files(), file, options); });
  return [=](Split part) {
    return naming_file(file,
                       [&] { return part_of_pairs(files(), vocabulary, file, part, options); });
  };
}

std::shared_ptr<Dataset> open_pairs(const std::string& file, Split split,
                                    const PairOptions& options) {
  return read_pairs(file, options)(split);
}

namespace {

void check_number_pairs(const NumberPairOptions& options) {
  constexpr std::int64_t most = 1'000'000'000, least = 200;
  if (options.below < least || options.below > most)
    throw ValueError(
        cat("number_pairs: below ", options.below, ", must be from ", least, " to ", most));
  if (options.train < 1 || options.test < 1)
    throw ValueError("number_pairs: each part needs at least one pair");
  if (options.to.empty() || std::count(options.to.begin(), options.to.end(), Language::English) > 0)
    throw ValueError("number_pairs: translate to French, to German or to both");
}

// The training pairs, and the vocabulary learnt from them.
struct TrainingNumbers {
  std::vector<TextPair> pairs;
  Vocabulary vocabulary;
};

TrainingNumbers training_numbers(const NumberPairOptions& options) {
  std::vector<TextPair> pairs = draw_pairs(Split::Train, options.train, options).pairs;
  if (options.vocabulary != nullptr) return {std::move(pairs), *options.vocabulary};
  const auto some = std::span(pairs).first(std::min(pairs.size(), kPairsThatTeachPieces));
  // All characters of the three languages are in the vocabulary, whichever numbers were drawn.
  Vocabulary vocabulary = Vocabulary::pieces(
      text_of(some), options.pieces, "FrenchGerman: -abcdefghijklmnopqrstuvwxyzßäéöüM", marks());
  return {std::move(pairs), std::move(vocabulary)};
}

std::shared_ptr<Dataset> part_of_numbers(const TrainingNumbers& training, Split split,
                                         std::int64_t validation,
                                         const NumberPairOptions& options) {
  std::vector<TextPair> pairs;
  if (split == Split::Train || split == Split::All) pairs = training.pairs;
  Notes notes;
  const auto add = [&](Split part, std::int64_t count) {
    DrawnPairs drawn = draw_pairs(part, count, options);
    std::move(drawn.pairs.begin(), drawn.pairs.end(), std::back_inserter(pairs));
    if (drawn.repeated > 0)
      notes.push_back({cat(drawn.repeated,
                           " pairs for validation are of numbers that training has: there are too "
                           "few others"),
                       drawn.repeated, cat("numbers below ", options.below)});
  };
  if (validation > 0 && (split == Split::Validation || split == Split::All))
    add(Split::Validation, validation);
  if (split == Split::Test || split == Split::All) add(Split::Test, options.test);
  return std::make_shared<PairsDataset>(
      training.vocabulary.tokens(), encode(pairs, training.vocabulary),
      cat(pairs.size(), " numbers below ", options.below, " in words (seed ", options.seed, ")"),
      std::vector<std::string>(), std::move(notes));
}

}  // namespace

PartReader draw_number_pairs(const NumberPairOptions& options) {
  check_number_pairs(options);
  const std::int64_t validation =
      drawn_validation({.validation = options.validation}, options.train, "number_pairs");
  const auto training = once([=] { return training_numbers(options); });
  return [=](Split part) -> std::shared_ptr<Dataset> {
    if (part == Split::Validation && validation == 0) return nullptr;
    return part_of_numbers(training(), part, validation, options);
  };
}

std::shared_ptr<Dataset> number_pairs(Split split, const NumberPairOptions& options) {
  return draw_number_pairs(options)(split);
}

}  // namespace tenon::data
