// Datasets by name, from files: MNIST's folder, CSV, NumPy, and errors.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "io/folder.h"

using namespace tenon;
using data::Split;

namespace {

struct Rows {
  std::vector<float> input;
  std::vector<std::int64_t> target;
};

Rows all(const data::Dataset& set) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(set.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  Rows rows{
      std::vector<float>(indices.size() * static_cast<std::size_t>(set.input_shape().numel())),
      indices};
  set.get(indices, rows.input.data(), rows.target.data());
  return rows;
}

template <class E>
std::string refusal(const std::string& spec, Split split = Split::Train) {
  try {
    data::open_dataset(spec, split);
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

const std::string kImages(
    "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03"
    "abcdefghijkl",
    28);
const std::string kLabels("\0\0\x08\x01\0\0\0\x02\x03\x07", 10);

}  // namespace

TEST_CASE("names: digits with sizes") {
  CHECK(data::open_dataset("digits", Split::Train)->size() == 60'000);
  CHECK(data::open_dataset("digits", Split::Test)->size() == 10'000);
  CHECK(data::open_dataset("digits:500", Split::Train)->size() == 500);
  CHECK(data::open_dataset("digits:500,70", Split::Test)->size() == 70);
  CHECK(data::open_dataset("digits:500,70,9", Split::Train)->describe() ==
        "500 drawn digits (seed 9)");
  CHECK(data::open_dataset("digits:500,70,9", Split::Test)->describe() ==
        "70 drawn digits (seed 9, test part)");
  CHECK(data::open_dataset("scenes:500,70,9", Split::Validation)->describe() ==
        "50 drawn scenes (seed 9, validation part)");
  CHECK(refusal<ValueError>("digits:x").find("'x'") != std::string::npos);
  CHECK(refusal<ValueError>("digits:1,2,3,4") != "");
  CHECK(refusal<ValueError>("digits:0") != "");
  CHECK(refusal<ValueError>("digits:99999999999999999999") != "");
}

TEST_CASE("names: random vectors with sizes, equal each time") {
  const auto train = open_dataset("random:5,3,7,size=40,classes=9", Split::Train),
             test = open_dataset("random:5,3,7,size=40,classes=9", Split::Test);
  CHECK(train->size() == 5);
  CHECK(test->size() == 3);
  CHECK(train->input_shape() == Shape{40});
  CHECK(train->classes() == 9);
  std::vector<float> a(80), b(80), other(40);
  std::vector<std::int64_t> label(2), again(2);
  const std::int64_t order[] = {4, 0}, zero = 0;
  train->get(order, a.data(), label.data());
  open_dataset("random:5,3,7,size=40,classes=9", Split::Train)->get(order, b.data(), again.data());
  CHECK(a == b);
  CHECK(label == again);
  test->get({&zero, 1}, other.data(), again.data());
  CHECK(!std::equal(other.begin(), other.end(), a.begin() + 40));
  double sum = 0, squares = 0;
  const auto many = data::random_vectors(1, 1, 20'000, 10);
  std::vector<float> x(20'000);
  many->get({&zero, 1}, x.data(), label.data());
  for (const float value : x) sum += value, squares += value * value;
  CHECK(std::abs(sum / 20'000) < 0.03);
  CHECK(std::abs(squares / 20'000 - 1) < 0.03);
  CHECK(open_dataset("random", Split::Train)->input_shape() == Shape{26'752});
  CHECK_THROWS_AS(open_dataset("random:1,2,3,4", Split::Train), ValueError);
  CHECK_THROWS_AS(open_dataset("random:size=0", Split::Train), ValueError);
  CHECK_THROWS_AS(open_dataset("random:classes=x", Split::Train), ValueError);
}

TEST_CASE("names: misspelt names get a suggestion") {
  CHECK(refusal<ValueError>("minst").find("'mnist'") != std::string::npos);
  CHECK(refusal<ValueError>("").find("digits") != std::string::npos);
  CHECK(refusal<ValueError>("csv").find("csv:FILE") != std::string::npos);
  CHECK(refusal<ValueError>("idx:") != "");
}

TEST_CASE("names: a path may have commas") {
  const TestFolder dir;
  const std::string file = dir / "a, b,c.csv", test = dir / "t,est.csv";
  io::write_file(file, "1,2,0\n3,4,1\n");
  io::write_file(test, "5,6,1\n");
  CHECK(refusal<ValueError>("csv:" + file + ",shape=x") != "");
  CHECK(
      open_dataset("csv:" + file + ",header=no,test=" + test + ",column=0", Split::Train)->size() ==
      2);
  CHECK(open_dataset("csv:" + file + ",test=" + test, Split::Test)->size() == 1);
  io::write_file(dir / "book", "another text");  // a prefix of the next name
  io::write_file(dir / "book,1.txt", "to be or not to be, that is the question ");
  CHECK(open_dataset("text:" + (dir / "book,1.txt") + ",length=3", Split::Train)->input_shape() ==
        Shape{3});
  std::string pairs;
  for (int k = 0; k < 10; ++k) pairs += "one\tun\n";
  io::write_file(dir / "p,q.tsv", pairs);
  CHECK(open_dataset("pairs:" + (dir / "p,q.tsv"), Split::Train)->size() == 8);
  io::save_npy(dir / "x,1.npy", Tensor::from<float>(std::vector<float>(12), {4, 3}));
  io::save_npy(dir / "y,1.npy", Tensor::from<std::int64_t>({0, 1, 0, 1}, {4}));
  CHECK(open_dataset("npy:" + (dir / "x,1.npy") + "," + (dir / "y,1.npy"), Split::Train)
            ->input_shape() == Shape{3});
  // No such file exists: the message names the file that was probably meant.
  const std::string gone = dir / "no,such,file.txt";
  for (const char* kind : {"text:", "pairs:", "csv:", "folder:", "list:"})
    CHECK(refusal<ValueError>(kind + gone + ",seed=1").find("there is no file '" + gone + "'") !=
          std::string::npos);
  CHECK(refusal<ValueError>("text:" + file + ",lenght=3").find("there is no") == std::string::npos);
}

TEST_CASE("IDX folder: both splits, both spellings; missing and mismatching files") {
  TestFolder dir;
  CHECK(refusal<IoError>("idx:" + dir.path()).find("train-images") != std::string::npos);
  io::write_file(dir / "train-images-idx3-ubyte", kImages);
  CHECK(refusal<IoError>("mnist:" + dir.path()).find("train-labels") != std::string::npos);
  io::write_file(dir / "train-labels.idx1-ubyte", kLabels);
  const auto set = data::open_dataset("mnist:" + dir.path(), Split::Train);
  CHECK(set->size() == 2);
  CHECK(set->input_shape() == Shape{1, 2, 3});
  // 3 and 7 are two classes, like EMNIST's letters 1 to 26.
  CHECK(set->class_names() == std::vector<std::string>{"3", "7"});
  std::uint8_t image[6];
  std::int64_t label = 0;
  const std::int64_t second = 1;
  set->get({&second, 1}, image, &label);
  CHECK(std::string(image, image + 6) == "ghijkl");
  CHECK(label == 1);
  io::write_file(dir / "train-labels.idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x01\x03", 9));
  CHECK(refusal<ShapeError>("idx:" + dir.path()) != "");
  io::write_file(dir / "train-labels.idx1-ubyte", kImages);
  CHECK(refusal<FormatError>("idx:" + dir.path()) != "");
}

TEST_CASE("CSV: header, label by name, words as labels, whole numbers as labels") {
  TestFolder dir;
  io::write_file(dir / "a.csv", "width,kind,height\n1,dog,2\n3,cat,4\n5,dog,6\n");
  data::CsvOptions options;
  options.label_name = "Kind";
  const auto words = data::open_csv(dir / "a.csv", options);
  CHECK(words->class_names() == std::vector<std::string>{"cat", "dog"});
  CHECK(all(*words).input == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(all(*words).target == std::vector<std::int64_t>{1, 0, 1});
  options.label_name = "knd";
  CHECK_THROWS_AS(data::open_csv(dir / "a.csv", options), ValueError);

  // Numbers are class names, too: there are as many classes as different labels.
  io::write_file(dir / "b.csv", "label,a,b\n4,1,2\n0,3,4\n");
  CHECK(all(*data::open_csv(dir / "b.csv")).target == std::vector<std::int64_t>{1, 0});
  CHECK(data::open_csv(dir / "b.csv")->class_names() == std::vector<std::string>{"0", "4"});
  io::write_file(dir / "c.csv", "1;2;1\n3;4;0\n");
  CHECK(all(*data::open_csv(dir / "c.csv")).input == std::vector<float>{1, 2, 3, 4});

  options = {};
  options.classes = false;
  io::write_file(dir / "d.csv", "1,2,0.5\n3,4,-1.5\n");
  const auto numbers = data::open_csv(dir / "d.csv", options);
  CHECK(numbers->classes() == 0);
  CHECK(numbers->target_dtype() == DType::Float32);
}

TEST_CASE("CSV: test sets use the training set's class numbers") {
  TestFolder dir;
  io::write_file(dir / "train.csv", "1,b\n2,a\n3,c\n");
  io::write_file(dir / "test.csv", "4,c\n5,b\n");
  const std::string spec =
      "csv:" + (dir / "train.csv") + ",validation=0,test=" + (dir / "test.csv");
  CHECK(all(*data::open_dataset(spec, Split::Train)).target == std::vector<std::int64_t>{1, 0, 2});
  CHECK(all(*data::open_dataset(spec, Split::Test)).target == std::vector<std::int64_t>{2, 1});
  io::write_file(dir / "test.csv", "4,d\n");
  CHECK(refusal<FormatError>(spec, Split::Test).find("'d'") != std::string::npos);
}

TEST_CASE("CSV: rows as images") {
  TestFolder dir;
  std::string text;
  for (int i = 0; i < 25; ++i)
    text += "0,128,255," + std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  io::write_file(dir / "p.csv", text);
  const std::string spec = "csv:" + (dir / "p.csv") + ",shape=1x2x2";
  const auto train = data::open_dataset(spec, Split::Train),
             test = data::open_dataset(spec, Split::Test);
  CHECK(train->input_shape() == Shape{1, 2, 2});
  CHECK(train->input_dtype() == DType::UInt8);
  CHECK(train->size() == 20);
  CHECK(test->size() == 3);
  CHECK(refusal<ShapeError>("csv:" + (dir / "p.csv") + ",shape=1x2x3") != "");
  io::write_file(dir / "p.csv", "0,256,1\n");
  CHECK(refusal<FormatError>("csv:" + (dir / "p.csv") + ",shape=2,split=0") != "");
}

TEST_CASE("CSV: errors name line and column") {
  TestFolder dir;
  const auto refuse = [&](const std::string& text) {
    io::write_file(dir / "x.csv", text);
    return refusal<FormatError>("csv:" + (dir / "x.csv"));
  };
  CHECK(refuse("").find("no rows") != std::string::npos);
  CHECK(refuse("a,b,c\n").find("no rows") != std::string::npos);
  CHECK(refuse("1\n2\n").find("one column") != std::string::npos);
  CHECK(refuse("1,2,0\n3,4\n").find("line 2 has 2 columns") != std::string::npos);
  CHECK(refuse("1,2,0\n3,x,0\n").find("line 2, column 1 (counted from 0): 'x'") !=
        std::string::npos);
  CHECK(refuse("1,2,0\n3,inf,0\n").find("not a finite number") != std::string::npos);
  CHECK(refuse("1,2,0\n3,1e300,0\n").find("not a finite number") != std::string::npos);
  // A column of quantities is not read as classes.
  const std::string quantities = refuse("1,0.5\n2,0.25\n3,7\n");
  CHECK(quantities.find("'0.5', which are not whole, so its labels are not classes") !=
        std::string::npos);
  CHECK(quantities.find("label=NAME") != std::string::npos);
  CHECK(refuse("1,0.5\n2,dog\n") == "");  // words, one of which looks like a number
  CHECK(refusal<ValueError>("csv:" + (dir / "x.csv") + ",colour=1").find("colour") !=
        std::string::npos);
  CHECK(refusal<IoError>("csv:" + (dir / "none.csv")) != "");
}

TEST_CASE("NumPy files as a set") {
  TestFolder dir;
  std::vector<float> x(30);
  std::vector<std::int32_t> y(10);
  for (std::size_t i = 0; i < 30; ++i) x[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < 10; ++i) y[i] = static_cast<std::int32_t>(i % 4);
  io::save_npy(dir / "x.npy", Tensor::from(x, {10, 3}));
  io::save_npy(dir / "y.npy", Tensor::from(y, {10}));
  const std::string spec = "npy:" + (dir / "x.npy") + "," + (dir / "y.npy");
  const auto train = data::open_dataset(spec, Split::Train);
  CHECK(train->size() == 8);
  CHECK(train->classes() == 4);
  const auto held = data::open_dataset(spec, Split::Test);
  const Rows test = all(*held);
  CHECK(test.target == std::vector<std::int64_t>{static_cast<std::int64_t>(test.input[0] / 3) % 4});
  CHECK(held->sample_name(0) ==
        (dir / "x.npy") + ", row " + std::to_string(static_cast<int>(test.input[0] / 3) + 1));
  CHECK(held->notes().size() == 1);  // three classes of four
  io::save_npy(dir / "y.npy", Tensor::from<std::int32_t>({1, 2}, {2}));
  CHECK(refusal<ShapeError>(spec) != "");
  CHECK(refusal<ValueError>("npy:only.npy") != "");
}

TEST_CASE("NumPy files: labels are classes by their values") {
  const TestFolder dir;
  const std::string x = dir / "x.npy", y = dir / "y.npy", spec = "npy:" + x + "," + y;
  const auto save = [&](const std::string& inputs, const std::string& labels,
                        const std::vector<std::int64_t>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    io::save_npy(inputs, Tensor::from(std::vector<float>(values.size()), {count, 1}));
    io::save_npy(labels, Tensor::from(values, {count}));
  };
  using Names = std::vector<std::string>;
  struct Case {
    std::vector<std::int64_t> labels;
    Names names;
    std::vector<std::int64_t> classes;
    bool said;
  };
  for (const Case& c :
       {Case{{10, 20, 10, 20}, {"10", "20"}, {0, 1, 0, 1}, true},
        Case{{1, -1, 1, -1}, {"-1", "1"}, {1, 0, 1, 0}, true},
        Case{{0, 3, 2, 3}, {"0", "2", "3"}, {0, 2, 1, 2}, true},
        Case{{1, 0, 2, 1}, {"0", "1", "2"}, {1, 0, 2, 1}, false},
        Case{{7, data::kIgnoredTarget, 9, 9}, {"7", "9"}, {0, data::kIgnoredTarget, 1, 1}, true}}) {
    CAPTURE(c.names);
    save(x, y, c.labels);
    const auto set = data::open_dataset(spec, Split::All);
    CHECK(set->class_names() == c.names);
    CHECK(all(*set).target == c.classes);
    CHECK(set->notes().size() == (c.said ? 1 : 0));
    CHECK_NOTHROW(refuse_notes(set->notes()));
  }
  // A test part with separate files uses the classes of the training part.
  save(x, y, {10, 20, 30, 10, 20, 30});
  save(dir / "xt.npy", dir / "yt.npy", {30, 20});
  const std::string four = spec + "," + (dir / "xt.npy") + "," + (dir / "yt.npy");
  const auto test = data::open_dataset(four, Split::Test);
  CHECK(all(*test).target == std::vector<std::int64_t>{2, 1});
  CHECK(test->class_names() == Names{"10", "20", "30"});
  save(dir / "xt.npy", dir / "yt.npy", {30, 25});
  CHECK_THROWS_WITH_AS(
      data::open_dataset(four, Split::Test),
      ((dir / "yt.npy") + ", row 2: label 25 does not occur in the training part").c_str(),
      ValueError);
}

TEST_CASE("tensors as a set: targets of any shape, classes checked") {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  CHECK(data::from_tensors(x, Tensor::from<std::uint8_t>({1, 2}, {2}))->classes() == 3);
  CHECK(data::from_tensors(x, Tensor::from<std::int64_t>({1, 2}, {2}), 5)->classes() == 5);
  const auto pairs = data::from_tensors(x, x);
  CHECK(pairs->classes() == 0);
  CHECK(pairs->target_shape() == Shape{2});
  CHECK_THROWS_AS(data::from_tensors(x, Tensor::from<std::int64_t>({1, 2}, {2}), 2), ValueError);
  CHECK_THROWS_AS(data::from_tensors(x, Tensor::from<std::int64_t>({1}, {1})), ShapeError);
  CHECK_THROWS_WITH_AS(data::from_tensors(x, Tensor::from<float>({0, 1}, {2}), 2),
                       doctest::Contains("'classes' is 2, but targets [2] of type float32 are not"),
                       ValueError);
  CHECK_THROWS_AS(data::from_tensors(x, Tensor::from<std::int64_t>({1}, Shape{})), ShapeError);
}

TEST_CASE("sources: each kind is known by its name, and refused with its form where a path lacks") {
  for (const data::SourceKind& kind : data::source_kinds()) {
    CAPTURE(kind.name);
    const std::string name = kind.name;
    CHECK(data::source_kind(name + ":x,seed=1") == &kind);
    CHECK(data::source_kind(name + ",seed=1") == &kind);
    CHECK(std::string(kind.usage).find(name) == 0);
    if (!kind.needs_path) continue;
    CHECK_THROWS_WITH_AS(data::open_dataset(name + ":", Split::Train),
                         doctest::Contains("name what to read: "), ValueError);
  }
  CHECK(data::source_kind("cvs:rows.csv") == nullptr);
  CHECK_THROWS_WITH_AS(
      data::open_dataset("cvs:rows.csv", Split::Train),
      doctest::Contains("did you mean 'csv'? It is one of digits[:TRAIN,TEST,SEED], "), ValueError);
}
