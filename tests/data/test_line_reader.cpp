// Lists of images, lines with a class, and pairs, which have one reader: headers, quotes,
// separators, encodings and notes.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "base/str.h"
#include "data/said.h"
#include "data/tables/line_reader.h"
#include "io/folder.h"

using namespace tenon;
using data::LineForm;
using data::RowFormat;
using data::Split;
using said::has;
using said::note;

namespace {

using Words = std::vector<std::string>;

struct Files {
  TestFolder dir;
  std::string write(const std::string& text) const {
    io::write_file(dir / "list.csv", text);
    return dir / "list.csv";
  }
  std::shared_ptr<data::ImageFiles> list(const std::string& text,
                                         const RowFormat& rows = {}) const {
    return data::open_image_list(write(text), Split::All, {}, {}, rows);
  }
  // Each image as "name=class".
  Words images(const std::string& text, const RowFormat& rows = {}) const {
    const auto set = list(text, rows);
    Words out;
    for (std::int64_t k = 0; k < set->size(); ++k)
      out.push_back(cat(set->name(k).substr(dir.path().size() + 1), "=",
                        set->class_names()[static_cast<std::size_t>(set->label(k))]));
    return out;
  }
  std::string refusal(const std::string& text, const RowFormat& rows = {}) const {
    try {
      list(text, rows);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

// All rows of a file.
std::vector<Words> rows_of(const std::string& file, LineForm form, const RowFormat& rows = {}) {
  data::LineReader reader(file, form, rows);
  std::vector<Words> out;
  std::vector<std::string_view> fields;
  while (reader.next(fields)) out.emplace_back(fields.begin(), fields.end());
  return out;
}

}  // namespace

TEST_CASE("line reader: lists with a header, in any order and among other columns") {
  const Files files;
  const Words expected{"a.jpg=x", "b.jpg=y"};
  for (const std::string text :
       {"a.jpg,x\nb.jpg,y\n", "filename,label\na.jpg,x\nb.jpg,y\n",
        "Path;Class\na.jpg;x\nb.jpg;y\n", "label\tfile\nx\ta.jpg\ny\tb.jpg\n",
        "id,filename,size,label\n1,a.jpg,3,x\n2,b.jpg,4,y\n", "image_id,breed\na.jpg,x\nb.jpg,y\n",
        "\xef\xbb\xbf"
        "filename,label\r\na.jpg,x\r\nb.jpg,y\r\n",
        "a.jpg x\nb.jpg y\n", "# filename,label\na.jpg,x\nb.jpg,y\n", "a.jpg|x\rb.jpg|y\r",
        "\"a.jpg\",\"x\"\n\"b.jpg\",\"y\"\n"})
    CHECK_MESSAGE(files.images(text) == expected, text);
  CHECK(files.list("filename,label\na.jpg,x\n")->notes().empty());
  CHECK(note(files.list("image_of,breed\na.jpg,x\nb.jpg,y\n")->notes(), "read as a header") != "");
  RowFormat rows;
  rows.header = false;
  CHECK(files.images("filename,label\na.jpg,x\n", rows).size() == 2);
  rows.header = true;
  CHECK(files.images("x,y\na.jpg,x\nb.jpg,y\n", rows) == expected);
  CHECK(has(files.refusal("a,b,c\na.jpg,x,1\n", rows), "none of its 3 columns is named filename"));
}

TEST_CASE("line reader: quotes, separators in paths, comments and videos of lists") {
  const Files files;
  CHECK(files.images("\"my, cat.jpg\",cat\nb.jpg,dog\n") == Words{"my, cat.jpg=cat", "b.jpg=dog"});
  CHECK(files.images("my, cat.jpg,cat\nb.jpg,dog\n") == Words{"my, cat.jpg=cat", "b.jpg=dog"});
  CHECK(files.images("my  cat.jpg cat\nb.jpg dog\n") == Words{"my  cat.jpg=cat", "b.jpg=dog"});
  CHECK(has(files.refusal("\"a\",b.jpg,cat\n"), "has 3 fields"));
  const auto commented = files.list("# my list\na.jpg,x\n\n#1.jpg,y\n# end\n");
  CHECK(commented->size() == 2);
  CHECK(note(commented->notes(), "2 lines that begin with '#'") != "");
  CHECK(note(commented->notes(), "1 empty line") != "");
  const auto videos = data::open_image_list(files.write("a.jpg,x\nb.mp4,x\n"), Split::All, {},
                                            data::VideoFrames{.count = 0});
  CHECK(note(videos->notes(), "1 video is left out") != "");
  CHECK(has(files.refusal("a.jpg\n"), "has no class"));
  CHECK(has(files.refusal("a.jpg,caf\xe9\n"), "line 1 is not UTF-8"));
  RowFormat latin;
  latin.encoding = "latin1";
  CHECK(files.images("a.jpg,caf\xe9\n", latin) == Words{"a.jpg=café"});
}

TEST_CASE("line reader: classes with spaces around them, and classes that may be missing") {
  const Files files;
  const auto list = files.list("a.jpg, x\nb.jpg,x\nc.jpg,NA\n");
  CHECK(list->class_names() == Words{"NA", "x"});
  CHECK(has(note(list->notes(), "spaces around it"),
            "line 1: 1 row has a class with spaces around it, which is read as the class 'x'"));
  CHECK(note(list->notes(), "1 row has the class 'NA'") != "");
  CHECK(files.list("a.jpg, x\nb.jpg, y\n")->notes().empty());
}

TEST_CASE("line reader: texts keep their quotes and '#' between tabs") {
  const Files files;
  const std::string text = "pos\t\"Great\" film\nneg\t\"Bad\"\nneg\t#fail, really\n";
  const std::string file = files.write(text);
  const std::vector<Words> expected{
      {"pos", "\"Great\" film"}, {"neg", "\"Bad\""}, {"neg", "#fail, really"}};
  CHECK(rows_of(file, LineForm::ClassLines) == expected);
  data::LineReader reader(file, LineForm::ClassLines, {});
  std::vector<std::string_view> fields;
  while (reader.next(fields)) {
  }
  CHECK(note(reader.notes(), "1 texts are in double quotes") != "");
  RowFormat rows;
  rows.quotes = true;
  CHECK(rows_of(files.write("neg\t\"Bad\"\n"), LineForm::ClassLines, rows)[0][1] == "Bad");
  // A header is recognized although its names are in quotes too.
  for (const char* header : {"label\ttext\n", "\"label\"\t\"text\"\n"})
    CHECK(rows_of(files.write(header + text), LineForm::ClassLines) == expected);
  CHECK(rows_of(files.write("\"source\"\t\"target\"\n\"a\"\t\"b\"\n"), LineForm::Pairs) ==
        std::vector<Words>{{"\"a\"", "\"b\""}});
  // Commas separate only if there is a header.
  CHECK(rows_of(files.write("review,sentiment\n\"Good, very\",pos\nBad,neg\n"),
                LineForm::ClassLines) == std::vector<Words>{{"Good, very", "pos"}, {"Bad", "neg"}});
  CHECK(rows_of(files.write("Good, very\nBad, too\n"), LineForm::ClassLines)[0].size() == 1);
  CHECK(rows_of(files.write("source\ttarget\na\tb\n"), LineForm::Pairs) ==
        std::vector<Words>{{"a", "b"}});
  CHECK(rows_of(files.write("\xef\xbb\xbf"
                            "a\tb\rc\td"),
                LineForm::Pairs) == std::vector<Words>{{"a", "b"}, {"c", "d"}});
}

TEST_CASE("line reader: lines and pairs with headers, encodings and byte order marks as sets") {
  const Files files;
  io::write_file(files.dir / "vocab.txt",
                 "\xef\xbb\xbf[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\n");
  const auto tokenizer = data::Tokenizer::open(files.dir / "vocab.txt");
  CHECK(tokenizer.number("[PAD]") == 0);
  const auto open = [&](const std::string& text, const data::ClassLineOptions& options = {}) {
    return data::open_class_lines(files.write(text), Split::All, tokenizer, options);
  };
  const Words both{"neg", "pos"};
  for (const std::string text :
       {"pos\tgood\nneg\tbad\n", "label\ttext\npos\tgood\nneg\tbad\n",
        "text\tlabel\ngood\tpos\nbad\tneg\n", "\xef\xbb\xbfpos\tgood\r\nneg\tbad\r\n",
        "id,text,label\n1,good,pos\n2,bad,neg\n"}) {
    const auto set = open(text);
    CHECK_MESSAGE(set->class_names() == both, text);
    CHECK_MESSAGE(set->size() == 2, text);
    CHECK_MESSAGE(set->input_shape() == Shape{3}, text);
  }
  CHECK(note(open("id,text,label\n1,good,pos\n2,bad,neg\n")->notes(), "1 column is not read") !=
        "");
  CHECK(open("id\tsentence1\tsentence2\tlabel\n1\tgood\tbad\ta\n2\tbad\tbad\tb\n")
            ->input_shape()[0] == 2);
  data::ClassLineOptions last;
  last.class_last = true;
  CHECK(open("good\tpos\nbad\tneg\n", last)->class_names() == Words{"neg", "pos"});
  // "label" is a class here, not a header.
  CHECK(open("label\tgood\nlabel\tbad\nother\tgood\n")->size() == 3);
  data::PairOptions pairs;
  pairs.pieces = 30;
  pairs.rows.encoding = "latin1";
  std::string text;
  for (int k = 0; k < 20; ++k) text += "caf\xe9\tcoffee\n";
  const auto set = data::open_pairs(files.write(text), Split::All, pairs);
  CHECK(set->size() == 20);
  const Words pieces = set->class_names();
  CHECK(std::find(pieces.begin(), pieces.end(), "é") != pieces.end());
  pairs.rows.encoding = "";
  CHECK_THROWS_AS(data::open_pairs(files.write(text), Split::All, pairs), FormatError);
}

TEST_CASE("line reader: a byte order mark is not part of the first token") {
  const Files files;
  data::TextOptions options;
  options.length = 2;
  options.split.validation = 0;
  const std::string body = "abababababababababababababababab";
  for (const data::TextUnit unit : {data::TextUnit::Characters, data::TextUnit::Words}) {
    options.unit = unit;
    CHECK(
        data::open_text(files.write("\xef\xbb\xbf" + body + " a b a b a b a b a b a b a b a b a b"),
                        Split::Train, options)
            ->class_names() ==
        data::open_text(files.write(body + " a b a b a b a b a b a b a b a b a b"), Split::Train,
                        options)
            ->class_names());
  }
}

TEST_CASE("line reader: time is linear in the file") {
  const Files files;
  const std::size_t size = 4u << 20;
  std::string commas = "a.jpg", rows;
  while (commas.size() < size) commas += ",";
  while (rows.size() < size) rows += "#\"\n";
  for (const std::string& text :
       {std::string(size, ' ') + "a.jpg,x\n", "a.jpg," + std::string(size, ' ') + "\n", commas,
        rows, std::string(size, '\n'), std::string(size, '"'), std::string(size, '\t'),
        "a.jpg,x\n" + std::string(size, 'x')}) {
    const auto start = std::chrono::steady_clock::now();
    (void)files.refusal(text);
    for (const LineForm form : {LineForm::ClassLines, LineForm::Pairs}) try {
        (void)rows_of(files.write(text), form);
      } catch (const FormatError&) {
      }
    const auto took = std::chrono::steady_clock::now() - start;
    CHECK_MESSAGE(std::chrono::duration<double>(took).count() < 20, text.substr(0, 10));
  }
}
