// Text with a tokenizer: windows, masked tokens that depend on seed, epoch and sample only, and
// lines with a class.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "base/str.h"
#include "data/text/span_dataset.h"
#include "io/folder.h"

using namespace tenon;
using data::Split;
using Json = nlohmann::json;

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
  set.get_augmented({&index, 1}, seed, epoch, out.input.data(), out.target.data());
  return out;
}

}  // namespace

TEST_CASE("token text: windows have a tokenizer's numbers, targets one position later") {
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
  CHECK(text.size() * 81 / 100 - part.size() < 100);
  const std::size_t tested = text.find(tokenizer.decode(example(*test, 0).input), text.size() / 5);
  CHECK(tested != std::string::npos);
  CHECK_THROWS_AS(data::open_token_text(file, Split::Test, tokenizer, {.length = 1 << 20}),
                  ValueError);
  CHECK_THROWS_WITH_AS(
      data::open_token_text(file, Split::Train, tokenizer, {.length = 9, .hide_words = true}),
      doctest::Contains("[CLS]"), ValueError);
}

TEST_CASE("token text: bytes that are not UTF-8 are counted from the start of the file") {
  const TestFolder folder;
  const std::string text = some_text(), file = written(folder, text + "\xe9\xe9");
  const data::Tokenizer tokenizer =
      data::Tokenizer::open("tests/e2e/fixtures/tokenizers/gpt2.json");
  const std::string said =
      file + ": the text is not UTF-8 at byte " + std::to_string(text.size()) + ": convert it";
  for (const Split part : {Split::Train, Split::Test, Split::All})
    CHECK_THROWS_WITH_AS(data::open_token_text(file, part, tokenizer, {.length = 8}), said.c_str(),
                         FormatError);
}

TEST_CASE("token text: of selected tokens 80 % are masked, 10 % replaced, 10 % unchanged") {
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
  // The targets contain the original tokens of the text.
  const Example e = example(*train, 3, 5, 1);
  Longs told = e.input;
  for (std::size_t i = 0; i < 42; ++i)
    if (e.target[i] != data::kIgnoredTarget) told[i] = e.target[i];
  const Longs all = tokenizer.encode(text, false);
  CHECK(std::equal(told.begin() + 1, told.end() - 1, all.begin() + 3 * 40));
  // Seed, epoch and sample decide which tokens are masked; in testing the sample only.
  CHECK(example(*train, 3, 5, 1) == e);
  CHECK(!(example(*train, 3, 5, 2) == e));
  CHECK(!(example(*train, 3, 6, 1) == e));
  CHECK(example(*test, 2, 5, 1) == example(*test, 2, 8, 4));
}

