// Parts of every kind of source: disjoint, together complete, equal for equal seeds, with all
// classes.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include "data/said.h"
#include "io/folder.h"

using namespace tenon;
using data::Split;
using said::has;
using Set = std::shared_ptr<data::Dataset>;

namespace {

constexpr Split kParts[] = {Split::Train, Split::Validation, Split::Test};

std::string number(std::int64_t value) { return std::to_string(value); }

void save_image(const std::string& path, int red) {
  io::Image image{4, 4, 3, std::vector<std::uint8_t>(48, static_cast<std::uint8_t>(red))};
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  io::save_png(path, image);
}

std::shared_ptr<const data::Tokenizer> word_pieces() {
  static const auto tokenizer = std::make_shared<const data::Tokenizer>(data::Tokenizer::train(
      "the sea is wide and the land is far away 0 1 2 3 4 5 6 7 8 9 who what",
      {.kind = data::TokenizerKind::WordPiece, .tokens = 90, .least = 1}));
  return tokenizer;
}

Set open(const std::string& spec, Split part, bool strict = false) {
  data::SourceOptions how;
  how.strict = strict;
  if (spec.starts_with("lines:") || spec.starts_with("spans:")) how.tokenizer = word_pieces();
  return data::open_dataset(spec, part, how);
}

std::vector<std::string> names_of(const Set& set) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; set != nullptr && i < set->size(); ++i)
    names.push_back(set->sample_name(i));
  return names;
}

std::vector<std::int64_t> classes_of(const data::Dataset& set) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(set.classes()));
  std::vector<char> input(static_cast<std::size_t>(set.input_shape().numel()) *
                          item_size(set.input_dtype()));
  for (std::int64_t i = 0; i < set.size(); ++i) {
    std::int64_t target = -1;
    set.get({&i, 1}, input.data(), &target);
    ++counts.at(static_cast<std::size_t>(target));
  }
  return counts;
}

// No sample is lost or in two parts, and the same seed gives the same parts.
void check_parts(const std::string& spec) {
  CAPTURE(spec);
  std::set<std::string> seen;
  std::size_t count = 0;
  for (const Split part : kParts) {
    const std::vector<std::string> names = names_of(open(spec, part));
    CHECK(names == names_of(open(spec, part)));
    count += names.size();
    seen.insert(names.begin(), names.end());
  }
  CHECK(seen.size() == count);
  const std::vector<std::string> all = names_of(open(spec, Split::All));
  CHECK(std::set<std::string>(all.begin(), all.end()) == seen);
  CHECK(all.size() == count);
}

// Every part has every class in the whole's proportions, within one sample.
void check_shares(const std::string& spec) {
  CAPTURE(spec);
  const Set all = open(spec, Split::All);
  const std::vector<std::int64_t> whole = classes_of(*all);
  for (const Split part : kParts) {
    const Set set = open(spec, part);
    if (set == nullptr) continue;
    CHECK(set->notes().empty());
    const std::vector<std::int64_t> own = classes_of(*set);
    for (std::size_t c = 0; c < whole.size(); ++c) {
      const double due = static_cast<double>(whole[c]) * static_cast<double>(set->size()) /
                         static_cast<double>(all->size());
      CHECK(std::abs(static_cast<double>(own[c]) - due) <= 1.01);
    }
  }
}

struct Files {
  TestFolder dir;

