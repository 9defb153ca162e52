// A text that is encoded part by part has the token numbers of the whole, wherever it is cut.
#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/tokenizer.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "data/tokens/token_stream.h"
#include "data/tokens/unicode.h"
#include "io/folder.h"

using namespace tenon;
using namespace tenon::data;
using Json = nlohmann::ordered_json;
using Longs = std::vector<std::int64_t>;

namespace {

const std::vector<std::string> kSigns{
    "a",      "b",      "A",      "'",      "s",      "re",     " ",      "  ",     "\n",
    "\t",     "1",      ".",      "!",      "_",      "\u0301", "\u0323", "\u00e9", "\u0130",
    "\u1100", "\u1161", "\u11a8", "\uac00", "\u6f22", "\u3002", "\u3000", "\u00ad", "\u200b",
    "\ufb01", "\u00bd", "<x>",    "<x",     "ab a",   "\u0001", "\u0431", "\u0915", "\u094d"};

std::string random_text(std::mt19937& random, std::size_t characters) {
  std::string out;
  for (std::size_t k = 0; k < characters; ++k) out += kSigns[random() % kSigns.size()];
  return out;
}

Json random_tokenizer(std::mt19937& random) {
  const auto any = [&](const std::vector<const char*>& list) {
    return Json::parse(list[random() % list.size()]);
  };
  const std::vector<const char*> normalizers{
      "null",
      R"({"type":"NFC"})",
      R"({"type":"NFKC"})",
      R"({"type":"NFD"})",
      R"({"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"NFC"}]})",
      R"({"type":"BertNormalizer","strip_accents":false})",
      R"({"type":"BertNormalizer"})",
      R"({"type":"Sequence","normalizers":[{"type":"BertNormalizer"},{"type":"NFC"}]})"},
      splitters{"null",
                R"({"type":"BertPreTokenizer"})",
                R"({"type":"WhitespaceSplit"})",
                R"({"type":"ByteLevel"})",
                R"({"type":"ByteLevel","use_regex":false})",
                R"({"type":"ByteLevel","add_prefix_space":false})",
                R"({"type":"Sequence","pretokenizers":[{"type":"BertPreTokenizer"},
                    {"type":"ByteLevel"}]})"};
  Json vocabulary = Json::object(), merges = Json::array(), added = Json::array();
  std::int64_t number = 0;
  const auto add = [&](const std::string& token) {
    if (!vocabulary.contains(token)) vocabulary[token] = number++;
  };
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    append_utf8(character, character_of_byte(static_cast<unsigned char>(byte)));
    add(character);
  }
  for (const std::string& character : kSigns) add(character);
  for (const char* merge : {"a b", "ab a", "\u0120 a", "a a", "b a", "' s"}) {
    const std::string text = merge;
    const std::size_t space = text.find(' ');
    add(text.substr(0, space) + text.substr(space + 1));
    merges.push_back(merge);
  }
  for (std::uint32_t k = random() % 5; k > 0; --k)
    added.push_back({{"id", number++},
                     {"content", random_text(random, 1 + random() % 3)},
                     {"single_word", random() % 3 == 0},
                     {"lstrip", random() % 3 == 0},
                     {"rstrip", random() % 3 == 0},
                     {"normalized", random() % 2 == 0}});
  return {{"added_tokens", added},
          {"normalizer", any(normalizers)},
          {"pre_tokenizer", any(splitters)},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

}  // namespace

TEST_CASE("token stream: equal token numbers wherever the text is cut") {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    const std::string json = random_tokenizer(random).dump();
    const TokenizerParts parts = parse_tokenizer_json(json, "random");
    const WordEncoder words(parts.model);
    const AddedFinder raw(parts, false), normalized(parts, true);
    const std::string text = random_text(random, 1 + random() % 200);
    CAPTURE(json);
    CAPTURE(text);
    // Encoded at once nothing is cut: the expected tokens of each text between two added tokens.
    Longs wanted;
    TokenStream whole(parts, words, raw, normalized, wanted);
    whole.push(text);
    whole.end();
    for (const std::size_t most : {1, 2, 7, 50}) {
      Longs numbers;
      TokenStream stream(parts, words, raw, normalized, numbers);
      for (std::size_t from = 0; from < text.size();) {
        const std::size_t count = 1 + random() % most;
        stream.push(std::string_view(text).substr(from, count));
        from += count;
      }
      stream.end();
      CHECK((numbers == wanted));
      CHECK(stream.unknown() == whole.unknown());
    }
  }
}

