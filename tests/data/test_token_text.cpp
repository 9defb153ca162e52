// Text by a tokenizer: windows, hidden words that depend on seed, epoch and example alone, and
// lines with a class.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "io/folder.h"

using namespace tenon;
using data::Split;

namespace {

using Longs = std::vector<std::int64_t>;

std::string some_text() {
  std::string text;
  for (int k = 0; k < 3000; ++k)
    text += std::string(k % 3 == 0   ? "the sea "
                        : k % 7 == 0 ? "a wide land "
                                     : "is green ") +
            (k % 10 == 9 ? ".\n" : "");
  return text;
}

std::string written(const TestFolder& folder, const std::string& text) {
  std::string path = folder / "text.txt";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

data::Tokenizer of_kind(data::TokenizerKind kind, const std::string& text) {
  return data::Tokenizer::train(
      text, {.kind = kind, .tokens = kind == data::TokenizerKind::Bpe ? 300 : 60});
}

struct Example {
  Longs input, target;
  bool operator==(const Example&) const = default;
};

Example example(const data::Dataset& set, std::int64_t index, std::uint64_t seed = 0,
                std::int64_t epoch = 0) {
  Example out{Longs(static_cast<std::size_t>(set.input_shape().numel())),
              Longs(static_cast<std::size_t>(set.target_shape().numel()))};
  set.get_drawn({&index, 1}, seed, epoch, out.input.data(), out.target.data());
  return out;
}

}  // namespace

TEST_CASE("token text: windows hold a tokenizer's numbers, targets one place later") {
  const TestFolder folder;
  const std::string text = some_text(), file = written(folder, text);
  const data::Tokenizer tokenizer = of_kind(data::TokenizerKind::Bpe, text);
  const auto train = data::open_token_text(file, Split::Train, tokenizer, {.length = 9}),
             test = data::open_token_text(file, Split::Test, tokenizer, {.length = 9});
  CHECK(train->classes() == tokenizer.size());
  CHECK(train->in_memory());
  Longs all;
  for (std::int64_t k = 0; k < train->size(); ++k) {
    const Example e = example(*train, k);
    CHECK(std::equal(e.input.begin() + 1, e.input.end(), e.target.begin()));
    all.insert(all.end(), e.input.begin(), e.input.end());
  }
  const std::string part = tokenizer.decode(all);
  CHECK(text.starts_with(part));
  CHECK(text.size() * 9 / 10 - part.size() < 100);
  CHECK(text.substr(text.size() - text.size() / 10)
            .starts_with(tokenizer.decode(example(*test, 0).input)));
  CHECK_THROWS_AS(data::open_token_text(file, Split::Test, tokenizer, {.length = 1 << 20}),
                  ValueError);
  CHECK_THROWS_WITH_AS(
      data::open_token_text(file, Split::Train, tokenizer, {.length = 9, .hide_words = true}),
      doctest::Contains("[CLS]"), ValueError);
}

TEST_CASE("token text: of hidden words 80 % are masked, 10 % others, 10 % as they were") {
  const TestFolder folder;
  const std::string text = some_text(), file = written(folder, text);
  const data::Tokenizer tokenizer = of_kind(data::TokenizerKind::WordPiece, text);
  const data::TokenTextOptions options{.length = 42, .hide_words = true};
  const auto train = data::open_token_text(file, Split::Train, tokenizer, options),
             test = data::open_token_text(file, Split::Test, tokenizer, options);
  const std::int64_t mask = tokenizer.number("[MASK]");
  CHECK(train->counted_targets() == 6);  // 15 % of 40
  double masked = 0, other = 0, same = 0;
  for (std::int64_t k = 0; k < train->size(); ++k)
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
      const Example e = example(*train, k, 5, epoch);
      CHECK(e.input[0] == tokenizer.number("[CLS]"));
      CHECK(e.input[41] == tokenizer.number("[SEP]"));
      std::int64_t hidden = 0;
      for (std::size_t i = 0; i < 42; ++i) {
        if (e.target[i] == data::kIgnoredTarget) continue;
        ++hidden;
        ++(e.input[i] == mask ? masked : e.input[i] == e.target[i] ? same : other);
      }
      CHECK(hidden == 6);
    }
  const double count = masked + other + same;
  CHECK(masked / count == doctest::Approx(0.8).epsilon(0.04));
  CHECK(other / count == doctest::Approx(0.1).epsilon(0.2));
  CHECK(same / count == doctest::Approx(0.1).epsilon(0.2));
  // What was there stands in the targets: the words are those of the text.
  const Example e = example(*train, 3, 5, 1);
  Longs told = e.input;
  for (std::size_t i = 0; i < 42; ++i)
    if (e.target[i] != data::kIgnoredTarget) told[i] = e.target[i];
  const Longs all = tokenizer.encode(text.substr(0, text.size() - text.size() / 10), false);
  CHECK(std::equal(told.begin() + 1, told.end() - 1, all.begin() + 3 * 40));
  // Seed, epoch and example say what is hidden; in testing the example alone.
  CHECK(example(*train, 3, 5, 1) == e);
  CHECK(!(example(*train, 3, 5, 2) == e));
  CHECK(!(example(*train, 3, 6, 1) == e));
  CHECK(example(*test, 2, 5, 1) == example(*test, 2, 8, 4));
}

