// Tokenizers compared with Hugging Face's (make_tokenizer_fixtures.py): equal numbers and texts on
// a difficult corpus, equal learned vocabularies, and damaged or unknown files refused.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/tokenizer.h>

#include "io/folder.h"

using namespace tenon;
using data::Tokenizer;
using Json = nlohmann::json;

namespace {

const std::string kTokenizers = "tests/e2e/fixtures/tokenizers/";

const Json& expected_tokens() {
  static const Json json = Json::parse(io::read_file(kTokenizers + "expected.json"));
  return json;
}

void check_as_expected(const Tokenizer& tokenizer, const std::string& name) {
  const Json& rows = expected_tokens()[name];
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto line = expected_tokens()["lines"][k].get<std::string>();
    CAPTURE(name);
    CAPTURE(k);
    CAPTURE(line);
    const auto wanted = rows[k][0].get<std::vector<std::int64_t>>();
    CHECK(tokenizer.encode(line) == wanted);
    CHECK(tokenizer.decode(wanted) == rows[k][1].get<std::string>());
  }
}

std::string refusal(const std::string& json) {
  const TestFolder folder;
  io::write_file(folder / "tokenizer.json", json);
  try {
    Tokenizer::open(folder / "");
  } catch (const FormatError& e) {
    return e.what();
  } catch (const NotSupported& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("tokenizers: Hugging Face's numbers and texts on every script") {
  for (const char* name : {"bert", "bert_cased", "gpt2", "roberta", "nfc", "nfd"})
    check_as_expected(Tokenizer::open(kTokenizers + name + ".json"), name);
}

TEST_CASE("tokenizers: the older file formats give the same numbers") {
  for (const char* path : {"bert", "bert/vocab.txt"})
    check_as_expected(Tokenizer::open(kTokenizers + path), "bert");
  for (const char* path : {"gpt2", "gpt2/vocab.json"})
    check_as_expected(Tokenizer::open(kTokenizers + path), "gpt2");
}

TEST_CASE("tokenizers: a saved tokenizer is read back unchanged") {
  const TestFolder folder;
  for (const char* name : {"bert", "bert_cased", "gpt2", "roberta", "nfc", "nfd"}) {
    Tokenizer::open(kTokenizers + name + ".json").save(folder / "t.json");
    check_as_expected(Tokenizer::open(folder / "t.json"), name);
  }
}

TEST_CASE("tokenizers: byte-level BPE is learned as by Hugging Face's trainer") {
  const TestFolder folder;
  const std::string corpus = io::read_file(kTokenizers + "corpus.txt");
  Tokenizer::train(corpus, {.tokens = 900}).save(folder / "ours.json");
  const Json ours = Json::parse(io::read_file(folder / "ours.json"))["model"];
  const Json theirs = Json::parse(io::read_file(kTokenizers + "gpt2.json"))["model"];
  CHECK(ours["vocab"] == theirs["vocab"]);
  CHECK(ours["merges"] == theirs["merges"]);
}

TEST_CASE("tokenizers: WordPiece is learned, and knows every word of its text") {
  const std::string corpus = io::read_file(kTokenizers + "corpus.txt");
  const Tokenizer lower = Tokenizer::train(
      corpus, {.kind = data::TokenizerKind::WordPiece, .tokens = 1400, .least = 1});
  CHECK(lower.size() == 1400);
  CHECK(lower.token(0) == "[PAD]");
  const auto numbers = lower.encode("The QUICK brown Füchs");
  CHECK(numbers.front() == lower.number("[CLS]"));
  CHECK(numbers.back() == lower.number("[SEP]"));
  CHECK(lower.decode(numbers) == "the quick brown fuchs");
  const auto all = lower.encode(corpus);
  CHECK(std::count(all.begin(), all.end(), lower.number("[UNK]")) == 0);
  const Tokenizer cased = Tokenizer::train(
      corpus, {.kind = data::TokenizerKind::WordPiece, .tokens = 1400, .least = 1, .lower = false});
  CHECK(cased.decode(cased.encode("The")) == "The");
  CHECK_THROWS_WITH_AS(
      Tokenizer::train(corpus, {.tokens = 100}),
      doctest::Contains(
          "has no room for the 257 characters and special tokens of the text: allow at least 257"),
      ValueError);
  CHECK(Tokenizer::train("").size() == 257);
  CHECK_THROWS_AS(Tokenizer::train("\xff"), FormatError);
}

TEST_CASE("tokenizers: long words and long texts take linear time") {
  const Tokenizer tokenizer = Tokenizer::open(kTokenizers + "gpt2.json");
  const auto seconds = [&](std::size_t signs) {
    const std::string word(signs, 'e');
    const auto start = std::chrono::steady_clock::now();
    CHECK(tokenizer.decode(tokenizer.encode(word)) == word);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds(1000);
  CHECK(seconds(400'000) < 5);  // quadratic: minutes
}

TEST_CASE("tokenizers: tokens of any bytes decode to text") {
  const Tokenizer tokenizer = Tokenizer::open(kTokenizers + "gpt2.json");
  const auto numbers = tokenizer.encode("\xf0\x9f\x98\x80");
  REQUIRE(numbers.size() > 1);
  const std::vector<std::int64_t> cut(numbers.begin(), numbers.end() - 1);
  CHECK(tokenizer.decode(cut) == "\xef\xbf\xbd");
  CHECK_THROWS_AS(tokenizer.decode(std::vector<std::int64_t>{tokenizer.size()}), ValueError);
  CHECK_THROWS_AS(tokenizer.encode("\xc3"), FormatError);
  CHECK(tokenizer.number("no such token") == -1);
}

TEST_CASE("tokenizers: damaged or unknown files are refused by name") {
  const std::string model = R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":)";
  CHECK(refusal("{" + model + R"(["a b"]}})") == "");
  CHECK(refusal("{" + model + R"(["a c"]}})").find("'c' is not in the vocabulary") !=
        std::string::npos);
  CHECK(refusal("{" + model + R"(["a"]}})").find("not two tokens") != std::string::npos);
  CHECK(refusal("{" + model + R"([["a",1]]}})").find("not two tokens") != std::string::npos);
  CHECK(refusal("{" + model + R"([]},"normalizer":{"type":"Precompiled"}})").find("Precompiled") !=
        std::string::npos);
  CHECK(refusal("{" + model + R"([]},"pre_tokenizer":{"type":"Metaspace"}})").find("Metaspace") !=
        std::string::npos);
  CHECK(refusal("{" + model + R"([]},"decoder":{"type":"CTC"}})").find("CTC") != std::string::npos);
  CHECK(refusal(R"({"model":{"type":"Unigram","vocab":{}}})").find("Unigram") != std::string::npos);
  CHECK(refusal(R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})").find("number") !=
        std::string::npos);
  CHECK(refusal(R"({"model":{"type":"BPE","vocab":{"a":1e18},"merges":[]}})").find("number") !=
        std::string::npos);
  CHECK(refusal("{" + model + R"([]},"post_processor":{"type":"BertProcessing",)" +
                R"("sep":["x",3],"cls":["y",0]}})")
            .find("puts token 3") != std::string::npos);
  CHECK(refusal("{}").find("no 'model'") != std::string::npos);
  CHECK(refusal("[1").find("not a JSON object") != std::string::npos);
  CHECK_THROWS_AS(Tokenizer::open("/nowhere/tokenizer.json"), IoError);
}