TEST_CASE(
    "token stream: boundary characters are unchanged by every normal form after any character") {
  // Characters that a normal form may reorder or compose with the previous character.
  std::u32string before{U'a', U'\u1100', U'\uac00', U'\u0301', U'\u0915', U'\u0b47', U' '};
  for (char32_t c = 0; c < 0x20000; ++c) {
    if (!never_combines(c)) continue;
    for (const NormalForm form : {NormalForm::C, NormalForm::D, NormalForm::KC, NormalForm::KD})
      for (const char32_t first : before) {
        const std::u32string apart =
            normal_form(std::u32string(1, first), form) + normal_form(std::u32string(1, c), form);
        if (normal_form(std::u32string{first, c}, form) != apart) FAIL_CHECK("U+" << std::hex << c);
      }
    CHECK_FALSE(is_mark(c));
  }
  CHECK_FALSE(never_combines(U'\u0301'));
  CHECK_FALSE(never_combines(U'\u1161'));
  CHECK_FALSE(never_combines(U'\u0001'));
}

TEST_CASE(
    "token stream: a file has the tokens of its text; invalid UTF-8 is reported with its "
    "position") {
  const TestFolder folder;
  const std::string file = folder / "text.txt";
  std::string text;
  for (int k = 0; k < 30'000; ++k) text += k % 9 == 0 ? "caf\u00e9\n" : "it's \u6f22\u5b57, ";
  std::ofstream(file, std::ios::binary) << text;
  for (const char* name : {"bert", "gpt2", "nfd"}) {
    const Tokenizer tokenizer =
        Tokenizer::open(std::string("tests/e2e/fixtures/tokenizers/") + name + ".json");
    Longs numbers;
    std::size_t most = 0;
    tokenizer.encode_file(file, [&](std::span<const std::int64_t> some) {
      numbers.insert(numbers.end(), some.begin(), some.end());
      most = std::max(most, some.size());
    });
    CHECK((numbers == tokenizer.encode(text)));
    CHECK(most < numbers.size() / 2);
  }
  const Tokenizer tokenizer = Tokenizer::open("tests/e2e/fixtures/tokenizers/bert.json");
  for (const std::string tail :
       {"\xc3", "\xff", "\xe6\xbc", "\xc3(", "\xff\xfe", "\xe9\xe9", "\xf0\xf0\xf0\xf0"}) {
    std::ofstream(file, std::ios::binary) << text << tail;
    CHECK_THROWS_WITH_AS(
        tokenizer.encode_file(file, [](std::span<const std::int64_t>) {}),
        doctest::Contains(
            (file + ": the text is not UTF-8 at byte " + std::to_string(text.size())).c_str()),
        FormatError);
    CHECK_THROWS_AS(tokenizer.encode(text + tail), FormatError);
  }
  std::ofstream(file, std::ios::binary) << "";
  Longs numbers;
  tokenizer.encode_file(file, [&](std::span<const std::int64_t> some) {
    numbers.insert(numbers.end(), some.begin(), some.end());
  });
  CHECK((numbers == tokenizer.encode("")));
}

TEST_CASE("token stream: an endless word is refused before it fills the memory") {
  const Tokenizer tokenizer = Tokenizer::open("tests/e2e/fixtures/tokenizers/gpt2.json");
  const std::string letters(TokenStream::kLongestWord + 2 * TokenStream::kPartBytes, 'a');
  CHECK_THROWS_WITH_AS(tokenizer.encode(letters), doctest::Contains("a word of more than"),
                       ValueError);
}