  std::string csv(int rows, int classes) {
    std::string text = "x,who,label\n";
    for (int i = 0; i < rows; ++i)
      text += number(i) + ",p" + number(i / 5) + "," + number(i % classes) + "\n";
    io::write_file(dir / "turn.csv", text);
    return dir / "turn.csv";
  }
  std::string images(const std::string& folder, int count) {
    for (int k = 0; k < count; ++k)
      for (const char* pet : {"cat", "dog"})
        save_image(dir / (folder + "/" + pet + "/p" + number(k / 3) + "_" + number(k) + ".png"), k);
    return dir / folder;
  }
  std::string list(int count) {
    images("listed", count);
    std::string text;
    for (int k = 0; k < count; ++k)
      for (const char* pet : {"cat", "dog"})
        text += std::string("listed/") + pet + "/p" + number(k / 3) + "_" + number(k) + ".png," +
                pet + ",g" + number(k / 4) + "\n";
    io::write_file(dir / "list.csv", text);
    std::string plain;
    for (std::size_t from = 0; from < text.size(); from = text.find('\n', from) + 1) {
      const std::string line = text.substr(from, text.find('\n', from) - from);
      plain += line.substr(0, line.rfind(',')) + "\n";
    }
    io::write_file(dir / "plain.csv", plain);
    return dir / "list.csv";
  }
  std::string lines(int count, const char* file = "lines.txt") {
    std::string text;
    for (int k = 0; k < count; ++k) text += k % 2 == 0 ? "water\tthe sea\n" : "earth\tthe land\n";
    io::write_file(dir / file, text);
    return dir / file;
  }
  std::string pairs(int count, const char* file = "pairs.tsv") {
    std::string text;
    for (int k = 0; k < count; ++k)
      text += "line " + number(k) + "\tZeile " + number(k) + "\td" + number(k / 5) + "\n";
    io::write_file(dir / file, text);
    return dir / file;
  }
  std::string spans(int count) {
    std::string text;
    for (int k = 0; k < count; ++k)
      text += "what is wide\tthe sea " + number(k / 3) + " is wide\tthe sea\n";
    io::write_file(dir / "spans.tsv", text);
    return dir / "spans.tsv";
  }
  std::string npy(int count) {
    std::vector<float> x(static_cast<std::size_t>(count) * 2);
    std::vector<std::int64_t> y, g;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    for (int i = 0; i < count; ++i) y.push_back(i % 10), g.push_back(1000 + i / 5);
    io::save_npy(dir / "x.npy", Tensor::from(x, {count, 2}));
    io::save_npy(dir / "y.npy", Tensor::from(y, {count}));
    io::save_npy(dir / "g.npy", Tensor::from(g, {count}));
    return (dir / "x.npy") + "," + (dir / "y.npy");
  }
};