TEST_CASE("token text: the same hidden words for any number of workers, and after a stop") {
  const TestFolder folder;
  const std::string text = some_text(), file = written(folder, text);
  const data::Tokenizer tokenizer = of_kind(data::TokenizerKind::WordPiece, text);
  const std::shared_ptr<data::Dataset> set =
      data::open_token_text(file, Split::Train, tokenizer, {.length = 12, .hide_words = true});
  const auto inputs = [&](int workers, data::LoaderState from) {
    data::Loader loader(set, {.batch = 7, .seed = 3, .workers = workers});
    loader.set_state(from);
    std::vector<Longs> out;
    data::Batch batch;
    while (loader.next(batch)) out.push_back(batch.input.to_vector<std::int64_t>());
    return out;
  };
  const std::vector<Longs> alone = inputs(0, {3, 2, 0});
  CHECK(inputs(3, {3, 2, 0}) == alone);
  const std::vector<Longs> later = inputs(2, {3, 2, 14});
  CHECK(std::equal(later.begin(), later.end(), alone.begin() + 2, alone.end()));
  CHECK(inputs(0, {3, 1, 0}) != alone);
}

TEST_CASE("token text: lines with a class, cut and filled up") {
  const TestFolder folder;
  const data::Tokenizer tokenizer = of_kind(data::TokenizerKind::WordPiece, some_text());
  std::string lines;
  for (int k = 0; k < 20; ++k)
    lines += k % 2 == 0 ? "wet\tthe sea is green\r\n" : "dry\ta wide land\n\n";
  const std::string file = written(folder, lines);
  const auto train = data::open_class_lines(file, Split::Train, tokenizer);
  CHECK(train->size() == 18);
  CHECK(data::open_class_lines(file, Split::Test, tokenizer)->size() == 2);
  CHECK(train->class_names() == std::vector<std::string>{"dry", "wet"});
  CHECK(train->input_shape() == Shape{6});
  const Example dry = example(*train, 1);
  Longs wanted = tokenizer.encode("a wide land");
  wanted.push_back(data::kPad);
  CHECK(dry.input == wanted);
  CHECK(dry.target == Longs{0});
  const auto cut = data::open_class_lines(file, Split::Train, tokenizer, {.length = 4});
  CHECK(example(*cut, 0).input == Longs{tokenizer.number("[CLS]"), tokenizer.number("the"),
                                        tokenizer.number("sea"), tokenizer.number("[SEP]")});
  const std::string other = folder / "other.txt";
  std::ofstream(other) << "wet\tsea\nwarm\tland\n";
  CHECK_THROWS_WITH_AS(data::open_class_lines(file, Split::Test, tokenizer, {.test_file = other}),
                       doctest::Contains("'warm'"), ValueError);
  std::ofstream(other) << "wet\tsea\nland\n";
  CHECK_THROWS_WITH_AS(data::open_class_lines(other, Split::Train, tokenizer),
                       doctest::Contains("line 2"), FormatError);
  CHECK_THROWS_WITH_AS(data::open_dataset("lines:" + file, Split::Train),
                       doctest::Contains("--tokenizer"), ValueError);
}
