// Pairs of sequences: numbers in words, pieces of words, files.
#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "io/folder.h"

using namespace tenon;
using data::Language;
using data::number_words;
using data::Split;

namespace {

struct Texts {
  std::string source, shifted, target;
};

std::string text_until(const data::Vocabulary& vocabulary, const std::int64_t* from,
                       const std::int64_t* to, std::int64_t mark) {
  const std::vector<std::int64_t> tokens(from, std::find(from, to, mark));
  return vocabulary.decode(tokens);
}

Texts example(const data::Dataset& set, std::int64_t index) {
  const std::int64_t length = set.target_shape()[0];
  std::vector<std::int64_t> input(static_cast<std::size_t>(2 * length)),
      target(static_cast<std::size_t>(length));
  set.get({&index, 1}, input.data(), target.data());
  const data::Vocabulary vocabulary(data::TextUnit::Pieces, set.class_names());
  const std::int64_t* shifted = input.data() + length;
  CHECK(*shifted == data::kBegin);
  return {text_until(vocabulary, input.data(), shifted, data::kEnd),
          text_until(vocabulary, shifted + 1, shifted + length, data::kPad),
          text_until(vocabulary, target.data(), target.data() + length, data::kEnd)};
}

}  // namespace

TEST_CASE("numbers in words: English") {
  const std::pair<std::int64_t, const char*> cases[] = {
      {0, "zero"},
      {7, "seven"},
      {13, "thirteen"},
      {21, "twenty-one"},
      {40, "forty"},
      {100, "one hundred"},
      {111, "one hundred eleven"},
      {1000, "one thousand"},
      {80'085, "eighty thousand eighty-five"},
      {1'000'001, "one million one"},
      {999'999'999,
       "nine hundred ninety-nine million nine hundred ninety-nine thousand nine hundred "
       "ninety-nine"}};
  for (const auto& [number, words] : cases) CHECK(number_words(number, Language::English) == words);
}

TEST_CASE("numbers in words: French counts vingt and cent where no numeral follows") {
  const std::pair<std::int64_t, const char*> cases[] = {{0, "zéro"},
                                                        {1, "un"},
                                                        {17, "dix-sept"},
                                                        {21, "vingt et un"},
                                                        {22, "vingt-deux"},
                                                        {61, "soixante et un"},
                                                        {70, "soixante-dix"},
                                                        {71, "soixante et onze"},
                                                        {77, "soixante-dix-sept"},
                                                        {80, "quatre-vingts"},
                                                        {81, "quatre-vingt-un"},
                                                        {91, "quatre-vingt-onze"},
                                                        {99, "quatre-vingt-dix-neuf"},
                                                        {100, "cent"},
                                                        {101, "cent un"},
                                                        {200, "deux cents"},
                                                        {280, "deux cent quatre-vingts"},
                                                        {201, "deux cent un"},
                                                        {1000, "mille"},
                                                        {1001, "mille un"},
                                                        {2000, "deux mille"},
                                                        {21'000, "vingt et un mille"},
                                                        {80'000, "quatre-vingt mille"},
                                                        {200'000, "deux cent mille"},
                                                        {1'000'000, "un million"},
                                                        {80'000'000, "quatre-vingts millions"},
                                                        {200'000'000, "deux cents millions"},
                                                        {1'001'200, "un million mille deux cents"}};
  for (const auto& [number, words] : cases) CHECK(number_words(number, Language::French) == words);
}

TEST_CASE("numbers in words: German is one word below a million") {
  const std::pair<std::int64_t, const char*> cases[] = {
      {0, "null"},
      {1, "eins"},
      {12, "zwölf"},
      {16, "sechzehn"},
      {17, "siebzehn"},
      {21, "einundzwanzig"},
      {30, "dreißig"},
      {60, "sechzig"},
      {76, "sechsundsiebzig"},
      {100, "einhundert"},
      {101, "einhunderteins"},
      {1000, "eintausend"},
      {1001, "eintausendeins"},
      {21'000, "einundzwanzigtausend"},
      {101'000, "einhunderteintausend"},
      {345'678, "dreihundertfünfundvierzigtausendsechshundertachtundsiebzig"},
      {1'000'000, "eine Million"},
      {2'000'001, "zwei Millionen eins"},
      {101'000'000, "einhunderteine Millionen"},
      {21'021'021, "einundzwanzig Millionen einundzwanzigtausendeinundzwanzig"}};
  for (const auto& [number, words] : cases) CHECK(number_words(number, Language::German) == words);
}

TEST_CASE("numbers in words: different numbers have different words; others are refused") {
  for (const Language language : {Language::English, Language::French, Language::German}) {
    std::set<std::string> seen;
    for (std::int64_t n = 0; n < 20'000; ++n) seen.insert(number_words(n, language));
    CHECK(seen.size() == 20'000);
    CHECK_THROWS_AS(number_words(-1, language), ValueError);
    CHECK_THROWS_AS(number_words(1'000'000'000, language), ValueError);
  }
}

TEST_CASE("pieces: the most frequent pair is merged first, and no text is lost") {
  const std::string text = "low low low lower lowest newest";
  const data::Vocabulary v = data::Vocabulary::pieces(text, 14, "z", {"<pad>"});
  CHECK(v.tokens() == std::vector<std::string>{"<pad>", " ", "e", "l", "n", "o", "r", "s", "t", "w",
                                               "z", "lo", "low", " low"});
  for (const char* each : {"low lowest", " zoo  slow", "", "  ", "w "})
    CHECK(v.decode(v.encode(each)) == each);
  CHECK(v.encode("low low").size() == 2);
  CHECK_THROWS_AS(v.encode("low!"), ValueError);
  CHECK_THROWS_AS(data::Vocabulary::pieces(text, 5), ValueError);
  CHECK_THROWS_AS(data::Vocabulary::pieces("\xff", 300), FormatError);
  // The tokens in a run's file are enough.
  CHECK(data::Vocabulary(data::TextUnit::Pieces, v.tokens()).encode(text) == v.encode(text));
  const data::Vocabulary repeats = data::Vocabulary::pieces("aaaaa aaaa aaa", 20);
  CHECK(repeats.decode(repeats.encode("aaaaaaa aa")) == "aaaaaaa aa");
}

TEST_CASE("pieces: learning takes linear time") {
  std::string text;
  for (std::int64_t n = 0; n < 20'000; ++n)
    text += number_words(n * 49'999 % 1'000'000, Language::German) + " ";
  const std::string unbroken(200'000, 'x');
  const std::clock_t start = std::clock();
  const data::Vocabulary v = data::Vocabulary::pieces(text, 500);
  CHECK(v.size() == 500);
  CHECK(v.decode(v.encode(text)) == text);
  const data::Vocabulary one = data::Vocabulary::pieces(unbroken, 300);
  CHECK(one.decode(one.encode(unbroken)) == unbroken);
  CHECK(std::clock() - start < 10 * CLOCKS_PER_SEC);
}

TEST_CASE("number pairs: test samples are not training samples") {
  data::NumberPairOptions options;
  options.train = 3000, options.test = 500, options.below = 10'000;
  const auto train = data::number_pairs(Split::Train, options),
             test = data::number_pairs(Split::Test, options);
  CHECK(train->size() == 3000);
  CHECK(test->size() == 500);
  CHECK(train->class_names() == test->class_names());
  CHECK(train->input_shape() == Shape{2, train->target_shape()[0]});
  std::set<std::string> known;
  for (std::int64_t i = 0; i < train->size(); ++i) {
    const Texts e = example(*train, i);
    known.insert(e.source.substr(e.source.find(' ')));
  }
  double counted = 0;
  for (std::int64_t i = 0; i < test->size(); ++i) {
    const Texts e = example(*test, i);
    CHECK(known.count(e.source.substr(e.source.find(' '))) == 0);
    CHECK(e.shifted == e.target);
    CHECK(e.source.starts_with(i % 2 == 0 ? "French: " : "German: "));
    std::vector<std::int64_t> input(static_cast<std::size_t>(test->input_shape().numel())),
        target(static_cast<std::size_t>(test->target_shape().numel()));
    test->get({&i, 1}, input.data(), target.data());
    counted += static_cast<double>(
        std::count_if(target.begin(), target.end(), [](std::int64_t t) { return t >= 0; }));
  }
  CHECK(test->counted_targets() == doctest::Approx(counted / 500));
  options.below = 100;
  CHECK_THROWS_AS(data::number_pairs(Split::Train, options), ValueError);
}

TEST_CASE("pairs of a file: parts are disjoint, long pairs are left out") {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += (i == 4 ? "a line that is longer " : "line ") + std::to_string(i) + "\tZeile " +
            std::to_string(i) + (i % 2 ? "\r\n" : "\n");
  const std::string file = folder / "lines.tsv";
  io::write_file(file, text);
  const auto train = data::open_dataset("pairs:" + file + ",pieces=40", Split::Train),
             test = data::open_dataset("pairs:" + file + ",pieces=40", Split::Test);
  CHECK(train->size() == 24);
  CHECK(test->size() == 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::string name = test->sample_name(i);
    const std::string line = std::to_string(std::stoi(name.substr(name.rfind(' '))) - 1);
    CHECK(name.starts_with(file + ", line "));
    CHECK(example(*test, i).source.ends_with("line " + line) !=
          example(*test, i).source.starts_with("a line"));
    CHECK(example(*test, i).target == "Zeile " + line);
  }
  const auto all = data::open_pairs(file, Split::All, {.pieces = 40, .length = 9});
  CHECK(all->size() == 29);
  REQUIRE(all->notes().size() == 1);
  CHECK(all->notes()[0].count == 1);
  CHECK_THROWS_AS(data::open_pairs(file, Split::Train, {.pieces = 40, .length = 1}), ValueError);
  io::write_file(file, "one\ttwo\nthree\n");
  CHECK_THROWS_WITH_AS(data::open_pairs(file, Split::Train), doctest::Contains("line 2"),
                       FormatError);
  CHECK_THROWS_AS(data::open_dataset("numbers:10,10,0,above=7", Split::Train), ValueError);
}
