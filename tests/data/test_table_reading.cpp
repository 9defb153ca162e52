// Tables from other programs: headers, encodings, separators, number formats, dates, labels, and
// the notes about them.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "base/str.h"
#include "data/said.h"
#include "data/tables.h"
#include "data/tables/csv_dataset.h"
#include "io/folder.h"

using namespace tenon;
using namespace tables;
using data::CsvOptions;
using said::has;
using said::note;

namespace {

using Floats = std::vector<float>;
using Words = std::vector<std::string>;
using Classes = std::vector<std::int64_t>;

Classes targets(const data::TensorDatasetParts& parts) {
  return parts.target.to_vector<std::int64_t>();
}

Words names(const data::TensorDatasetParts& parts) {
  Words out;
  for (const data::TableColumn& column : parts.table->columns) out.push_back(column.name);
  return out;
}

// Rows with one column of words and a label.
std::string rows_of(const Words& fields) {
  std::string out = "a;label\n";
  for (std::size_t k = 0; k < fields.size(); ++k) out += cat(fields[k], ";", k % 2, "\n");
  return out;
}

}  // namespace

TEST_CASE("table reading: equal column names are renamed as by pandas") {
  const auto parts = parse("a,a,a.1,a,label\n1,2,3,4,0\n5,6,7,8,1\n");
  CHECK(names(parts) == Words{"a", "a.2", "a.1", "a.3"});
  CHECK(note(parts.notes, "becomes 'a.2'") ==
        "t.csv, line 1: column 1 is called 'a' as column 0 is (counted from 0), and becomes 'a.2'; "
        "1 more like "
        "it");
  // Read again with the table's own columns, every column is found at its position.
  for (const char* header : {"x,x,label", "x,X,label", "x, x,label", "x,y,label"}) {
    const std::string text = cat(header, "\n1,10,0\n2,20,1\n");
    const auto train = parse(text);
    CHECK(inputs(train) == Floats{1, 10, 2, 20});
    CsvOptions again;
    again.columns = train.table;
    CHECK(inputs(parse(text, again)) == Floats{1, 10, 2, 20});
  }
}

TEST_CASE("table reading: a name is found exactly, else by a single match that ignores case") {
  CsvOptions options;
  options.label_name = "X";
  CHECK(names(parse("x,X,b\n1,0,3\n2,1,4\n", options)) == Words{"x", "b"});
  options.label_name = " b ";
  CHECK(names(parse("x,X,B\n1,0,3\n2,1,4\n", options)) == Words{"x", "X"});
  options.label_name = "My  Label";
  CHECK(names(parse("x,my label\n1,0\n2,1\n", options)) == Words{"x"});
  options.label_name = "x y";
  CHECK(has(refusal("X y,x  Y,b\n1,0,3\n2,1,4\n", options), "'X y' or 'x  Y'"));
  // A column of the file is not used for two columns of the model.
  CsvOptions known;
  known.columns = parse("x,X,label\n1,10,0\n2,20,1\n").table;
  CHECK(has(refusal("x,y,label\n1,10,0\n", known), "matches two of the model's columns"));
  CHECK(inputs(parse("X,x,label\n1,10,0\n", known)) == Floats{10, 1});
}

TEST_CASE("table reading: encodings") {
  const std::string latin =
      "town,label\nOrl\xe9"
      "ans,0\nLyon,1\nLyon,1\nOrl\xe9"
      "ans,caf\xe9\n";
  CHECK(has(refusal(latin), "t.csv: line 2 is not UTF-8 (byte 233)"));
  CHECK(has(refusal(latin), "encoding=cp1252"));
  CsvOptions options;
  options.rows.encoding = "latin1";
  const auto parts = parse(latin, options);
  CHECK(parts.table->columns[0].values == Words{"Lyon", "Orléans"});
  CHECK(parts.class_names == Words{"0", "1", "café"});
  // A model trained on Latin-1 reads other files in Latin-1 or UTF-8.
  CsvOptions later;
  later.columns = parts.table;
  CHECK(inputs(parse(latin, later)) == inputs(parts));
  CHECK(inputs(parse("town,label\nOrléans,1\n", later)) == Floats{0, 1});
  options.rows.encoding = "cp1252";
  CHECK(parse("a,label\n1,\x80\n2,\x93x\x94\n", options).class_names == Words{"“x”", "€"});
  CHECK(has(refusal("a,label\n1,\x81\n", options), "byte 129, which cp1252 does not define"));
  // UTF-16 from spreadsheets, in both byte orders, and without a byte order mark.
  std::string little("\xff\xfe", 2), big("\xfe\xff", 2), bare;
  for (const char c : std::string("a\tlabel\r\n1\t0\r\n2\t1\r\n")) {
    little += c, little += '\0';
    big += '\0', big += c;
    bare += c, bare += '\0';
  }
  CHECK(inputs(parse(little)) == Floats{1, 2});
  CHECK(inputs(parse(big)) == Floats{1, 2});
  CHECK(has(refusal(bare), "encoding=utf-16"));
  options.rows.encoding = "utf-16";
  CHECK(inputs(parse(bare, options)) == Floats{1, 2});
  options.rows.encoding = "ebcdic";
  CHECK(has(refusal("a,label\n1,0\n", options),
            "utf-8, latin1, cp1252, utf-16, utf-16-le or utf-16-be"));
  CHECK(names(parse("\xef\xbb\xbf"
                    "a,label\n1,0\n2,1\n")) == Words{"a"});
}