std::string refusal(const std::string& spec, Split part = Split::Train, bool strict = false) {
  try {
    (void)open(spec, part, strict);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Each group must be in one part.
template <class GroupOf>
void check_groups(const std::string& spec, const GroupOf& group_of) {
  CAPTURE(spec);
  check_parts(spec);
  std::map<std::string, std::set<int>> parts;
  for (const Split part : kParts)
    for (const std::string& name : names_of(open(spec, part)))
      parts[group_of(name)].insert(static_cast<int>(part));
  CHECK(parts.size() >= 3);
  for (const auto& [group, where] : parts) {
    CAPTURE(group);
    CHECK(where.size() == 1);
  }
}

std::int64_t line_of(const std::string& name) {
  return std::stoll(name.substr(name.rfind(' ') + 1));
}

}  // namespace

TEST_CASE("source parts: ignored targets belong to no class") {
  std::vector<std::int64_t> some(40), none(40, data::kIgnoredTarget);
  for (std::size_t i = 0; i < 40; ++i)
    some[i] = i % 7 == 0 ? data::kIgnoredTarget : static_cast<std::int64_t>(i % 2);
  for (const std::vector<std::int64_t>& targets : {some, none}) {
    const auto part =
        data::from_tensors(Tensor::from(std::vector<float>(40), {40, 1}),
                           Tensor::from(targets, {40}), Split::Train, data::SplitOptions{}, 2);
    CHECK(part->size() == 32);
    CHECK(part->notes().empty());
  }
}

TEST_CASE("source parts: disjoint, complete and with all classes, for every source") {
  Files files;
  const std::string csv = files.csv(2000, 10), list = files.list(40),
                    folder = files.images("pets", 30);
  for (const std::string& spec :
       {"csv:" + csv + ",drop=who", "npy:" + files.npy(400), "folder:" + folder + ",size=4",
        "list:" + (files.dir / "plain.csv") + ",size=4", "lines:" + files.lines(200)})
    for (const char* how :
         {"", ",seed=3", ",split=0.25,validation=0.2", ",fold=2/4", ",validation=0", ",split=0"}) {
      check_parts(spec + how);
      check_shares(spec + how);
    }
  for (const std::string& spec :
       {std::string("digits:60,20"), std::string("scenes:30,20,4,size=16"),
        std::string("random:20,10,size=5,classes=3"),
        "spans:" + files.spans(60) + ",length=32,stride=4",
        "pairs:" + files.pairs(60) + ",pieces=60,group=2"})
    for (const Split part : kParts) CHECK(open(spec, part) != nullptr);
  check_parts("spans:" + files.spans(60) + ",length=32,stride=4");
  check_parts("pairs:" + files.pairs(60) + ",pieces=60,group=2,fold=1/3");
}

TEST_CASE("source parts: 2,000 rows whose class is i % 10 have all ten classes in every part") {
  Files files;
  const std::string spec = "csv:" + files.csv(2000, 10) + ",drop=who";
  CHECK(classes_of(*open(spec, Split::Test)) == std::vector<std::int64_t>(10, 20));
  CHECK(classes_of(*open(spec, Split::Validation)) == std::vector<std::int64_t>(10, 18));
  CHECK(classes_of(*open(spec, Split::Train)) == std::vector<std::int64_t>(10, 162));
  // Another seed gives another test part; `validation` does not change the test part.
  CHECK(names_of(open(spec + ",seed=1", Split::Test)) != names_of(open(spec, Split::Test)));
  CHECK(names_of(open(spec + ",validation=0.5", Split::Test)) == names_of(open(spec, Split::Test)));
  CHECK(open(spec + ",validation=0", Split::Validation) == nullptr);
  CHECK(open(spec + ",split=0", Split::Test) == nullptr);
  CHECK(has(names_of(open(spec, Split::All))[16], "turn.csv, line 18"));
}

TEST_CASE("source parts: groups stay in one part in every source") {
  Files files;
  const auto by_line = [](int before, int size) {
    return [=](const std::string& name) { return number((line_of(name) - 1 - before) / size); };
  };
  check_groups("csv:" + files.csv(300, 3) + ",group=who", by_line(1, 5));
  check_groups("npy:" + files.npy(200) + ",group=" + (files.dir / "g.npy"), by_line(0, 5));
  check_groups("pairs:" + files.pairs(100) + ",pieces=60,group=2", by_line(0, 5));
  const auto prefix = [](const std::string& name) {
    const std::string file = name.substr(name.rfind('/') + 1);
    return file.substr(0, file.find('_'));
  };
  const std::string folder = files.images("pets", 30);
  check_groups("folder:" + folder + ",size=4,group=prefix", prefix);
  const std::string list = files.list(40);
  check_groups("list:" + list + ",size=4,group=2", [](const std::string& name) {
    return number(std::stoll(name.substr(name.rfind('_') + 1)) / 4);
  });
  check_groups("list:" + (files.dir / "plain.csv") + ",size=4,group=prefix", prefix);
  // Questions about one text.
  check_groups("spans:" + files.spans(90) + ",length=32,stride=4", by_line(0, 3));
  // Lines with a header that names the group.
  std::string lines = "person\tclass\ttext\n";
  for (int k = 0; k < 100; ++k)
    lines += "p" + number(k / 4) + (k % 2 == 0 ? "\twater\tthe sea\n" : "\tearth\tthe land\n");
  io::write_file(files.dir / "who.txt", lines);
  check_groups("lines:" + (files.dir / "who.txt") + ",group=Person", by_line(1, 4));
  CHECK(open("lines:" + (files.dir / "who.txt") + ",group=person", Split::All)->classes() == 2);
  CHECK(has(refusal("lines:" + (files.dir / "who.txt") + ",group=patient"), "no column 'patient'"));
  CHECK(has(refusal("lines:" + files.lines(20) + ",group=2"), "line 1 has no group in column 2"));
  CHECK(has(refusal("folder:" + folder + ",group=who"), "'prefix'"));
  // Groups by folders below the classes.
  for (int k = 0; k < 40; ++k)
    save_image(files.dir / ("scans/" + std::string(k % 2 == 0 ? "ill" : "well") + "/p" +
                            number(k / 4) + "/" + number(k) + ".png"),
               k);
  check_groups("folder:" + (files.dir / "scans") + ",size=4,group=folder",
               [](const std::string& name) {
                 const std::filesystem::path path(name);
                 return path.parent_path().filename().string();
               });
}

TEST_CASE("source parts: lines of a list about one file stay in one part") {
  Files files;
  files.images("pets", 20);
  std::string text;
  for (int k = 0; k < 20; ++k)
    for (const char* crop : {"cat", "dog"})
      text += std::string("pets/") + crop + "/p" + number(k / 3) + "_" + number(k) + ".png," +
              crop + "\n" + "pets/" + crop + "/p" + number(k / 3) + "_" + number(k) + ".png," +
              crop + "\n";
  io::write_file(files.dir / "twice.csv", text);
  std::map<std::string, std::set<int>> parts;
  std::int64_t count = 0;
  for (const Split part : kParts)
    for (const std::string& name : names_of(open("list:" + (files.dir / "twice.csv"), part)))
      parts[name].insert(static_cast<int>(part)), ++count;
  CHECK(count == 80);
  CHECK(parts.size() == 40);
  for (const auto& [name, where] : parts) CHECK(where.size() == 1);
}

TEST_CASE("source parts: folders of parts by their usual names, in any case") {
  for (const auto& [train, other] :
       std::vector<std::pair<std::string, std::string>>{{"train", "valid"},
                                                        {"Train", "Test"},
                                                        {"Training", "Testing"},
                                                        {"train", "validation"},
                                                        {"TRAIN", "dev"}}) {
    CAPTURE(train);
    CAPTURE(other);
    Files files;
    files.images("parts/" + train, 10);
    files.images("parts/" + other, 4);
    const std::string spec = "folder:" + (files.dir / "parts") + ",size=4";
    const bool tests = other.starts_with("T");
    check_parts(spec);
    CHECK(open(spec, Split::Train)->class_names() == std::vector<std::string>{"cat", "dog"});
    CHECK(open(spec, Split::Train)->size() == (tests ? 18 : 20));
    CHECK(open(spec, Split::Validation)->size() == (tests ? 2 : 8));
    const Set test = open(spec, Split::Test);
    CHECK((test != nullptr) == tests);
    if (tests) CHECK(test->size() == 8);
    CHECK(open(spec, Split::All)->size() == 28);
    if (tests) continue;
    // A test part can be taken from the training folder; the validation folder does not change.
    check_parts(spec + ",fold=1/2");
    CHECK(open(spec + ",fold=1/2", Split::Test)->size() == 10);
    CHECK(open(spec + ",split=0.2", Split::Test)->size() == 4);
    CHECK(open(spec + ",split=0.2", Split::Validation)->size() == 8);
  }
  Files files;
  const std::string spec = "folder:" + (files.dir / "all") + ",size=4";
  files.images("all/train", 10);
  CHECK(has(refusal(spec), "one would be called 'train'"));
  CHECK(open(spec + ",parts=no", Split::All)->class_names() == std::vector<std::string>{"train"});
  for (const char* part : {"val", "test"}) files.images(std::string("all/") + part, 3);
  check_parts(spec);
  CHECK(open(spec, Split::Train)->size() == 20);
  CHECK(open(spec, Split::Validation)->size() == 6);
  CHECK(open(spec, Split::Test)->size() == 6);
  CHECK(has(refusal(spec + ",split=0.2"), "the test part has files of its own"));
  CHECK(has(refusal(spec + ",fold=1/3"), "the test part has files of its own"));
  // A note counts other folders beside the parts.
  files.images("all/extra", 1);
  REQUIRE(open(spec, Split::Train)->notes().size() == 1);
  CHECK(has(to_string(open(spec, Split::Train)->notes()[0]),
            "1 folder beside train left out: extra"));
  CHECK(has(refusal(spec, Split::Train, true), "left out: extra"));
  files.images("all/Training", 1);
  CHECK(has(refusal(spec), "both"));
  // Classes beside a part without a counterpart.
  files.images("odd/test", 3);
  files.images("odd/plane", 3);
  CHECK(has(refusal("folder:" + (files.dir / "odd")), "one would be called 'test'"));
  CHECK(has(refusal("folder:" + (files.dir / "odd")), "parts=no"));
}

TEST_CASE("source parts: folders of parts by compound names, nested ones refused") {
  struct Case {
    const char *train, *other;
    bool tests;
  };
  for (const auto& [train, other, tests] :
       {Case{"train_images", "test_images", true}, Case{"images_train", "images-test", true},
        Case{"train_data", "val_set", false}, Case{"TrainSet", "TestSet", true},
        Case{"train2017", "val2017", false}, Case{"trainA", "testA", true},
        Case{"mnist_png_training", "mnist_png_testing", true}, Case{"trainval", "test", true},
        Case{"Training Images", "Validation Images", false}}) {
    CAPTURE(train);
    Files files;
    files.images(std::string("parts/") + train, 10);
    files.images(std::string("parts/") + other, 4);
    const std::string spec = "folder:" + (files.dir / "parts") + ",size=4";
    check_parts(spec);
    CHECK(open(spec, Split::Train)->class_names() == std::vector<std::string>{"cat", "dog"});
    CHECK(open(spec, tests ? Split::Test : Split::Validation)->size() == 8);
    // A note says which folders are which parts, and `strict` accepts the note.
    const Notes notes = open(spec, Split::Train, true)->notes();
    REQUIRE(notes.size() == 1);
    CHECK(has(notes[0].text, std::string(train) + " (training)"));
  }
  // Names with other words are classes.
  for (const char* name : {"steam_train", "testament", "trainer", "device", "valley", "trains"}) {
    CAPTURE(name);
    Files files;
    files.images(std::string("all/") + name, 2), files.images("all/plane", 2);
    CHECK(open("folder:" + (files.dir / "all") + ",size=4", Split::All)->classes() == 2);
  }
  Files files;
  files.images("lone/trainset", 2), files.images("lone/plane", 2);
  CHECK(has(refusal("folder:" + (files.dir / "lone")), "would be called 'trainset'"));
  files.images("twice/train1", 2), files.images("twice/train2", 2);
  CHECK(has(refusal("folder:" + (files.dir / "twice")), "parts=no"));
  // Parts inside classes, one level deeper, and twice.
  files.images("inner/bottle/train", 3), files.images("inner/bottle/test", 3);
  const std::string inner = refusal("folder:" + (files.dir / "inner"));
  CHECK(has(inner, "is the class 'bottle', and contains train and test"));
  CHECK(has(inner, "folder:" + (files.dir / "inner/bottle")));
  CHECK(refusal("folder:" + (files.dir / "inner") + ",parts=no,size=4").empty());
  files.images("double/train/train", 3), files.images("double/test/test", 3);
  CHECK(has(refusal("folder:" + (files.dir / "double")), "all have names of parts: train"));
  // Inside parts a class may have the name of a part.
  for (const char* part : {"train", "test"})
    for (const char* kind : {"train", "plane"})
      files.images(std::string("vehicles/") + part + "/" + kind, 3);
  CHECK(open("folder:" + (files.dir / "vehicles") + ",size=4", Split::Train)->class_names() ==
        std::vector<std::string>{"plane", "train"});
}

TEST_CASE("source parts: separate test files stay complete; validation comes from training") {
  Files files;
  const std::string csv = files.csv(100, 4);
  std::string other = "x,who,label\n";
  for (int i = 0; i < 8; ++i) other += "1,a," + number(i % 3) + "\n";
  io::write_file(files.dir / "other.csv", other);
  const std::string spec = "csv:" + csv + ",drop=who,test=" + (files.dir / "other.csv");
  check_parts(spec);
  CHECK(open(spec, Split::Train)->size() == 90);
  CHECK(open(spec, Split::Validation)->size() == 10);
  CHECK(open(spec, Split::Test)->size() == 8);
  CHECK(open(spec, Split::Test)->classes() == 4);
  REQUIRE(open(spec, Split::Test)->notes().size() == 1);
  CHECK(has(open(spec, Split::Test)->notes()[0].text, "no sample of 1 class"));
  for (const char* how : {",split=0.1", ",fold=1/4"})
    CHECK(has(refusal(spec + how), "the test part has files of its own"));
  check_parts("lines:" + files.lines(60) + ",test=" + files.lines(10, "more.txt"));
  check_parts("pairs:" + files.pairs(60) + ",group=2,pieces=60,test=" + files.pairs(9, "more.tsv"));
  const std::string npy = files.npy(100);
  check_parts("npy:" + npy);
  CHECK(open("npy:" + npy + "," + npy, Split::Train)->size() == 90);
  CHECK(open("npy:" + npy + "," + npy, Split::Test)->size() == 100);
  CHECK(open("npy:" + npy + "," + npy, Split::All)->size() == 200);
  CHECK(has(refusal("npy:" + npy + ",test=" + (files.dir / "x.npy")), "TEST_INPUTS"));
}

TEST_CASE("source parts: MNIST's and CIFAR's validation samples come from the training files") {
  const TestFolder dir;
  const auto word = [](std::uint32_t value) {
    return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                       static_cast<char>(value >> 8), static_cast<char>(value)};
  };
  const auto idx = [&](const std::string& stem, int count, int classes) {
    std::string images = word(0x803) + word(static_cast<std::uint32_t>(count)) + word(2) + word(2),
                labels = word(0x801) + word(static_cast<std::uint32_t>(count));
    for (int i = 0; i < count; ++i) {
      images += std::string(4, static_cast<char>(i));
      labels += static_cast<char>(i % classes);
    }
    io::write_file(dir / (stem + "-images-idx3-ubyte"), images);
    io::write_file(dir / (stem + "-labels-idx1-ubyte"), labels);
  };
  idx("train", 200, 5);
  idx("t10k", 40, 4);
  const std::string spec = "idx:" + dir.path();
  check_parts(spec);
  check_parts(spec + ",validation=0.25,seed=4");
  CHECK(classes_of(*open(spec, Split::Train)) == std::vector<std::int64_t>(5, 36));
  CHECK(classes_of(*open(spec, Split::Validation)) == std::vector<std::int64_t>(5, 4));
  CHECK(open(spec, Split::Test)->size() == 40);
  CHECK(open(spec, Split::Test)->classes() == 5);
  REQUIRE(open(spec, Split::Test)->notes().size() == 1);
  CHECK(has(open(spec, Split::Test)->notes()[0].text, "'4'"));
  CHECK(open(spec, Split::All)->size() == 240);
  CHECK(open(spec, Split::All)->classes() == 5);
  CHECK(open(spec + ",validation=0", Split::Validation) == nullptr);
  for (const char* how : {",split=0.2", ",fold=1/2", ",group=x",
                          ",test="
                          "x"})
    CHECK(has(refusal(spec + how), "files of its own"));
  for (int k = 1; k <= 5; ++k) {
    std::string batch;
    for (int i = 0; i < 20; ++i)
      batch.append(1, static_cast<char>(i % 10)).append(3072, static_cast<char>(k));
    io::write_file(dir / ("data_batch_" + number(k) + ".bin"), batch);
    io::write_file(dir / "test_batch.bin", batch);
  }
  const std::string cifar = "cifar10:" + dir.path();
  // Class names that do not fit are ignored, with a note.
  const auto names = [&](const std::string& text) {
    io::write_file(dir / "batches.meta.txt", text);
    const Set set = open(cifar, Split::Test);
    return set->class_names()[0] + (set->notes().empty() ? "" : ": " + set->notes()[0].text);
  };
  CHECK(names("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n") == "a");
  CHECK(names("a\nb\n") == "0: contains 2 names of 10 classes, so class numbers are used as names");
  CHECK(has(names("a\na\nc\nd\ne\nf\ng\nh\ni\nj\n"), "0: contains a name twice"));
  CHECK(has(names("\xff\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"), "0: a class name is not UTF-8"));
  CHECK(has(refusal(cifar, Split::Train, true), "strict"));
  std::filesystem::remove(dir / "batches.meta.txt");
  check_parts(cifar);
  CHECK(classes_of(*open(cifar, Split::Validation)) == std::vector<std::int64_t>(10, 1));
  CHECK(open(cifar, Split::All)->size() == 120);
}

