// The CSV reader: quoting, line ends, separators, numbers.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "base/str.h"
#include "io/text/csv.h"

using namespace tenon;
using Rows = std::vector<std::vector<std::string>>;

namespace {

Rows read(const std::string& text) {
  io::CsvReader reader(text, "t.csv");
  std::vector<std::string_view> fields;
  Rows rows;
  while (reader.next(fields)) rows.emplace_back(fields.begin(), fields.end());
  return rows;
}

}  // namespace

TEST_CASE("CSV: plain rows, all line ends, no end at the end") {
  const Rows expected{{"1", "2"}, {"3", ""}};
  CHECK(read("1,2\n3,\n") == expected);
  CHECK(read("1,2\r\n3,\r\n") == expected);
  CHECK(read("\xef\xbb\xbf"
             "1,2\n\n\n3,") == expected);
  CHECK(read("# a comment\n1,2\n# another\n3,") == expected);
  CHECK(read("1;2\n3;\n") == expected);
  CHECK(read("1\t2\n3\t\n") == expected);
  CHECK(read("").empty());
  CHECK(read("\n\r\n#only this").empty());
}

TEST_CASE("CSV: quotes") {
  CHECK(read("\"a,b\",\"c\"\"d\"\n\"line\nbreak\",\"\"\r\n") ==
        Rows{{"a,b", "c\"d"}, {"line\nbreak", ""}});
  Rows wide(1);
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += cat(i > 0 ? "," : "", "\"\"\"", i, "\"\"\"");
    wide[0].push_back(cat("\"", i, "\""));
  }
  CHECK(read(text) == wide);
}

TEST_CASE("CSV: errors name the line") {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      read(text);
    } catch (const FormatError& e) {
      return e.what();
    }
    return "";
  };
  CHECK(refusal("1,2\n3,\"open").find("t.csv: line 2") == 0);
  CHECK(refusal("1,2\n\"a\"b,3\n").find("t.csv: line 2") == 0);
}

TEST_CASE("CSV: numbers") {
  double v = 0;
  CHECK(io::parse_number(" +1.5e3\t", v));
  CHECK(v == 1500.0);
  CHECK(io::parse_number("-0.25", v));
  for (const char* bad : {"", " ", "abc", "1x", "nan", "inf", "1e999", "0x10", "1,5", "--1"})
    CHECK_FALSE(io::parse_number(bad, v));
}

TEST_CASE("csv: a field is written so that it is read back as it was") {
  using io::csv_field;
  CHECK(csv_field("plain") == "plain");
  CHECK(csv_field("") == "");
  CHECK(csv_field("a;b") == "a;b");
  CHECK(csv_field("a;b", ';') == "\"a;b\"");
  CHECK(csv_field("a\tb", '\t') == "\"a\tb\"");
  for (const std::string field :
       {"a,b", "say \"so\"", "two\nlines", "\r", "#1", "\xef\xbb\xbf mark", "\"", "a \"b\", c"}) {
    CAPTURE(field);
    const std::string text = csv_field(field) + "," + csv_field("x") + "\n";
    CHECK(text[0] == '"');
    io::CsvReader reader(text, "t.csv");
    std::vector<std::string_view> fields;
    REQUIRE(reader.next(fields));
    REQUIRE(fields.size() == 2);
    CHECK(fields[0] == field);
  }
}