TEST_CASE("table reading: headers of numbers and of usual names") {
  const auto pandas = parse("0,1,2,label\n0.5,1,2,0\n1.5,3,4,1\n0.5,1,2,1\n");
  CHECK(pandas.input.shape() == Shape{3, 3});
  CHECK(names(pandas) == Words{"0", "1", "2"});
  CHECK(note(pandas.notes, "3 of its 4 names are numbers") != "");
  CHECK(pandas.class_names == Words{"0", "1"});
  // If the label column's name is also a label, nothing is guessed.
  CHECK(has(refusal("1,2,y\n3,4,n\n5,6,n\n7,8,y\n"), "") == true);
  CHECK(parse("1,2,y\n3,4,n\n5,6,y\n").input.shape() == Shape{3, 2});
  std::string late = "1,2,y\n";
  for (int k = 0; k < 100; ++k) late += "3,4,n\n";
  CHECK(has(refusal(late + "5,6,y\n"), "header=yes or header=no"));
  // A row of words is a header if none of them occurs again.
  CHECK(note(parse("kind,colour,size\nbig,red,a\nsmall,blue,b\n").notes, "read as a header") != "");
  CHECK(parse("big,red,a\nbig,blue,b\n").input.shape() == Shape{2, 3});
  CHECK(parse("big,red,0\nsmall,blue,1\n").input.shape() == Shape{2, 4});
  CsvOptions options;
  options.rows.header = true;
  CHECK(pandas.notes.size() ==
        parse("0,1,2,label\n0.5,1,2,0\n1.5,3,4,1\n0.5,1,2,1\n", options).notes.size() + 1);
  // Without a header columns are named by number.
  options = {};
  options.left_out = {"0"};
  options.categories = {"1"};
  CHECK(parse("9,7,5,0\n8,7,6,1\n", options).input.shape() == Shape{2, 2});
}

TEST_CASE("table reading: UTF-16 without a byte order mark") {
  const std::string text = "a,label\n1,x\n2,y\n";
  std::string little, big;
  for (const char c : text) little += {c, '\0'}, big += {'\0', c};
  for (const std::string& bytes : {little, big}) {
    CHECK(inputs(parse(bytes, {.rows = {.encoding = "utf-16"}})) == Floats{1, 2});
    CHECK(has(refusal(bytes), "encoding=utf-16"));
  }
  CHECK(inputs(parse(big, {.rows = {.encoding = "utf-16-be"}})) == Floats{1, 2});
  CHECK(inputs(parse(little, {.rows = {.encoding = "utf-16-le"}})) == Floats{1, 2});
}

TEST_CASE("table reading: one row, and a second header") {
  CHECK(note(parse("1,2,x\n").notes, "the only row is read as a row, not as a header") != "");
  CHECK(has(refusal("label,1,2\n"), "contains a header but no rows"));
  CHECK(has(refusal("A,B,C\nwidth,height,kind\n1,2,x\n3,4,y\n5,6,x\n"),
            "where the line is a second header"));
}