TEST_CASE("source parts: generated validation samples have a separate seed") {
  const auto first = [](const std::string& spec, Split part) {
    const Set set = open(spec, part);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(set->input_shape().numel()));
    std::int64_t index = 0, label = 0;
    set->get({&index, 1}, pixels.data(), &label);
    return pixels;
  };
  for (const std::string spec : {"digits:50,20", "scenes:50,20"}) {
    CHECK(open(spec, Split::Train)->size() == 50);
    CHECK(open(spec, Split::Validation)->size() == 5);
    CHECK(open(spec, Split::Test)->size() == 20);
    CHECK(open(spec, Split::All)->size() == 75);
    CHECK(open(spec + ",validation=0.5", Split::Validation)->size() == 25);
    CHECK(open(spec + ",validation=0", Split::Validation) == nullptr);
    CHECK(first(spec, Split::Train) == first(spec + ",validation=0.5", Split::Train));
    CHECK(first(spec, Split::Train) != first(spec, Split::Validation));
    CHECK(first(spec, Split::Test) != first(spec, Split::Validation));
    for (const char* how : {",split=0.2", ",fold=1/2", ",group=x", ",seed=3", ",stratify"})
      CHECK(has(refusal(spec + how), "drawn by a seed of its own"));
  }
  CHECK(open("digits,validation=0.01", Split::Validation)->size() == 600);
  const auto numbers = [](Split part) { return open("numbers:500,100,below=100000", part); };
  CHECK(numbers(Split::Validation)->size() == 50);
  CHECK(numbers(Split::Validation)->notes().empty());
  CHECK(numbers(Split::All)->size() == 650);
  CHECK(open("numbers:3000,5,below=200", Split::Validation)->notes().size() == 1);
}

