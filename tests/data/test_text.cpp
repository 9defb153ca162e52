// Text: tokens of every unit, windows with targets one token later, and errors.
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/text.h>

#include "io/folder.h"

using namespace tenon;
using data::Split;
using data::TextUnit;
using data::Vocabulary;

namespace {

using Longs = std::vector<std::int64_t>;

std::string write(const TestFolder& folder, const std::string& text) {
  std::string path = folder / "text.txt";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace

TEST_CASE("text: a byte's token number is its value") {
  const Vocabulary v = Vocabulary::of("", TextUnit::Bytes);
  CHECK(v.size() == 256);
  CHECK(v.encode("a\xff") == Longs{'a', 255});
  CHECK(v.decode(Longs{'a', 255}) == "a\xff");
}

TEST_CASE("text: characters are code points in ascending order") {
  const Vocabulary v = Vocabulary::of("bäb€a", TextUnit::Characters);
  CHECK(v.tokens() == std::vector<std::string>{"a", "b", "ä", "€"});
  CHECK(v.encode("€ab") == Longs{3, 0, 1});
  CHECK(v.decode(Longs{3, 0, 2}) == "€aä");
  CHECK_THROWS_AS(v.encode("x"), ValueError);
  CHECK_THROWS_AS(v.decode(Longs{4}), ValueError);
  CHECK_THROWS_AS(Vocabulary::of("a\xffz", TextUnit::Characters), FormatError);
  CHECK_THROWS_AS(Vocabulary::of("a\xc3", TextUnit::Characters), FormatError);
}

TEST_CASE("text: words by frequency, punctuation and line ends separate, other words unknown") {
  const std::string text = "Don't go, don't go!\nGo  (now) ä";
  const Vocabulary v = Vocabulary::of(text, TextUnit::Words);
  CHECK(v.tokens() == std::vector<std::string>{"<unk>", "go", "\n", "!", "(", ")", ",", "Don't",
                                               "Go", "don't", "now", "ä"});
  CHECK(v.decode(v.encode(text)) == "Don't go, don't go!\nGo (now) ä");
  CHECK(v.encode("never go") == Longs{0, 1});
  const Vocabulary few = Vocabulary::of(text, TextUnit::Words, 3);
  CHECK(few.tokens() == std::vector<std::string>{"<unk>", "go", "\n"});
  CHECK_THROWS_AS(Vocabulary(TextUnit::Words, {"a", "a"}), ValueError);
  CHECK_THROWS_AS(data::text_unit("word"), ValueError);
}

TEST_CASE("text: windows see every token once and are followed by their targets") {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>('a' + i % 7);
  const std::string path = write(folder, text);
  data::TextOptions options;
  options.length = 4;
  const auto train = data::open_text(path, Split::Train, options);
  const auto test = data::open_text(path, Split::Test, options);
  CHECK(train->size() == 20);  // 81 tokens: 20 windows of 4 and a token after the last
  CHECK(data::open_text(path, Split::Validation, options)->size() == 2);
  CHECK(test->size() == 2);
  CHECK(test->sample_name(1) == path + ", window 2 of the test part");
  CHECK(train->classes() == 7);
  CHECK(train->target_shape() == Shape{4});
  Longs input(8, -1), target(8, -1);
  const Longs which{19, 0};
  train->get(which, input.data(), target.data());
  const Vocabulary v = Vocabulary::of(text, TextUnit::Characters);
  CHECK(v.decode(input) == text.substr(76, 4) + text.substr(0, 4));
  CHECK(v.decode(target) == text.substr(77, 4) + text.substr(1, 4));
  test->get(Longs{0, 1}, input.data(), target.data());
  CHECK(v.decode(input) == text.substr(90, 8));
  CHECK_THROWS_AS(data::open_text(path, Split::Test, {.length = 10}), ValueError);
  CHECK_THROWS_WITH_AS(data::open_text(path, Split::Test, {.length = 10}),
                       doctest::Contains(": the text of the test part has "), ValueError);
  CHECK_THROWS_WITH_AS(data::open_text(path, Split::All, {.length = 1000}),
                       doctest::Contains(": the text has "), ValueError);
  CHECK_THROWS_AS(data::open_text(path, Split::Test, {.length = 0}), ValueError);
  CHECK_THROWS_AS(data::open_text(folder / "none.txt", Split::Test), IoError);
}

TEST_CASE("text: words that a vocabulary lacks are counted in each part") {
  const TestFolder folder;
  const std::string file = folder / "words.txt";
  std::string text;
  for (int k = 0; k < 400; ++k) text += k == 5 ? "the whale\n" : k > 390 ? "a ship\n" : "the sea\n";
  std::ofstream(file) << text;
  const auto open = [&](Split part, std::int64_t words) {
    return data::open_text(file, part, {.unit = TextUnit::Words, .length = 4, .words = words});
  };
  const Notes train = open(Split::Train, 4)->notes(), test = open(Split::Test, 100)->notes();
  REQUIRE(train.size() == 1);
  CHECK(to_string(train[0]) ==
        file +
            ": 1 word in the text of the training part is not in the vocabulary and was read "
            "as the unknown token");
  REQUIRE(test.size() == 1);
  CHECK(test[0].count == 18);
  CHECK(open(Split::Train, 100)->notes().empty());
  CHECK_THROWS_WITH_AS(data::open_dataset("text:" + file + ",by=words,length=4,words=4",
                                          Split::Train, data::SourceOptions{.strict = true}),
                       doctest::Contains("1 word in the text"), FormatError);
}

TEST_CASE("text: named on the command line") {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 3 == 0 ? "one " : "two ";
  const std::string path = write(folder, text);
  const auto set = data::open_dataset("text:" + path + ",by=words,length=5,words=2", Split::Train);
  CHECK(set->input_shape() == Shape{5});
  CHECK(set->class_names() == std::vector<std::string>{"<unk>", "two"});
  CHECK(data::open_dataset("text:" + path, Split::Train)->input_shape() == Shape{64});
  CHECK_THROWS_AS(data::open_dataset("text:" + path + ",by=letters", Split::Train), ValueError);
  CHECK_THROWS_AS(data::open_dataset("text:" + path + ",size=5", Split::Train), ValueError);
  CHECK_THROWS_AS(data::open_dataset("text:", Split::Train), ValueError);
}