TEST_CASE("table reading: numbers as names are above words, or number the columns") {
  // Each begins with a header of numbers.
  for (const char* text :
       {"0,1,2\nred,big,cat\nblue,small,dog\n", "0,1,kind\nred,big,cat\nblue,small,dog\n",
        "7,9,3\nred,1,cat\nblue,2,dog\n", ",0,1,2\n0,1.5,2,1\n1,2.5,3,0\n",
        "0,1,2\n5.1,3.5,1\n4.9,3,0\n", "town,2024,kind\nAix,big,a\nBonn,low,b\n"}) {
    CAPTURE(text);
    const auto parts = parse(text);
    CHECK(parts.input.size(0) == 2);
    CHECK(note(parts.notes, "(header=no says otherwise)") != "");
    CHECK(parse(text, {.rows = {.header = false}}).input.size(0) == 3);
    CHECK(refusal(text, {.strict = true}) != "");
  }
  // These begin with data: words occur again, or numbers do not number the columns.
  for (const char* text : {"red,5,cat\nred,big,dog\nblue,low,cat\n", "1,2,3\n4,5,6\n7,8,6\n",
                           "5,6,cat\nbig,7,dog\nlow,8,cat\n"})
    CHECK(parse(text).notes.empty());
  // A note reports an ambiguous first row.
  CHECK(note(parse("0,1\n1,0\n1,1\n").notes, "is read as a row, though it counts") != "");
  CHECK(note(parse("2.5,y,w\n1,a,b\n2,a,c\n").notes, "though none of its words occurs again") !=
        "");
  CHECK(note(parse("1.5,6,cat\nbig,7,dog\nlow,8,pig\n").notes, "is read as a row, though a") != "");
}

TEST_CASE("table reading: the label column is reported, and column numbers count from 0") {
  const auto label = [](const std::string& text, const CsvOptions& options = {}) {
    return parse(text, options).table->label_text();
  };
  CHECK(label("a,species,b\n1,x,2\n2,y,3\n") == "column 'b' (number 2, counted from 0)");
  CHECK(label("a,label,b\n1,x,2\n2,y,3\n") == "column 'label' (number 1, counted from 0)");
  CHECK(label("1,2,x\n2,3,y\n") == "column 2 (counted from 0)");
  CHECK(label("a,b\n1,2\n", {.labelled = false}) == "");
  // The reported number can be used in an option.
  CsvOptions options;
  options.label_name = "1";
  CHECK(label("1,x,2\n2,y,3\n", options) == "column 1 (counted from 0)");
  CHECK(parse("1,x,2\n2,y,3\n", options).table->columns[1].number == 2);
  CHECK(has(refusal("1,2,0\n3,4,0\n5,x,0\n"), "column 1 (counted from 0): 'x'"));
  // Without a header the label is at the same position as for the model.
  CsvOptions later;
  later.columns = parse("1,x,2\n2,y,3\n", options).table;
  CHECK(targets(parse("5,y,6\n", later)) == Classes{1});
}

TEST_CASE("table reading: rows without a label are left out, whatever the task") {
  std::string prices = "a,price\n";
  for (int k = 0; k < 30; ++k) prices += cat(k, ",", k == 7 ? "NA" : cat(1000 + 17 * k), "\n");
  CHECK(has(refusal(prices), "29 different ones in 29 rows"));
  CsvOptions quantities;
  quantities.classes = false;
  const auto rows = parse(prices, quantities);
  CHECK(rows.target.shape() == Shape{29, 1});
  CHECK(note(rows.notes, "no label") == "t.csv, line 9: 1 row has no label ('NA') and is left out");
  CHECK(rows.numbers[7] == 10);
  const std::string text = "a,label\n1,x\n2,\n3,nan\n4,y\n5,?\n";
  const auto classes = parse(text);
  CHECK(classes.class_names == Words{"x", "y"});
  CHECK(targets(classes) == Classes{0, 1});
  CHECK(inputs(classes) == Floats{1, 4});
  CHECK(note(classes.notes, "3 rows have no label") ==
        "t.csv, line 3: 3 rows have no label ('' in 1, 'nan' in 1, '?' in 1) and are left out; "
        "category=label reads such words as classes");
  CHECK(refusal(text, {.strict = true}) != "");
  // For predictions every row is kept.
  CsvOptions all;
  all.columns = classes.table;
  CHECK(targets(parse(text, all)) == Classes{0, 1});
  all.keep_unlabelled = true;
  CHECK(targets(parse(text, all)) ==
        Classes{0, data::kIgnoredTarget, data::kIgnoredTarget, 1, data::kIgnoredTarget});
  // Labels that the model does not know are none, if most are known.
  const auto unknown = parse("a,label\n1,x\n2,warm\n3,y\n4,\n", all);
  CHECK(targets(unknown) == Classes{0, data::kIgnoredTarget, 1, data::kIgnoredTarget});
  CHECK(note(unknown.notes, "not one of the 2 known classes") ==
        "t.csv, line 3: column 'label': 1 row has a label that is not one of the 2 known classes, "
        "such as 'warm': no label");
  CHECK(note(unknown.notes, "no label ('')") == "t.csv, line 5: 1 row has no label ('')");
  CHECK(has(refusal("a,label\n1,x\n2,warm\n3,hot\n4,warm\n", all),
            "line 3, column 'label': the label 'warm' is not one of the 2 known classes, in 3 of 4 "
            "rows: correct these labels"));
  quantities.keep_unlabelled = true;
  CHECK(std::isnan(parse(prices, quantities).target.to_vector<float>()[7]));
  // With category= all words are classes, even "NA" and numbers.
  CsvOptions words;
  words.categories = {"label"};
  const auto named = parse("a,label\n1,None\n2,2.5\n3,NA\n4,\n5,10\n", words);
  CHECK(named.class_names == Words{"10", "2.5", "NA", "None"});
  CHECK(targets(named) == Classes{3, 1, 2, 0});
  all = {};
  all.columns = named.table;
  CHECK(targets(parse("a,label\n1,NA\n2,null\n", all)) == Classes{2});
}

