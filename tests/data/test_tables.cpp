// Typical tables: words and missing numbers among the columns, statistics from the training part
// only, files with other column orders, and the split of rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
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
using data::Split;
using said::has;

TEST_CASE("tables: a column of words is an input for each word, a missing number the mean") {
  const std::string text =
      "Town, area,floor,kind\n"
      "Bonn, 10, 1,a\n"
      "\"Aix, old\",30,NA,b\n"
      "?, , 3,a\n"
      "Bonn,20,2,b\n";
  const data::TensorDatasetParts parts = parse(text);
  CHECK(parts.input.shape() == Shape{4, 4});
  CHECK(inputs(parts) == std::vector<float>{0, 1, 10, 1,  //
                                            1, 0, 30, 2,  //
                                            0, 0, 20, 3,  //
                                            0, 1, 20, 2});
  REQUIRE(parts.table);
  const auto& columns = parts.table->columns;
  CHECK(columns.size() == 3);
  CHECK(columns[0].name == "Town");
  CHECK(columns[0].values == std::vector<std::string>{"Aix, old", "Bonn"});
  CHECK(columns[0].inputs() == 2);
  CHECK(columns[1].name == "area");
  CHECK(columns[1].fill == 20);
  CHECK(parts.table->label == "kind");
  CHECK(parts.table->class_names == std::vector<std::string>{"a", "b"});
  CHECK(parts.description == "4 rows of t.csv (3 missing fields filled)");
  CHECK(parse("a,label\n1,x\n?,y\n").description == "2 rows of t.csv (1 missing field filled)");
}

TEST_CASE("tables: which columns are words, and which are left out") {
  // Codes that are words, and a dropped column.
  const std::string text = "id,zip,size,y\n1,10,5,0\n2,20,6,1\n3,10,7,0\n";
  CsvOptions options;
  options.categories = {"ZIP"};
  options.left_out = {"id"};
  CHECK(inputs(parse(text, options)) == std::vector<float>{1, 0, 5, 0, 1, 6, 1, 0, 7});
  options.left_out = {"idd"};
  CHECK(has(refusal(text, options), "did you mean 'id'"));
  options.left_out = {"zip"};
  CHECK(has(refusal(text, options), "is not an input"));
  // If half of the fields or more are numbers, another field is an error; otherwise all are words.
  CHECK(has(refusal("a,y\n1,0\n2,0\n3x,1\n"), "line 4, column 'a': '3x' is not a finite number"));
  CHECK(parse("a,y\n1,0\nred,0\nblue,1\n").table->columns[0].values ==
        std::vector<std::string>{"1", "blue", "red"});
  // A column with a different word in every row is refused.
  std::string names = "name,x,y\n";
  for (int i = 0; i < 200; ++i) names += cat("n", i, ",1,", i % 2, "\n");
  CHECK(has(refusal(names), "drop=name"));
  options = {};
  options.left_out = {"name"};
  CHECK(parse(names, options).input.shape() == Shape{200, 1});
  options.left_out = {"name", "x"};
  CHECK(has(refusal(names, options), "no column is left"));
}

TEST_CASE("tables: a header is recognised by the rows below it, or set by an option") {
  CHECK(parse("2019,b,y\n1,2,0\n3,4,1\n").input.shape() == Shape{2, 2});  // 'b' is above 2
  CHECK(parse("red,3,yes\nblue,4,no\n").input.shape() == Shape{2, 3});    // numbers in a row
  CHECK(parse("size,colour,y\nbig,red,0\nsmall,blue,1\n").input.shape() == Shape{2, 4});
  CsvOptions options;
  options.rows.header = false;
  CHECK(parse("big,red,0\nsmall,blue,1\n", options).input.shape() == Shape{2, 4});
  options.rows.header = true;
  CHECK(parse("1,2,0\n3,4,1\n", options).input.shape() == Shape{1, 2});
}

TEST_CASE("tables: statistics are those of the training part") {
  std::string text = "x,word,y\n";
  for (int i = 0; i < 20; ++i)
    text += cat(i == 0    ? ""
                : i >= 18 ? "1000"
                          : "2",
                ",", i >= 18 ? "late" : "early", ",", i % 2, "\n");
  CsvOptions options;
  options.split = {.test = 0.1, .validation = 0, .chronological = true};
  const data::TensorDatasetParts train = data::parse_csv(text, "t.csv", options, Split::Train),
                                 test = data::parse_csv(text, "t.csv", options, Split::Test);
  CHECK(train.size() == 18);
  CHECK(test.place(test.numbers[1]) == "t.csv, line 21");
  CHECK(inputs(train)[0] == 2);  // the mean of the twos, not of the thousands
  CHECK(test.table->columns[1].values == std::vector<std::string>{"early"});
  const auto tested = data::make_tensor_dataset(test);
  std::vector<float> rows(4);
  std::vector<std::int64_t> numbers{0, 1}, targets(2);
  tested->get(numbers, rows.data(), targets.data());
  CHECK(rows == std::vector<float>{1000, 0, 1000, 0});  // an unknown word
}