TEST_CASE("source parts: a text's parts are sections, and no token is in two") {
  const TestFolder dir;
  std::string text;
  for (int k = 0; k < 500; ++k) text += "w" + number(k) + " ";
  io::write_file(dir / "book.txt", text);
  const std::string spec = "text:" + (dir / "book.txt") + ",by=words,length=4,words=1000";
  const auto words_of = [&](const std::string& how, Split part) {
    const Set windows = open(spec + how, part);
    std::vector<std::int64_t> tokens;
    for (std::int64_t i = 0; windows != nullptr && i < windows->size(); ++i) {
      std::vector<std::int64_t> input(4), target(4);
      windows->get({&i, 1}, input.data(), target.data());
      tokens.insert(tokens.end(), input.begin(), input.end());
      tokens.push_back(target.back());
    }
    return tokens.size();
  };
  CHECK(words_of("", Split::Train) > 390 * 5 / 4);
  CHECK(words_of("", Split::Validation) >= 40);
  CHECK(words_of("", Split::Test) >= 45);
  CHECK(words_of(",validation=0", Split::Validation) == 0);
  // Characters: the windows' contents occur once in the text, in the order of the parts.
  const std::string letters = [] {
    std::string out;
    std::uint32_t state = 1;
    for (int k = 0; k < 3000; ++k) {
      state = state * 1664525 + 1013904223;
      out += static_cast<char>('a' + (state >> 16) % 26);
    }
    return out;
  }();
  io::write_file(dir / "letters.txt", letters);
  const data::Vocabulary v = data::Vocabulary::of(letters, data::TextUnit::Characters);
  for (const char* how : {"", ",fold=1/4", ",fold=2/4", ",fold=4/4", ",fold=2/4,chronological",
                          ",split=0.3,validation=0.3"}) {
    CAPTURE(how);
    std::vector<int> used(letters.size());
    for (const Split part : kParts) {
      const Set set = open("text:" + (dir / "letters.txt") + ",length=50" + how, part);
      REQUIRE(set != nullptr);
      std::vector<std::uint8_t> of_part(letters.size());
      for (std::int64_t i = 0; i < set->size(); ++i) {
        std::vector<std::int64_t> input(50), target(50);
        set->get({&i, 1}, input.data(), target.data());
        input.push_back(target.back());
        const std::size_t place = letters.find(v.decode(input));
        REQUIRE(place != std::string::npos);
        std::fill_n(of_part.begin() + static_cast<std::ptrdiff_t>(place), 51, std::uint8_t{1});
      }
      for (std::size_t k = 0; k < used.size(); ++k) used[k] += of_part[k];
    }
    CHECK(*std::max_element(used.begin(), used.end()) == 1);
    const auto unused = std::count(used.begin(), used.end(), 0);
    CHECK(unused < (std::string(how).find("chron") == std::string::npos ? 5 * 51 : 1400));
  }
  for (const char* how : {",seed=1", ",group=x", ",stratify"})
    CHECK(has(refusal(spec + how), "stretches"));
  io::write_file(dir / "test.txt", "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 ");
  CHECK(open(spec + ",test=" + (dir / "test.txt"), Split::Test)->size() == 2);
  CHECK(open(spec + ",test=" + (dir / "test.txt"), Split::All)->size() == 126);
}

