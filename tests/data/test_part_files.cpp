// Parts of sources that have files of their own for a part: folders of parts, separate test files,
// and the published datasets.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/images.h>
#include <tenon/io.h>

#include "data/said.h"
#include "data/source_parts.h"

using namespace tenon;
using namespace source_parts;
using said::has;

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
  std::string others;
  for (const char* name : {"x.npy", "y.npy"}) {
    std::filesystem::copy_file(files.dir / name, files.dir / (std::string("other-") + name));
    others += "," + (files.dir / (std::string("other-") + name));
  }
  CHECK(open("npy:" + npy + others, Split::Train)->size() == 90);
  CHECK(open("npy:" + npy + others, Split::Test)->size() == 100);
  CHECK(open("npy:" + npy + others, Split::All)->size() == 200);
  CHECK(has(refusal("npy:" + npy + "," + npy), "is the training part"));
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
