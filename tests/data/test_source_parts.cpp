// Parts of every kind of source: disjoint, together complete, equal for equal seeds, with all
// classes.
#include <doctest/doctest.h>

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

namespace {

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

TEST_CASE("source parts: an option is not given twice with different values") {
  Files files;
  const std::string csv = "csv:" + files.csv(40, 2);
  CHECK(
      has(refusal(csv + ",label=x,label=label"), "'label' is given twice, as 'x' and as 'label'"));
  CHECK(has(refusal(csv + ",split=0.5,seed=1,split=0.1"), "'split' is given twice"));
  CHECK(has(refusal(csv + ",stratify,stratify=no"), "'stratify' is given twice, as 'yes' and"));
  CHECK(has(refusal(csv + ",label=label,column=0"), "both name the label"));
  CHECK(has(refusal(csv + ",drop=label,label=label"), "drop=label leaves out the label"));
  CHECK(has(refusal("digits:60,20,validation=0.2,validation=0.3"), "'validation' is given twice"));
  CHECK(has(refusal("digits,validation=0.2,validation=0.3"), "'validation' is given twice"));
  CHECK(refusal(csv + ",label=label,label=label,drop=who,seed=3").empty());
  CHECK(refusal("digits:60,60").empty());
}