TEST_CASE(
    "table reading: spaces around words are removed, and a note counts words that become equal") {
  const auto parts = parse("town,label\nAix, a\nAix ,a\nBonn,b\nBonn,a \nAix, b \n");
  CHECK(parts.class_names == Words{"a", "b"});
  CHECK(note(parts.notes, "column 'label'") ==
        "t.csv, line 2: column 'label': 3 fields with spaces around a word, such as 'a', are read "
        "as the same word without spaces");
  CHECK(note(parts.notes, "column 'town'") != "");
  // If every field has the same spaces, they belong to the separator.
  CHECK(parse("n, label\n1, a\n2, b\n").notes.empty());
}

TEST_CASE("table reading: columns without a name, and the index of a data frame") {
  const auto parts = parse(",b,,label\n0,5,6,0\n1,7,8,1\n2,9,9,1\n");
  CHECK(names(parts) == Words{"Unnamed: 0", "b", "Unnamed: 2"});
  CHECK(note(parts.notes, "counts the rows") != "");
  CHECK(note(parts.notes, "has no name") != "");
  CsvOptions options;
  options.left_out = {"Unnamed: 0"};
  CHECK(inputs(parse(",b,label\n0,5,0\n1,7,1\n", options)) == Floats{5, 7});
  CHECK(note(parse(",b,label\n3,5,0\n1,7,1\n").notes, "counts the rows") == "");
}

TEST_CASE("table reading: separators") {
  const Floats expected{1, 2, 3, 4};
  for (const std::string& text : std::vector<std::string>{
           "a;b;label\n1;2;0\n3;4;1\n", "a\tb\tlabel\n1\t2\t0\n3\t4\t1\n",
           "a|b|label\n1|2|0\n3|4|1\n", "a b label\n1 2 0\n3 4 1\n",
           "  a   b label\n  1   2  0\n  3   4     1  \n", "sep=;\na;b;label\n1;2;0\n3;4;1\n",
           "\xef\xbb\xbfsep=|\r\na|b|label\r\n1|2|0\r\n3|4|1\r\n",
           "# a, b, c, d\na;b;label\n1;2;0\n3;4;1\n", "a,b,label\r1,2,0\r3,4,1\r",
           "\"a\" \"b\" \"label\"\n\"1\" \"2\" \"0\"\n\"3\" \"4\" \"1\"\n",
           "\"a\" \"b\" \"label\"\n\"1\" \"2\" \"x,y z\"\n\"3\" \"4\" \"t\"\n"})
    CHECK_MESSAGE(inputs(parse(text)) == expected, text);
  CsvOptions options;
  options.rows.separator = ":";
  CHECK(inputs(parse("a:b:label\n1:2:0\n3:4:1\n", options)) == expected);
  options.rows.separator = "semicolon";
  CHECK(inputs(parse("a;b;label\n1;2;0\n3;4;1\n", options)) == expected);
  options.rows.separator = "::";
  CHECK(has(refusal("a::b\n", options), "separator"));
  // Decimal commas between semicolons or spaces, without a header: these separate.
  options = {};
  options.decimal = ",";
  for (const char* text : {"1,5;2,5;0\n3,5;4,5;1\n", "1,5 2,5 0\n3,5 4,5 1\n"})
    CHECK(inputs(parse(text, options)) == Floats{1.5f, 2.5f, 3.5f, 4.5f});
  CHECK(has(refusal("1,5;2,5;0\n3,5;4,5;1\n"), "decimal=comma "));
  // Separators in quotes do not count, nor those of a list within a field.
  CHECK(parse("a,b,label\n\"x;y;z\",2,0\n\"x;y;w\",4,1\n").input.shape() == Shape{2, 3});
  CHECK(parse("g,n,label\nAction|Comedy,1,0\nDrama|War,2,1\n").input.shape() == Shape{2, 3});
}