TEST_CASE("token text: equal masked tokens for any number of workers, and after a resume") {
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

TEST_CASE("token text: lines with a class, truncated and padded") {
  const TestFolder folder;
  const data::Tokenizer tokenizer = of_kind(data::TokenizerKind::WordPiece, some_text());
  std::string lines;
  for (int k = 0; k < 20; ++k)
    lines += k % 2 == 0 ? "wet\tthe sea is green\r\n" : "dry\ta wide land\n\n";
  const std::string file = written(folder, lines);
  const auto train = data::open_class_lines(file, Split::Train, tokenizer);
  CHECK(train->size() == 16);
  CHECK(data::open_class_lines(file, Split::Validation, tokenizer)->size() == 2);
  CHECK(data::open_class_lines(file, Split::Test, tokenizer)->size() == 2);
  CHECK(train->class_names() == std::vector<std::string>{"dry", "wet"});
  CHECK(train->input_shape() == Shape{6});
  const auto every = data::open_class_lines(file, Split::All, tokenizer);
  CHECK(every->sample_name(1) == file + ", line 2");
  const Example dry = example(*every, 1);
  Longs wanted = tokenizer.encode("a wide land");
  wanted.push_back(data::kPad);
  CHECK(dry.input == wanted);
  CHECK(dry.target == Longs{0});
  const auto cut = data::open_class_lines(file, Split::All, tokenizer, {.length = 4});
  CHECK(example(*cut, 0).input == Longs{tokenizer.number("[CLS]"), tokenizer.number("the"),
                                        tokenizer.number("sea"), tokenizer.number("[SEP]")});
  // Besides the note about blank lines, which each part has.
  CHECK(train->notes().size() == 1);
  REQUIRE(cut->notes().size() == 2);
  CHECK(to_string(cut->notes()[0]) == cat(file, ", line 1: 20 of 20 texts are cut to 4 tokens"));
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

TEST_CASE("token text: two texts are truncated as by Hugging Face's tokenizers") {
  // The vocabulary has a and b; each text keeps the length that "longest_first" leaves.
  const data::Tokenizer t =
      data::Tokenizer::train("a b a b a b", {.kind = data::TokenizerKind::WordPiece, .tokens = 20});
  const std::int64_t a = t.number("a"), b = t.number("b");
  const struct {
    int first, second, length, left_first, left_second;
  } rows[] = {{2, 9, 9, 2, 4},  {9, 2, 9, 4, 2}, {5, 5, 10, 3, 4},
              {7, 6, 10, 4, 3}, {0, 9, 6, 0, 3}, {4, 3, 20, 4, 3},
              {11, 9, 5, 1, 1}, {3, 8, 4, 0, 1}, {8, 3, 4, 1, 0}};
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CAPTURE(row.second);
    CAPTURE(row.length);
    std::string first, second;
    for (int k = 0; k < row.first; ++k) first += "a ";
    for (int k = 0; k < row.second; ++k) second += "b ";
    const data::TypedTokens got = data::encode_pair_within(t, first, second, row.length);
    Longs tokens{t.number("[CLS]")}, types;
    tokens.insert(tokens.end(), static_cast<std::size_t>(row.left_first), a);
    tokens.push_back(t.number("[SEP]"));
    types.assign(tokens.size(), 0);
    tokens.insert(tokens.end(), static_cast<std::size_t>(row.left_second), b);
    tokens.push_back(t.number("[SEP]"));
    types.resize(tokens.size(), 1);
    CHECK(got.tokens == tokens);
    CHECK(got.types == types);
  }
}

TEST_CASE("token text: truncated texts and unknown words are counted in each part") {
  const TestFolder folder;
  const auto t = of_kind(data::TokenizerKind::WordPiece, some_text());
  std::string lines;
  for (int k = 0; k < 20; ++k)
    lines += k == 7 ? "wet\tthe qqq is qwx\n" : k % 2 == 0 ? "wet\tthe sea\n" : "dry\ta land\n";
  const std::string file = written(folder, lines);
  const auto all = data::open_class_lines(file, Split::All, t);
  REQUIRE(all->notes().size() == 1);
  CHECK(all->notes()[0].count == 2);
  CHECK(to_string(all->notes()[0]) ==
        cat(file,
            ", line 8: 2 words or characters in 1 of 20 texts are not in the vocabulary and were "
            "read as the unknown token"));
  std::int64_t counted = 0;
  for (const Split part : {Split::Train, Split::Validation, Split::Test})
    for (const Note& note : data::open_class_lines(file, part, t)->notes()) {
      counted += note.count;
      CHECK(note.text.find(cat("of the ", data::name(part), " part")) != std::string::npos);
    }
  CHECK(counted == 2);
  const auto pairs = data::open_class_lines(written(folder, "a\tthe sea\tis qqq\nb\tsea\tsea\n"),
                                            Split::All, t, {.length = 6});
  REQUIRE(pairs->notes().size() == 2);
  CHECK(pairs->notes()[0].text.starts_with("1 of 2 pairs of texts is cut to 6 tokens"));
  CHECK(pairs->notes()[1].text.starts_with("1 word or character in 1 of 2 pairs of texts is not"));
  // A text that contains the unknown token itself has no unknown word.
  CHECK(data::open_class_lines(written(folder, "a\tthe [UNK]\nb\tsea\n"), Split::All, t)
            ->notes()
            .empty());
  const std::string plain = written(folder, "the sea qqq " + some_text());
  const auto windows = data::open_token_text(plain, Split::Train, t, {.length = 8});
  REQUIRE(windows->notes().size() == 1);
  CHECK(to_string(windows->notes()[0]) ==
        cat(plain,
            ": 1 word or character in the text of the training part is not in the vocabulary and "
            "was read as the unknown token"));
  CHECK(data::open_token_text(plain, Split::Test, t, {.length = 8})->notes().empty());
  CHECK(data::open_token_text(plain, Split::Train, t, {.length = 8, .hide_words = true})
            ->notes()
            .size() == 1);
  CHECK_THROWS_WITH_AS(
      data::open_dataset(cat("text:", plain, ",length=8"), Split::Train,
                         {.tokenizer = std::make_shared<const data::Tokenizer>(t), .strict = true}),
      doctest::Contains("1 word or character"), FormatError);
}

TEST_CASE("token text: a text is read once for all its parts") {
  const auto t =
      std::make_shared<const data::Tokenizer>(of_kind(data::TokenizerKind::WordPiece, some_text()));
  for (const bool hide_words : {false, true}) {
    const TestFolder folder;
    const std::string file = written(folder, some_text());
    const data::Source source(cat("text:", file, ",length=8"),
                              {.tokenizer = t, .hide_words = hide_words});
    std::vector<std::string> about;
    for (const Split part : {Split::Train, Split::Validation, Split::Test, Split::All})
      about.push_back(data::open_token_text(file, part, *t, {.length = 8, .hide_words = hide_words})
                          ->describe());
    CHECK(source.open(Split::Train)->describe() == about[0]);
    std::filesystem::remove(file);
    CHECK(source.open(Split::Validation)->describe() == about[1]);
    CHECK(source.open(Split::Test)->describe() == about[2]);
    CHECK(source.open(Split::All)->describe() == about[3]);
  }
}

TEST_CASE("token text: the lines of a test file are noted and named where they are opened") {
  const TestFolder folder;
  const auto t = of_kind(data::TokenizerKind::WordPiece, some_text());
  const std::string file = folder / "own.txt", other = folder / "other.txt";
  std::ofstream(file) << "a\tthe sea\nb\tland\na\tgreen\n";
  std::ofstream(other) << "b\tthe qqq\na\tsea\n";
  const auto open = [&](Split part) {
    return data::open_class_lines(file, part, t, {.test_file = other, .split = {.validation = 0}});
  };
  CHECK(open(Split::Train)->size() == 3);
  CHECK(open(Split::Train)->notes().empty());
  CHECK(open(Split::All)->size() == 5);
  CHECK(open(Split::All)->sample_name(3) == other + ", line 1");
  const auto test = open(Split::Test);
  CHECK(test->size() == 2);
  REQUIRE(test->notes().size() == 1);
  CHECK(to_string(test->notes()[0])
            .starts_with(other + ", line 1: 1 word or character in 1 of 2 texts of the test part"));
}

TEST_CASE("token text: characters missing from a vocabulary without an unknown token give a note") {
  const TestFolder folder;
  const auto t = data::Tokenizer::parse(
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})", "t");
  CHECK(t.unknown() == -1);
  std::int64_t unknown = 1;
  CHECK(t.encode("abcab", true, &unknown) == Longs{0, 1, 0, 1});
  CHECK(unknown == 2);
  data::TextLosses losses;
  CHECK(data::encode_within(t, "abcab", 3, &losses, "here") == Longs{0, 1, 0});
  CHECK(data::encode_within(t, "ab", 3, &losses, "there") == Longs{0, 1});
  const Notes notes = losses.notes(3);
  REQUIRE(notes.size() == 2);
  CHECK(to_string(notes[0]) == "here: 1 of 2 texts is cut to 3 tokens");
  CHECK(to_string(notes[1]) ==
        "here: 1 word or character in 1 of 2 texts is not in the vocabulary and was left out");
  CHECK(losses.texts() == 2);
  CHECK(losses.cut() == 1);
  CHECK(losses.unknown() == 1);
}

