// JSON: parser and printer compared with nlohmann's, and values under failing allocations.
#include "io/text/json.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

namespace {

using namespace tenon;
using io::Json;
using Other = nlohmann::ordered_json;

// Both parsers refuse the text, or both read the same value.
void check_same(const std::string& text) {
  CAPTURE(text);
  const Json ours = io::parse_json_or_discard(text);
  Other theirs;
  try {
    theirs = Other::parse(text);
  } catch (const Other::exception&) {  // a number that is too large is not a parse_error
    theirs = Other(Other::value_t::discarded);
  }
  REQUIRE(ours.is_discarded() == theirs.is_discarded());
  if (ours.is_discarded()) return;
  CHECK(io::json_text(ours) == theirs.dump());
  CHECK(io::json_text(ours, 1) == theirs.dump(1));
}

const char* const kTexts[] = {"",
                              " ",
                              "{",
                              "}",
                              "[",
                              "]",
                              "[]",
                              "{}",
                              " [ ] ",
                              "{ }",
                              "[1,]",
                              "[,1]",
                              "[1 2]",
                              "{\"a\":}",
                              "{\"a\" 1}",
                              "{\"a\":1,}",
                              "{1:2}",
                              "{\"a\":1 \"b\":2}",
                              "1 2",
                              "nul",
                              "null",
                              "true",
                              "falsey",
                              "True",
                              "+1",
                              "-",
                              "-0",
                              "-1",
                              "01",
                              "0",
                              "-0.0",
                              "0.5",
                              ".5",
                              "5.",
                              "1e5",
                              "1E+5",
                              "1e-7",
                              "1e",
                              "1e+",
                              "1e400",
                              "-1e400",
                              "1e-400",
                              "0e999999999999999999999",
                              "0.0001e-330",
                              "1e308",
                              "18446744073709551615",
                              "18446744073709551616",
                              "-9223372036854775808",
                              "-9223372036854775809",
                              "123456789012345678901234567890",
                              "\"\"",
                              "\"a",
                              "\"\\x\"",
                              "\"\\u12\"",
                              "\"\\u00e9\"",
                              "\"\\ud83d\\ude00\"",
                              "\"\\ud83d\"",
                              "\"\\ud83dx\"",
                              "\"\\ud83d\\u0041\"",
                              "\"\\ude00\"",
                              "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                              "\"tab\there\"",
                              "\"\x7f\"",
                              "\"\\u0000\\u001f\"",
                              "\"\xc3\xa9\"",
                              "\"\xc3\"",
                              "\"\xc0\x80\"",
                              "\"\xed\xa0\x80\"",
                              "\"\xf5\x80\x80\x80\"",
                              "\xef\xbb\xbf[1]",
                              "\xef\xbb[1]",
                              "[1]\v",
                              "\f[1]",
                              "\r\n\t [1]",
                              "[[[[1],2],{}],\"x\"]",
                              "{\"a\":[1,{\"b\":null}],\"c\":{\"d\":{}}}",
                              "// no\n1",
                              "[1]]",
                              "{\"a\":1}}",
                              "'a'",
                              "NaN",
                              "Infinity",
                              "{\"a\":1,\"b\":2,\"c\":[]}"};

TEST_CASE("json: texts are read and refused as by nlohmann's parser") {
  for (const char* text : kTexts) check_same(text);
  check_same(std::string("[1]\0", 4).substr(0, 3));
  CHECK(io::parse_json_or_discard(std::string_view("[1]\0", 4)).is_discarded());
}

TEST_CASE("json: texts with a few changed bytes are read and refused as by nlohmann's parser") {
  std::mt19937 random(7);
  const std::string alphabet = "{}[]:,\"\\u0123456789eE+-.tfn aldrs\xc3\xa9\x80\n";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = kTexts[random() % std::size(kTexts)];
    for (unsigned change = random() % 4; change > 0; --change) {
      const std::size_t place = random() % (text.size() + 1);
      const char byte = alphabet[random() % alphabet.size()];
      if (random() % 2 == 0)
        text.insert(place, 1, byte);
      else if (place < text.size())
        text[place] = byte;
    }
    // Of equal keys the last value is used, at the position that nlohmann's printer shows.
    check_same(text);
  }
}