TEST_CASE("source parts: tensors are divided like files") {
  std::vector<float> x(100);
  std::vector<std::int64_t> y(100), g(100);
  for (std::size_t i = 0; i < 100; ++i)
    x[i] = static_cast<float>(i), y[i] = static_cast<std::int64_t>(i % 5), g[i] = -7 * (y[i] / 2);
  const Tensor input = Tensor::from(x, {100, 1}), target = Tensor::from(y, {100}),
               group = Tensor::from(g, {100});
  std::set<std::string> seen;
  for (const Split part : kParts) {
    const Set set = data::from_tensors(input, target, part, {});
    CHECK(set->size() == (part == Split::Train ? 81 : part == Split::Test ? 10 : 9));
    for (const std::string& name : names_of(set)) seen.insert(name);
  }
  CHECK(seen.size() == 100);
  CHECK(data::from_tensors(input, target, Split::Validation, {.validation = 0}) == nullptr);
  const Set test = data::from_tensors(input, target, Split::Test, {.test = 0.2}, 0, group);
  const std::vector<std::int64_t> counts = classes_of(*test);
  CHECK(counts[0] == counts[1]);
  CHECK(counts[2] == counts[3]);
  REQUIRE(test->notes().size() == 2);
  CHECK(has(test->notes()[0].text, "split by group 'group': 3 groups"));
  CHECK(has(test->notes()[1].text,
            "that another part has"));  // classes whose groups are in another part
}

TEST_CASE("source parts: a note names a class that a part lacks, and strict refuses it") {
  Files files;
  io::write_file(files.dir / "rare.csv", "x,y\n1,a\n2,a\n3,a\n4,a\n5,a\n6,b\n7,a\n8,a\n9,a\n1,a\n");
  const std::string spec = "csv:" + (files.dir / "rare.csv");
  const Set test = open(spec, Split::Test);
  REQUIRE(test->notes().size() == 1);
  CHECK(has(to_string(test->notes()[0]),
            "rare.csv: the test part has no sample of 1 class that another part has: 'b'"));
  CHECK(open(spec, Split::Train)->notes().empty());
  CHECK(has(refusal(spec, Split::Test, true), "'b'"));
}