TEST_CASE("token text: lines of two texts have token types, whatever the position of the class") {
  const TestFolder folder;
  std::string first, last;
  for (int k = 0; k < 20; ++k) {
    first += k % 2 == 0 ? "yes\tthe sea\tis green\n" : "no\ta land\tthe wide sea\n";
    last += k % 2 == 0 ? "the sea\tis green\tyes\n" : "a land\tthe wide sea\tno\n";
  }
  const data::Tokenizer t = of_kind(data::TokenizerKind::WordPiece, some_text());
  const auto set = data::open_class_lines(written(folder, first), Split::All, t);
  CHECK(set->input_shape() == Shape{2, 8});
  CHECK(set->class_names() == std::vector<std::string>{"no", "yes"});
  const Example one = example(*set, 0);
  const data::TypedTokens pair = data::encode_pair_within(t, "the sea", "is green", 128);
  Longs wanted = pair.tokens;
  wanted.resize(8, data::kPad);
  wanted.insert(wanted.end(), pair.types.begin(), pair.types.end());
  wanted.resize(16, 0);
  CHECK(one.input == wanted);
  CHECK(one.target == Longs{1});
  const auto same =
      data::open_class_lines(written(folder, last), Split::All, t, {.class_last = true});
  for (std::int64_t k = 0; k < set->size(); ++k) CHECK(example(*same, k) == example(*set, k));
  CHECK_THROWS_WITH_AS(
      data::open_class_lines(written(folder, first + "yes\tone\n"), Split::Train, t),
      doctest::Contains("line 21 has 1 text where the first line has 2"), FormatError);
  CHECK_THROWS_WITH_AS(data::open_class_lines(written(folder, "a\tb\tc\td\n"), Split::Train, t),
                       doctest::Contains("line 1 is not CLASS TAB TEXT"), FormatError);
}