TEST_CASE("json: real numbers are printed as by nlohmann, and read back bit for bit") {
  std::mt19937_64 random(3);
  std::vector<double> values = {0.0,   -0.0,   1.0,    0.1,   1e15, 1e16, 123456789012345.0,
                                1e-4,  1e-5,   5e-324, 1e300, 1e22, 1.5,  -2.25,
                                100.0, 99999.5};
  for (int k = 0; k < 5'000; ++k) values.push_back(std::bit_cast<double>(random()));
  for (int k = 0; k < 5'000; ++k)
    values.push_back(
        static_cast<double>(static_cast<std::int64_t>(random() % 2'000'001) - 1'000'000) / 1000);
  for (const double value : values) {
    const std::string text = io::json_text(value);
    if (!std::isfinite(value)) {
      CHECK(text == "null");
      continue;
    }
    CAPTURE(text);
    CHECK(std::bit_cast<std::uint64_t>(io::parse_json(text).get<double>()) ==
          std::bit_cast<std::uint64_t>(value));
    // nlohmann's digits are not always the fewest.
    const std::string theirs = Other(value).dump();
    CHECK((text == theirs || text.size() < theirs.size() || Other::parse(theirs) == Other(value)));
  }
  for (const double value : {0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 1e-4, 1e-5, 1e22, 100.0, 1.25e-300})
    CHECK(io::json_text(value) == Other(value).dump());
}

TEST_CASE("json: values are built and printed like nlohmann's") {
  const std::vector<std::string> names{"a", "b"};
  const Json ours = Json()
                        .add("n", 1)
                        .add("list", Json().append(1).append(2.5).append("x"))
                        .add("none", nullptr)
                        .add("names", names)
                        .add("yes", true)
                        .add("in", Json().add("a", "b").add("c", -1))
                        .add("empty", Json::object());
  const Other theirs{
      {"n", 1},      {"list", {1, 2.5, "x"}},         {"none", nullptr},         {"names", names},
      {"yes", true}, {"in", {{"a", "b"}, {"c", -1}}}, {"empty", Other::object()}};
  CHECK(io::json_text(ours) == theirs.dump());
  CHECK(io::json_text(ours, 2) == theirs.dump(2));
  CHECK(ours == io::parse_json(theirs.dump()));
  CHECK(ours.at("names").get<std::vector<std::string>>() == names);
  CHECK(Json(1) == Json(1.0));
  CHECK(Json(-1) == Json(std::int64_t{-1}));
  CHECK_FALSE(Json(1) == Json("1"));
}

TEST_CASE("json: a value of another kind, a missing key and a number out of range are errors") {
  const Json json = io::parse_json(R"({"a": 300, "b": -1, "c": "x", "d": 1.5, "e": [1]})");
  CHECK(json.at("a").get<int>() == 300);
  CHECK_THROWS_AS((void)json.at("a").get<signed char>(), Json::out_of_range);
  CHECK_THROWS_AS((void)json.at("b").get<std::uint64_t>(), Json::out_of_range);
  CHECK_THROWS_AS((void)json.at("d").get<int>(), Json::type_error);
  CHECK_THROWS_AS((void)json.at("c").get<double>(), Json::type_error);
  CHECK_THROWS_AS((void)json.at("z"), Json::out_of_range);
  CHECK_THROWS_AS((void)json.at("e").at("z"), Json::type_error);
  CHECK_THROWS_AS((void)json.at("e")[1], Json::out_of_range);
  CHECK_THROWS_AS((void)json.value("a", ""), Json::type_error);
  CHECK(json.value("z", "otherwise") == "otherwise");
}

TEST_CASE("json: bytes that are not UTF-8 are refused or replaced") {
  CHECK_THROWS_AS(io::json_text(Json("a\xff")), Json::type_error);
  CHECK(io::json_text(Json("a\xff\xfe\x62"), -1, io::NoUtf8::IsReplaced) ==
        "\"a\xef\xbf\xbd\xef\xbf\xbd\x62\"");
}

}  // namespace