TEST_CASE("tables: a chronological split notes dates that contradict the order of the rows") {
  const auto rows = [](const std::vector<const char*>& days, const char* born = "5") {
    std::string text = "when,born,y\n";
    for (std::size_t i = 0; i < days.size(); ++i)
      text += cat(*days[i] == 0 ? "" : cat("2024-03-", days[i]), ",1990-01-",
                  *born == 0 ? cat("1", 9 - i) : cat("0", born), ",", i % 2, "\n");
    return text;
  };
  const auto notes = [](const std::string& text, data::SplitOptions split,
                        std::vector<std::string> dates = {"when"}) {
    CsvOptions options;
    options.split = std::move(split), options.dates = std::move(dates);
    options.left_out =
        options.dates.size() == 1 ? std::vector<std::string>{"born"} : std::vector<std::string>{};
    std::string out;
    for (const Note& note : data::parse_csv(text, "t.csv", options, Split::Train).notes)
      out += cat(to_string(note), " #", note.count, "\n");
    return out;
  };
  const data::SplitOptions last{.test = 0.25, .validation = 0, .chronological = true};
  CHECK(notes(rows({"01", "02", "03", "04", "05", "06", "07", "08"}), last).empty());
  // Equal dates within a part, and a row without a date, give no note.
  CHECK(!has(notes(rows({"01", "01", "03", "", "05", "05", "08", "08"}), last), "date"));
  const std::string unsorted = notes(rows({"01", "05", "03", "04", "02", "06", "07", "08"}), last);
  CHECK(has(unsorted,
            "t.csv, line 4: column 'when': 2 rows have earlier dates than the row before. "
            "'chronological' keeps the order of the rows: sort them by date #2"));
  CHECK(has(notes(rows({"01", "02", "04", "03", "05", "06", "07", "08"}), last),
            "1 row has an earlier date than the row before"));
  const std::string cut = notes(rows({"01", "02", "03", "04", "05", "06", "06", "06"}), last);
  CHECK(has(cut,
            "t.csv, line 7: column 'when': 3 rows have the same date as a row in another part. "
            "'chronological' divides between rows #3"));
  // Without 'chronological' the order does not matter. Rows after a fold's test part are in no
  // part.
  CHECK(
      notes(rows({"01", "05", "03", "04", "02", "06", "07", "08"}), {.test = 0.25, .validation = 0})
          .empty());
  CHECK(notes(rows({"01", "02", "03", "04", "05", "06", "06", "01"}),
              {.validation = 0, .chronological = true, .fold = 1, .folds = 3})
            .empty());
  // Of several date columns the sorted one decides.
  CHECK(notes(rows({"01", "02", "03", "04", "05", "06", "07", "08"}, ""), last, {"born", "when"})
            .empty());
}

TEST_CASE("tables: other files are read like the training data") {
  const auto columns = parse("town,area,y\nBonn,1,no\nAix,3,yes\nBonn,,no\n").table;
  CsvOptions options;
  options.columns = columns;
  options.labelled = false;
  // In another order, with other columns, without the label, with missing words and numbers.
  CHECK(inputs(parse("area,extra,TOWN\n7,x,Aix\n,y,Cologne\n", options)) ==
        std::vector<float>{1, 0, 7, 0, 0, 2});
  CHECK(inputs(parse("Bonn,5\n", options)) == std::vector<float>{0, 1, 5});  // by place
  CHECK(has(refusal("town,size\nBonn,5\n", options), "2 columns") ==
        false);  // a header with other names
  CHECK(has(refusal("Bonn,5,0\n", options), "has 3 columns, and the model was trained on 2"));
  CHECK(has(refusal("town,area\nBonn,big\n", options), "line 2, column 'area': 'big'"));
  // Labels keep their numbers, whichever of them occur.
  options.labelled = true;
  const data::TensorDatasetParts later = parse("y,town,area\nyes,Aix,1\n", options);
  CHECK(later.target.to_vector<std::int64_t>() == std::vector<std::int64_t>{1});
  CHECK(later.classes == 2);
}

TEST_CASE("tables: targets and groups must not be missing") {
  CsvOptions options;
  options.classes = false;
  CHECK(has(refusal("a,y\n1,big\n3,\n", options), "line 2, column 'y': 'big'"));
  CHECK(has(refusal("a,y\n1,\n3,NA\n", options), "none of its 2 rows has a label"));
  options.classes = true;
  options.split.group = "g";
  CHECK(has(refusal("g,a,y\nu,1,0\n,2,1\n", options), "names no group"));
}

TEST_CASE("tables: a source reports how its columns are read and its rows divided") {
  const TestFolder folder;
  std::string text = "id,town,x,who,y\n";
  for (int i = 0; i < 60; ++i)
    text +=
        cat(i, ",", i % 3 == 0 ? "Aix" : "Bonn", ",", i, ",p", i % 6, ",", i % 2 ? "a" : "b", "\n");
  const std::string file = folder / "t.csv";
  io::write_file(file, text);
  const std::string spec = "csv:" + file + ",drop=id,drop=who,label=y";
  const auto open = [&](const std::string& rest, Split part) {
    return data::open_dataset(spec + rest, part);
  };
  CHECK(open("", Split::Train)->size() == 49);
  CHECK(open("", Split::Validation)->size() == 5);
  CHECK(open("", Split::Test)->size() == 6);
  CHECK(open("", Split::All)->size() == 60);
  CHECK(open("", Split::Train)->input_shape() == Shape{3});
  CHECK(open(",split=25%,seed=7,stratify", Split::Test)->size() == 15);
  CHECK(open(",fold=2/3", Split::Test)->size() == 20);
  const auto grouped =
      data::open_dataset("csv:" + file + ",drop=id,group=who,split=0.3,label=y", Split::Test);
  CHECK(grouped->size() == 20);
  CHECK(grouped->input_shape() == Shape{3});  // a group column is not an input
  for (const char* bad : {",split=2", ",split=x", ",fold=0/3", ",fold=3", ",group=nobody",
                          ",header=maybe", ",test=other.csv,split=0.2"})
    CHECK_THROWS_AS(open(bad, Split::Train), ValueError);
}