namespace {

// The text of a sample's tokens between two positions.
std::string text_between(const data::Tokenizer& t, const Example& e, std::int64_t first,
                         std::int64_t last) {
  return t.decode(std::span(e.input).subspan(static_cast<std::size_t>(first),
                                             static_cast<std::size_t>(last - first + 1)));
}

}  // namespace

TEST_CASE("token text: answers in texts, from SQuAD's files and from lines") {
  const TestFolder folder;
  // Punctuation, two texts with one question each, an answer inside a word, a multi-byte answer,
  // and no answer.
  const std::string json = R"j({"version": "x", "data": [{"title": "t", "paragraphs": [
    {"context": "The \u00e9t\u00e9 was hot (in 1990). A wide sea, is it green?", "qas": [
      {"id": "1", "question": "when was it", "answers": [{"text": "1990", "answer_start": 20}]},
      {"id": "2", "question": "what was hot", "answers": [{"text": "\u00e9t\u00e9", "answer_start": 4},
                                                         {"text": "The \u00e9t\u00e9", "answer_start": 0}]},
      {"id": "3", "question": "who", "is_impossible": true, "answers": []}]}]}]})j";
  const std::string text =
      "the \xc3\xa9t\xc3\xa9 was hot ( in 1990 ) . a wide sea , is it green ? "
      "when was it what was hot who 1990s";
  const data::Tokenizer t =
      data::Tokenizer::train(text + text, {.kind = data::TokenizerKind::WordPiece, .tokens = 200});
  std::ofstream(folder / "a.json") << json;
  std::ofstream(folder / "b.json") << json;
  const data::SpanOptions both{.length = 64, .test_file = folder / "b.json"};
  const auto set = data::open_spans(folder / "a.json", Split::Train, t, both);
  REQUIRE(set->size() == 3);
  CHECK(set->target_shape() == Shape{2});
  const Example first = example(*set, 0), second = example(*set, 1), third = example(*set, 2);
  CHECK(text_between(t, first, first.target[0], first.target[1]) == "1990");
  CHECK(text_between(t, second, second.target[0], second.target[1]) == "ete");
  CHECK(third.target == Longs{0, 0});
  const std::int64_t length = set->input_shape()[1];
  const data::TypedTokens pair = data::encode_pair_within(
      t, "who", "The \xc3\xa9t\xc3\xa9 was hot (in 1990). A wide sea, is it green?", 64);
  Longs wanted = pair.tokens;
  wanted.resize(static_cast<std::size_t>(length), data::kPad);
  wanted.insert(wanted.end(), pair.types.begin(), pair.types.end());
  wanted.resize(static_cast<std::size_t>(2 * length), 0);
  CHECK(third.input == wanted);  // the tokenizer's result for two texts

  std::ofstream(folder / "lines.tsv") << "when was it\tit was in 1990s sea\t1990\n"
                                         "who\tthe sea\t\n"
                                         "what was hot\tsea , hot sea\tsea\t10\n";
  const auto lines = data::open_spans(
      folder / "lines.tsv", Split::Train, t,
      {.length = 64, .test_file = folder / "lines.tsv", .split = {.validation = 0}});
  const Example part = example(*lines, 0), place = example(*lines, 2);
  CHECK(text_between(t, part, part.target[0], part.target[1]).substr(0, 4) == "1990");
  CHECK(example(*lines, 1).target == Longs{0, 0});
  CHECK(place.target[0] == 1 + 3 + 1 + 3);  // the second sea
}

