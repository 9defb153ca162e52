// TOML as a tree: kinds, order, lines, and what is refused.
#include <doctest/doctest.h>

#include <tenon/error.h>

#include "io/text/toml.h"

using namespace tenon;
using io::TomlValue;

TEST_CASE("toml: values keep their kinds, lines and order") {
  const TomlValue tree = io::parse_toml(
      "z = 1\n"
      "a = { y = 2.5, b = \"t\u00e4xt\" } # a comment \u2013 isn't plain\n"
      "list = [\n  true,\n  { k = 'v' },\n]\n"
      "[table.inner]\nkey = -3\n",
      "x.toml");
  using Kind = TomlValue::Kind;
  REQUIRE(tree.entries.size() == 4);
  CHECK(tree.entries[0].key == "z");
  CHECK(tree.entries[1].key == "a");
  CHECK(tree.entries[3].key == "table");
  CHECK(tree.find("z")->whole == 1);
  const TomlValue& a = *tree.find("a");
  CHECK(a.entries[0].key == "y");
  CHECK(a.entries[0].value.real == 2.5);
  CHECK(a.entries[1].value.text == "t\u00e4xt");
  CHECK(a.entries[1].value.line == 2);
  const TomlValue& list = *tree.find("list");
  CHECK(list.is(Kind::List));
  CHECK(list.items[0].is(Kind::Boolean));
  CHECK(list.items[1].line == 5);
  CHECK(tree.find("table")->find("inner")->find("key")->line == 8);
  CHECK(tree.find("table")->find("other") == nullptr);
  CHECK(std::string(list.kind_name()) == "a list");
}

TEST_CASE("toml: a value is written so that it is read again, and entries are replaced") {
  const std::string line =
      "{ text = \"a \\\"b\\\"\", whole = -3, real = 2.0, small = 1e-05, truth = false, "
      "list = [1, [2.5]], tables = [ { a = 1 }, {  } ], \"odd key\" = [] }";
  const TomlValue tree = io::parse_toml("k = " + line + "\n", "x.toml");
  CHECK(io::toml_text(*tree.find("k")) == line);
  TomlValue table = *tree.find("k");
  table.set("whole", io::toml_string("other"));
  table.set("added", io::toml_integer(7));
  CHECK(table.entries.size() == 9);
  CHECK(table.entries[1].value.text == "other");
  CHECK(table.entries.back().key == "added");
  for (const io::TomlEntry& entry : table.entries) CHECK(table.find(entry.key) == &entry.value);
  CHECK(table.find("absent") == nullptr);
}

TEST_CASE("toml: inline tables may span several lines") {
  const TomlValue tree = io::parse_toml("a = {\n  k = 1,  # one\n  l = [ 2 ],\n}\n", "x.toml");
  CHECK(tree.find("a")->entries.size() == 2);
  CHECK(tree.find("a")->find("l")->line == 3);
}

TEST_CASE("toml: errors name the line") {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"a = 1\nb = \n", "line 2"},
           {"a = 1\nb = 1979-05-27\n", "line 2: dates are not supported"},
           {"a = 1\n\nb = \"\"\"x\"\"\"\n", "line 3: multi-line strings"},
           {"a = 1\nb\u00e4 = 2\n", "line 2: characters outside ASCII"},
           {"a = 1\nb = '\u00e4'\n", "line 2: characters outside ASCII"},
           {"# x\n\xff\n", "line 2: the text is not UTF-8"},
           {"[\na = 1\n", "x.toml"}}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(io::parse_toml(text, "x.toml"), doctest::Contains(words.c_str()),
                         FormatError);
  }
}

TEST_CASE("toml: quoted text is read back unchanged") {
  const std::string text = "a\nb\t\"c\\d\u00e4 # 'e'\x01";
  const TomlValue tree = io::parse_toml("k = " + io::toml_quoted(text) + "\n", "x");
  CHECK(tree.find("k")->text == text);
}