TEST_CASE(
    "table reading: other number formats are read, or refused with the option that reads them") {
  const auto numbers = [](const Words& fields, const CsvOptions& options = {}) {
    return inputs(parse(rows_of(fields), options));
  };
  CHECK(numbers({"12%", "50 %",
                 "\xe2\x88\x92"
                 "3",
                 "1.5D+03", "2d-1"}) == Floats{0.12f, 0.5f, -3, 1500, 0.2f});
  CHECK(numbers({"1\xc2\xa0"
                 "234",
                 "\xe2\x80\xaf"
                 "5",
                 "1\xe2\x80\xaf"
                 "000\xe2\x80\xaf"
                 "000.5"}) == Floats{1234, 5, 1000000.5f});
  const auto odd = parse(rows_of({"12%", "3",
                                  "\xe2\x88\x92"
                                  "3",
                                  "1D2"}));
  CHECK(note(odd.notes, "percentage") ==
        "t.csv, line 2, column 'a': 1 percentage is read as hundredths (12 % is 0.12)");
  CHECK(note(odd.notes, "U+2212") != "");
  CHECK(note(odd.notes, "Fortran") != "");
  CsvOptions comma;
  comma.decimal = ",";
  CHECK(numbers({"1,5", "-2", "3,25e2"}, comma) == Floats{1.5f, -2, 325});
  comma.thousands = ".";
  CHECK(numbers({"1.234,5", "1.234.567", "12"}, comma) == Floats{1234.5f, 1234567, 12});
  CHECK(has(refusal(rows_of({"12.34,5", "1"}), comma), "'12.34,5' is not a finite number"));
  CsvOptions grouped;
  grouped.thousands = ",";
  CHECK(numbers({"1,234.5", "12,34,567", "7"}, grouped) == Floats{1234.5f, 1234567, 7});
  // The message names the option that reads the numbers.
  CHECK(has(refusal(rows_of({"1,5", "2,5"})), "decimal=comma reads decimal commas"));
  CHECK(has(refusal(rows_of({"1.234,5", "2.000,5"})), "decimal=comma and thousands=point"));
  CHECK(has(refusal(rows_of({"1,234.5", "2,000.5"})), "thousands=comma reads commas"));
  CHECK(has(refusal(rows_of({"2024-01-05", "2024-02-05"})), "date=a reads dates"));
  CHECK(has(refusal(rows_of({"A1", "B2"})), "category=a reads its fields as words"));
  CHECK(has(refusal(rows_of({"1", "2", "3,5"})),
            "line 4, column 'a': '3,5' is not a finite number; "
            "decimal=comma"));
  CsvOptions words;
  words.categories = {"a"};
  CHECK(parse(rows_of({"A1", "B2"}), words).input.shape() == Shape{2, 2});
  // Infinities and numbers out of float32's range are refused.
  for (const char* large : {"inf", "-inf", "1e39", "1e999", "Infinity"})
    CHECK(has(refusal(rows_of({large, large, large})), "line 2, column 'a': '"));
  CHECK(has(refusal(rows_of({"1e39", "inf", "-1e39"})), "not a finite number of float32"));
  CHECK(numbers({"1e-400", "0.5", "-1e-999"})[0] == 0);
  CHECK(note(parse(rows_of({"123456789", "16777217", "1"})).notes, "2 integers are rounded") != "");
  CsvOptions bad;
  bad.thousands = ".";
  CHECK(has(refusal(rows_of({"1"}), bad), "both the decimal point and the thousands separator"));
}