TEST_CASE("token text: long texts are cut into overlapping windows") {
  const TestFolder folder;
  std::string text;
  for (int k = 0; k < 30; ++k) text += k == 17 ? "green sea " : "wide land ";
  std::ofstream(folder / "long.tsv") << "the sea\t" << text << "\tgreen sea\n";
  const data::Tokenizer t = of_kind(data::TokenizerKind::WordPiece, some_text());
  const std::int64_t count = std::ssize(t.encode(text, false)),
                     asked = std::ssize(t.encode("the sea", false)), room = 20 - 3 - asked;
  const auto set = data::open_spans(folder / "long.tsv", Split::Train, t,
                                    {.length = 20, .stride = 6, .test_file = folder / "long.tsv"});
  CHECK(set->input_shape() == Shape{2, 20});
  std::int64_t windows = 1;
  for (std::int64_t from = 0; from + room < count; from += room - 6) ++windows;
  CHECK(set->size() == windows);
  int found = 0;
  for (std::int64_t k = 0; k < set->size(); ++k) {
    const Example e = example(*set, k);
    if (e.target[0] == 0) continue;
    ++found;
    CHECK(text_between(t, e, e.target[0], e.target[1]) == "green sea");
  }
  CHECK(found >= 1);
  const auto refused = [&](const std::string& lines, const data::SpanOptions& options,
                           const char* words) {
    std::ofstream(folder / "bad.tsv") << lines;
    std::string message;
    data::SpanOptions whole = options;
    whole.split.test = 0;
    try {
      (void)data::open_spans(folder / "bad.tsv", Split::Train, t, whole);
    } catch (const Error& error) {
      message = error.what();
    }
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
  };
  refused("who\tthe sea\tland\n", {}, "line 1: its answer 'land' does not occur in its text");
  refused("who\tthe sea\tsea\t3\n", {}, "is not at character 3");
  refused("who\tthe sea\n", {}, "line 1 is not QUESTION TAB TEXT TAB ANSWER");
  refused("who\tthe sea\tsea\tx\n", {}, "line 1 is not QUESTION TAB TEXT TAB ANSWER");
  refused("who\tthe sea\tsea\n", {.length = 4}, "give a longer length");
  refused("who\t" + text + "\tgreen\n", {.length = 20, .stride = 19}, "a smaller stride");
  refused("{\"data\": 3}", {}, "has no list 'data'");
  refused(
      "{\"data\": [{\"paragraphs\": [{\"context\": \"the sea\", \"qas\": [{\"question\": "
      "\"who\", \"answers\": [{\"text\": \"sea\"}]}]}]}]}",
      {}, "question 'who' has no 'answer_start'");
  refused("{\"data\"", {}, "is not complete JSON");
  const data::Tokenizer bytes = of_kind(data::TokenizerKind::Bpe, some_text());
  std::ofstream(folder / "good.tsv") << "who\tthe sea is\tsea\n";
  CHECK_THROWS_AS(data::open_spans(folder / "good.tsv", Split::Train, bytes), ValueError);
}

TEST_CASE("token text: rows of two texts and of answers equal Hugging Face's") {
  const TestFolder folder;
  const Json wanted = Json::parse(io::read_file("tests/e2e/fixtures/spans.json"));
  const data::Tokenizer t = data::Tokenizer::open("tests/e2e/fixtures/tokenizers/bert.json");
  for (const Json& row : wanted["pairs"]) {
    CAPTURE(row.dump());
    const data::TypedTokens got =
        data::encode_pair_within(t, row[0].get<std::string>(), row[1].get<std::string>(), row[2]);
    CHECK(got.tokens == row[3].get<Longs>());
    CHECK(got.types == row[4].get<Longs>());
  }
  const std::string file = folder / "squad.json";
  std::ofstream(file, std::ios::binary) << wanted["spans"].dump();
  const auto set = data::open_spans(file, Split::Train, t,
                                    {.length = wanted["length"],
                                     .stride = wanted["stride"],
                                     .test_file = file,
                                     .split = {.validation = 0}});
  const Json& rows = wanted["rows"];
  REQUIRE(set->size() == std::ssize(rows));
  const auto length = static_cast<std::size_t>(set->input_shape()[1]);
  for (std::int64_t k = 0; k < set->size(); ++k) {
    const Json& row = rows[static_cast<std::size_t>(k)];
    CAPTURE(row.dump());
    Longs input = row[1].get<Longs>();
    const Longs types = row[2].get<Longs>();
    input.resize(length, data::kPad);
    input.insert(input.end(), types.begin(), types.end());
    input.resize(2 * length, 0);
    const Example e = example(*set, k);
    CHECK(e.input == input);
    CHECK(e.target == Longs{row[3].get<std::int64_t>(), row[4].get<std::int64_t>()});
  }
}

TEST_CASE("token text: tokens of every script are located in their text") {
  const Json lines =
      Json::parse(io::read_file("tests/e2e/fixtures/tokenizers/expected.json"))["lines"];
  for (const char* name : {"bert", "bert_cased"}) {
    const data::Tokenizer t =
        data::Tokenizer::open(std::string("tests/e2e/fixtures/tokenizers/") + name + ".json");
    for (const Json& line : lines) {
      const auto text = line.get<std::string>();
      CAPTURE(text);
      const auto found = data::span_text(t, text);
      CHECK(found->tokens == t.encode(text, false));
      for (const auto& [from, to] : found->bytes) CHECK((from < to && to <= text.size()));
    }
  }
}
