// Tokenizers take linear time: for texts with one endless character, word or line, and for files
// with many tokens.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/tokenizer.h>
#include <nlohmann/json.hpp>

#include "null/thread_time.h"

using namespace tenon;
using data::Tokenizer;
using Json = nlohmann::ordered_json;

namespace {

constexpr int kTimes = 8;
constexpr double kLinear = 20;  // allowed growth for 8 times the size; quadratic time would be 64

/// Time for eight times the size over the time for the size.
template <class Work>
double growth(std::size_t size, const Work& work) {
  test::InTurn turns;
  const auto small = work(size), large = work(kTimes * size);
  for (int k = 0; k < test::kMostAttempts; ++k) {
    turns.attempt(small, large);
    if (k > 1 && turns.ratio() < kLinear) break;
  }
  return turns.ratio();
}

Json word_piece(const std::vector<std::string>& tokens) {
  Json vocabulary = Json::object();
  auto& rows = vocabulary.get_ref<Json::object_t&>();  // nlohmann searches keys one by one
  std::int64_t number = 0;
  for (const std::string& token : tokens) rows.emplace_back(token, number++);
  return {{"added_tokens", Json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", vocabulary}}}};
}

std::string times(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t k = 0; k < count; ++k) out += text;
  return out;
}

}  // namespace

TEST_CASE("tokenizer sizes: combining marks on one character are sorted in linear time") {
  for (const char* kind : {"BertNormalizer", "NFC", "NFKD"}) {
    Json json = word_piece({"[UNK]", "a"});
    json["normalizer"] = {{"type", kind}};
    const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "marks");
    CAPTURE(kind);
    CHECK(growth(4000, [&](std::size_t size) {
            return [&tokenizer, text = "a" + times("\u0301\u0323", size / 2)] {
              tokenizer.encode(text);
            };
          }) < kLinear);
  }
}

TEST_CASE("tokenizer sizes: marks of one combining class keep their order") {
  Json json = word_piece({"[UNK]", "e\u0323\u0301\u0302", "\u1eb9\u0301\u0302"});
  const auto first = [&](const char* form) {
    json["normalizer"] = {{"type", form}};
    return Tokenizer::parse(json.dump(), "marks").encode("e\u0301\u0302\u0323").at(0);
  };
  CHECK(first("NFD") == 1);
  CHECK(first("NFC") == 2);
}

TEST_CASE("tokenizer sizes: WordPiece is linear, and words beyond 100 characters are unknown") {
  Json json = word_piece({"[UNK]", "a", "##a", "##" + times("a", 3000)});
  const auto tokens = [&](std::size_t size) {
    return Tokenizer::parse(json.dump(), "words").encode(times("a", size)).size();
  };
  CHECK(tokens(100) == 100);
  CHECK(tokens(101) == 1);
  json["model"]["max_input_chars_per_word"] = 1 << 20;
  CHECK(tokens(101) == 101);
  CHECK(tokens(3001) == 2);
  const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "words");
  CHECK(growth(4000, [&](std::size_t size) {
          return
              [&tokenizer, word = times("a", 2999) + times("ab", size)] { tokenizer.encode(word); };
        }) < kLinear);
  CHECK(growth(4000, [&](std::size_t size) {
          return [&tokenizer, word = times("a", size)] { tokenizer.encode(word); };
        }) < kLinear);
}

TEST_CASE("tokenizer sizes: the vocabulary of a file") {
  CHECK(growth(4000, [](std::size_t size) {
          std::vector<std::string> tokens{"[UNK]"};
          for (std::size_t k = 0; k < size; ++k) tokens.push_back("tok" + std::to_string(k));
          return [text = word_piece(tokens).dump()] { Tokenizer::parse(text, "vocabulary"); };
        }) < kLinear);
}

TEST_CASE("tokenizer sizes: many added tokens with a common prefix") {
  CHECK(growth(2000, [](std::size_t size) {
          Json json = word_piece({"[UNK]", "a"});
          for (std::size_t k = 0; k < size; ++k)
            json["added_tokens"].push_back(
                {{"id", 2 + k}, {"content", "<extra" + std::to_string(k) + ">"}});
          const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "added");
          return [tokenizer, text = times("<extra?>", size)] { tokenizer.encode(text); };
        }) < kLinear);
}