TEST_CASE("table reading: dates") {
  CsvOptions options;
  options.dates = {"when"};
  const auto parse_dates = [&](const Words& dates, const CsvOptions& how) {
    std::string text = "when|n|label\n";
    for (std::size_t k = 0; k < dates.size(); ++k) text += cat(dates[k], "|", k, "|", k % 2, "\n");
    return parse(text, how);
  };
  const auto first = parse_dates({"2000-01-02 06:30", "2024-02-29T23:59:59Z"}, options);
  CHECK(first.table->columns.size() == 6);
  CHECK(first.table->columns[2].date == "weekday");
  const Floats rows = inputs(first);
  // Year, month, weekday (a Sunday), hour, days since 2000-01-01; then n.
  CHECK(Floats(rows.begin(), rows.begin() + 6) ==
        Floats{2000, 1, 6, 6, static_cast<float>(1 + 6.5 / 24), 0});
  CHECK(Floats(rows.begin() + 6, rows.begin() + 10) == Floats{2024, 2, 3, 23});
  for (const Words& dates : {Words{"20240305", "2024/3/5"}, Words{"5.3.2024", "5 March 2024"},
                             Words{"Mar 5, 2024", "5-Mar-2024"}, Words{"5/3/2024", "25/3/2024"},
                             Words{"3/5/2024", "3/25/2024"}, Words{"2024-03-05", "2024-03"}})
    CHECK_MESSAGE(inputs(parse_dates(dates, options))[1] == 3, dates[0]);
  CHECK(inputs(parse_dates({"2024-03-05 11:00 PM", "2024-03-05T01:00:00+02:00"}, options))[3] ==
        23);
  CHECK(inputs(parse_dates({"2024-03-05T01:00:00+02:00", "2024-03-05"}, options))[3] == 23);
  const auto refused = [&](const Words& dates) {
    try {
      parse_dates(dates, options);
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(has(refused({"3/4/2024", "5/6/2024"}), "dayfirst=yes or dayfirst=no"));
  CHECK(has(refused({"13/4/2024", "4/13/2024"}), "another order"));
  CHECK(has(refused({"2023-02-29", "2024-01-01"}), "'2023-02-29' is not a date"));
  // A time is not a date; a two-digit year is read only if the order is given.
  CHECK(has(refused({"14:05", "2:05 PM"}), "'14:05' is a time without a date"));
  CHECK(has(refused({"3/4/24", "25/3/24"}), "'3/4/24' has a year of two digits: dayfirst=yes"));
  CHECK(has(refused({"9-Mar-24", "1-Apr-24"}), "year of two digits"));
  CHECK(has(refusal("a;label\n14:05;0\n15:10;1\n"), "it is a time without a date"));
  CHECK(has(refusal("a;label\n3/4/24;0\n5/4/24;1\n"), "dayfirst=yes or dayfirst=no reads it"));
  CsvOptions day = options;
  day.day_first = true;
  const auto years = parse_dates({"3/4/24", "5.6.69 14:05", "7-Aug-68", "1/2/2001"}, day);
  CHECK(inputs(years)[0] == 2024);
  CHECK(inputs(years)[1] == 4);
  CHECK(inputs(years)[6] == 1969);
  CHECK(inputs(years)[9] == 14);
  CHECK(inputs(years)[12] == 2068);
  CHECK(note(years.notes, "two digits") ==
        "t.csv, line 2: column 'when': 3 dates have years of two digits: 69 to 99 are 1969 to "
        "1999, 00 to 68 are 2000 to 2068");
  CHECK(inputs(parse_dates({"3/4/2024", "5/6/2024"}, day))[1] == 4);
  day.day_first = false;
  CHECK(inputs(parse_dates({"3/4/2024", "5/6/2024"}, day))[1] == 3);
  // Other files use the learned order, and missing dates become means.
  CsvOptions later;
  later.columns = parse_dates({"25/3/2024", "27/3/2024"}, options).table;
  const auto again = parse_dates({"3/4/2024", ""}, later);
  CHECK(inputs(again)[1] == 4);
  CHECK(inputs(again)[6] == 2024);
  CHECK(note(again.notes, "missing field") != "");
  later.labelled = false;
  CHECK(inputs(parse("n|when\n7|3/4/2024\n", later))[1] == 4);
}

TEST_CASE("table reading: labels are names, numbers in numerical order") {
  const auto classes = [](const Words& labels) {
    std::string text = "a,label\n";
    for (const std::string& label : labels) text += cat("1,", label, "\n");
    return parse(text);
  };
  CHECK(classes({"2", "1", "2"}).class_names == Words{"1", "2"});
  CHECK(targets(classes({"2", "1", "2"})) == Classes{1, 0, 1});
  CHECK(classes({"10", "9", "30"}).class_names == Words{"9", "10", "30"});
  CHECK(classes({"1", "-1"}).class_names == Words{"-1", "1"});
  CHECK(classes({"10", "9", "a"}).class_names == Words{"10", "9", "a"});
  const auto joined = classes({"1", "1.0", "2.0", "01"});
  CHECK(joined.class_names == Words{"1", "2.0"});
  CHECK(note(joined.notes, "are one class") != "");
  CHECK(has(refusal("a,label\n1,0.5\n2,1.5\n"), "which are not whole"));
  std::string prices = "a,label\n";
  for (int k = 0; k < 30; ++k) prices += cat(k, ",", 1000 + 17 * k, "\n");
  CHECK(has(refusal(prices), "30 different ones in 30 rows"));
  // With the model's classes, whichever of them occur in the file.
  CsvOptions options;
  options.columns = classes({"10", "20", "30"}).table;
  const auto later = parse("a,label\n1,30.0\n", options);
  CHECK(targets(later) == Classes{2});
  CHECK(later.classes == 3);
  CHECK(has(
      refusal("a,label\n1,40\n", options),
      "line 2, column 'label': the label '40' is not one of the 3 known classes, in 1 of 1 row"));
}

TEST_CASE("table reading: skipped lines are counted, and data rows that begin with '#' are kept") {
  const auto colours =
      parse("colour,b,label\n#ff0000,1,0\n#00ff00,2,1\nred,3,0\n", {.categories = {"colour"}});
  CHECK(colours.input.shape() == Shape{3, 4});
  CHECK(colours.notes.empty());
  const auto commented = parse("# made by hand\na,b,label\n1,2,0\n\n# half\n3,4,1\n\n\n");
  CHECK(commented.input.shape() == Shape{2, 2});
  CHECK(note(commented.notes, "2 lines that begin with '#' were skipped") ==
        "t.csv, line 1: 2 lines that begin with '#' were skipped");
  CHECK(note(commented.notes, "1 empty line was skipped") ==
        "t.csv, line 4: 1 empty line was skipped");
  CsvOptions options;
  options.rows.comment = "#";
  CHECK(parse("a,b,label\n#1,2,0\n3,4,1\n", options).input.shape() == Shape{1, 2});
  options.rows.comment = "%";
  CHECK(parse("% a,b,c\na,b,label\n3,4,1\n", options).input.shape() == Shape{1, 2});
  CHECK(names(parse("# a,b,label\n1,2,0\n3,4,1\n")) == Words{"a", "b"});
  CHECK(has(refusal("a,b,label\n1,2,0\n3,4\n"), "line 3 has 2 columns"));
}

TEST_CASE("table reading: words that training has not seen, and strictness") {
  CsvOptions options;
  options.columns = parse("town,n,label\nBonn,1,0\nAix,2,1\n").table;
  const std::string text = "town,n,label\nCork,1,0\nCork,1,1\nAix,,1\n";
  const auto parts = parse(text, options);
  CHECK(note(parts.notes, "not seen") ==
        "t.csv, line 2: column 'town': 2 fields contain words that training has not seen, such as "
        "'Cork'");
  CHECK(note(parts.notes, "missing field") != "");
  options.strict = true;
  CHECK(has(refusal(text, options), "'strict' is on"));
  CHECK(refusal("town,n,label\nBonn,1,0\n", options) == "");
  const TestFolder folder;
  io::write_file(folder / "t.csv", "a,label\n1,0\n,1\n2,0\n3,1\n");
  const std::string spec = "csv:" + (folder / "t.csv");
  CHECK(data::open_dataset(spec, data::Split::All)->notes().size() == 1);
  CHECK_THROWS_AS(data::open_dataset(spec, data::Split::All, data::SourceOptions{.strict = true}),
                  FormatError);
}

TEST_CASE("table reading: a part counts its own words that training has not seen") {
  std::string text = "town,label\n";
  for (int k = 0; k < 10; ++k)
    text += cat(k == 6 ? "Cork" : k > 7 ? "Oslo" : k % 2 == 0 ? "Bonn" : "Aix", ",", k % 2, "\n");
  CsvOptions options;
  options.split = {.test = 0.3, .validation = 0.2, .chronological = true};
  const auto unknown = [&](data::Split part) {
    return note(data::parse_csv(text, "t.csv", options, part).notes, "not seen");
  };
  CHECK(unknown(data::Split::Train) == "");
  CHECK(unknown(data::Split::Validation) ==
        "t.csv, line 8: column 'town': 1 field of the validation part contains a word that "
        "training has "
        "not seen, such as 'Cork'");
  CHECK(unknown(data::Split::Test) ==
        "t.csv, line 10: column 'town': 2 fields of the test part contain words that training has "
        "not "
        "seen, such as 'Oslo'");
  CHECK(unknown(data::Split::All) ==
        "t.csv, line 8: column 'town': 3 fields contain words that training has not seen, such as "
        "'Cork'");
  options.strict = true;
  CHECK_NOTHROW((void)data::parse_csv(text, "t.csv", options, data::Split::Train));
  CHECK_THROWS_AS((void)data::parse_csv(text, "t.csv", options, data::Split::Test), FormatError);
}

TEST_CASE("table reading: a source's options") {
  const TestFolder folder;
  const auto open = [&](const std::string& text, const std::string& rest) {
    io::write_file(folder / "t.csv", text);
    const auto set = data::open_dataset("csv:" + (folder / "t.csv") + rest, data::Split::All);
    Floats out(static_cast<std::size_t>(set->input_shape().numel()));
    std::int64_t target = 0;
    const std::int64_t row = 0;
    set->get({&row, 1}, out.data(), &target);
    return out;
  };
  CHECK(open("a;b;label\n1,5;2;0\n3,5;4;1\n", ",decimal=,") == Floats{1.5f, 2});
  CHECK(open("a;b;label\n1,5;2;0\n3,5;4;1\n", ",decimal=,,label=label") == Floats{1.5f, 2});
  CHECK(open("a;b;label\n1,5;2;0\n3,5;4;1\n", ",decimal=,label=label,drop=b") == Floats{1.5f});
  CHECK(open("a;b;label\n1.005;2;0\n3.005;4;1\n", ",decimal=comma,thousands=.") == Floats{1005, 2});
  CHECK(open("a:b:label\n1:2:0\n3:4:1\n", ",separator=:,header=yes") == Floats{1, 2});
  CHECK(open("a|label\n3/4/2024|0\n3/4/2024|1\n", ",date=a,dayfirst=yes")[1] == 4);
  CHECK(open("a,label\n1,caf\xe9\n2,x\n", ",encoding=latin1") == Floats{1});
  CHECK(open("a,label\n1,0\n#2,x\n3,1\n", ",comment=#") == Floats{1});
  CHECK_THROWS_AS(open("a,label\n1,0\n", ",decimal=;"), ValueError);
  CHECK_THROWS_AS(open("a,label\n1,0\n", ",memory=much"), ValueError);
  CHECK_THROWS_AS(open("a,label\n1,0\n2,1\n", ",memory=2"), FormatError);
  CHECK(open("a,label\n1,0\n2,1\n", ",memory=1K") == Floats{1});
}

TEST_CASE("table reading: time and memory are linear in the file, and bounded") {
  const auto seconds = [](const std::string& text, const CsvOptions& options = {}) {
    const auto start = std::chrono::steady_clock::now();
    (void)refusal(text, options);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // Each table has about 4 MB; a quadratic reader would take minutes.
  const std::size_t size = 4u << 20;
  std::string wide, same = "label", comments, quotes = "a,label\n\"", notes = "a,b\n";
  while (wide.size() < size) wide += "1,";
  while (same.size() < size) same += ",x";
  while (comments.size() < size) comments += "#\"\n";
  while (quotes.size() < size) quotes += "\"\"";
  while (notes.size() < size) notes += "\n";
  for (const std::string& text :
       {wide + "0\n" + wide + "1\n", same + "\n", comments, quotes + "\",1\n", notes,
        std::string(size, ' '), "a,label\n" + std::string(size, ' ') + "1,0\n",
        std::string(size, '#'), std::string(size, '"'), std::string(size, '\r')})
    CHECK_MESSAGE(seconds(text) < 20, text.substr(0, 20));
  // Many columns with many different words: 400 columns of 900 words in 1,900 rows are 2.6 GB of
  // inputs.
  std::string many;
  for (int c = 0; c < 400; ++c) many += cat("c", c, ",");
  many += "label\n";
  for (int row = 0; row < 1900; ++row) {
    for (int c = 0; c < 400; ++c) {
      for (int n = (row + c) % 900; n > 0; n /= 26) many += static_cast<char>('a' + n % 26);
      many += "x,";
    }
    many += row % 2 == 0 ? "0\n" : "1\n";
  }
  CHECK(has(refusal(many), "inputs of 1900 rows take 2.55 GiB, more than 1 GiB"));
  CHECK(has(refusal(many), "memory=SIZE"));
}