TEST_CASE("tokenizer sizes: the cost per text does not depend on added tokens' number and length") {
  // Tokens of every length, all with the text's prefix; none occurs alone in the text.
  CHECK(growth(100, [](std::size_t size) {
          Json json = word_piece({"[UNK]", "a"});
          for (std::size_t k = 1; k < 100; ++k)
            json["added_tokens"].push_back({{"id", 1 + k},
                                            {"content", times("a", k * size / 100) + "b"},
                                            {"single_word", true}});
          const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "added");
          return [tokenizer, text = times("a", 100 * size)] { tokenizer.encode(text); };
        }) < kLinear);
  CHECK(growth(2000, [](std::size_t size) {
          Json json = word_piece({"[UNK]", "a"});
          for (std::size_t k = 0; k < 4; ++k)
            json["added_tokens"].push_back({{"id", 2 + k},
                                            {"content", times("ab", size / 2) + times("c", k)},
                                            {"lstrip", true},
                                            {"normalized", k % 2 == 0}});
          return [text = json.dump(), size] {
            Tokenizer::parse(text, "added").encode(times("ab", 2 * size) + times(" ", size));
          };
        }) < kLinear);
}

TEST_CASE(
    "tokenizer sizes: the first and longest added token matches; a discarded match blocks others") {
  Json json = word_piece({"[UNK]"});
  const std::vector<std::pair<std::string, bool>> tokens{
      {"ab", false}, {"abc", true}, {"bcd", false}, {"c", false}, {"ab", true}};
  for (std::size_t k = 0; k < tokens.size(); ++k)
    json["added_tokens"].push_back(
        {{"id", 1 + k}, {"content", tokens[k].first}, {"single_word", tokens[k].second}});
  const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "first");
  using Longs = std::vector<std::int64_t>;
  CHECK(tokenizer.encode("abc") == Longs{2});
  CHECK(tokenizer.encode("abcd") ==
        Longs{0});  // "abc" is discarded as a whole, like in Hugging Face's
  CHECK(tokenizer.encode("abd") == Longs{1, 0});
  CHECK(tokenizer.encode("bcd ab") == Longs{3, 1});
}

TEST_CASE("tokenizer sizes: a small file cannot request many steps or many tokens around a text") {
  Json json = word_piece({"[UNK]", "a"});
  Json ids = Json::array(), single = Json::array(), steps = Json::array();
  for (int k = 0; k < 100; ++k) {
    ids.push_back(1);
    single.push_back({{"SpecialToken", {{"id", "a"}, {"type_id", 0}}}});
    steps.push_back({{"type", "Lowercase"}});
  }
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  json["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", single},
                            {"pair", Json::array()},
                            {"special_tokens", {{"a", {{"id", "a"}, {"ids", ids}}}}}};
  CHECK_THROWS_WITH_AS(Tokenizer::parse(json.dump(), "template"),
                       doctest::Contains("more than 4096 tokens"), FormatError);
  json["post_processor"] = nullptr;
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  CHECK_THROWS_WITH_AS(Tokenizer::parse(json.dump(), "steps"),
                       doctest::Contains("more than 64 steps"), FormatError);
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", Json::array()}};
  for (int k = 0; k < 100; ++k)
    json["pre_tokenizer"]["pretokenizers"].push_back({{"type", "WhitespaceSplit"}});
  CHECK_THROWS_WITH_AS(Tokenizer::parse(json.dump(), "steps"),
                       doctest::Contains("more than 64 steps"), FormatError);
}

TEST_CASE("tokenizer sizes: a single_word token has no word character beside it") {
  Json json = word_piece({"[UNK]"});
  json["added_tokens"].push_back({{"id", 1}, {"content", "a"}, {"single_word", true}});
  const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "alone");
  const auto finds = [&](const char* text) {
    const auto numbers = tokenizer.encode(text);
    return std::find(numbers.begin(), numbers.end(), 1) != numbers.end();
  };
  CHECK(
      finds("\u00bd"
            "a"));                // the fraction one half is not a digit
  CHECK_FALSE(finds("a\u0947"));  // marks and connectors belong to words
  CHECK_FALSE(finds("a\u203f"));
  CHECK_FALSE(finds("7a"));
  CHECK(finds("(a)"));
}

TEST_CASE("tokenizer sizes: a line of megabytes has the tokens of its parts") {
  const std::string part = " The caf\u00e9's  tail, of 1234 words: it's e\u0301  long";
  constexpr std::size_t kParts = 20'000;
  const std::string line = times(part, kParts).substr(1);
  for (const char* name : {"bert", "bert_cased", "gpt2", "roberta", "nfc", "nfd"}) {
    const Tokenizer tokenizer =
        Tokenizer::open(std::string("tests/e2e/fixtures/tokenizers/") + name + ".json");
    std::vector<std::int64_t> wanted = tokenizer.encode(part.substr(1), false);
    const std::vector<std::int64_t> again = tokenizer.encode(part, false);
    for (std::size_t k = 1; k < kParts; ++k)
      wanted.insert(wanted.end(), again.begin(), again.end());
    CAPTURE(name);
    CHECK((tokenizer.encode(line, false) == wanted));
  }
}
