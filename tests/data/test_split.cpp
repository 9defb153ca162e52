// divide(): shares, classes, groups, time and folds.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "data/said.h"
#include "data/samples/split.h"

using namespace tenon;
using data::Parts;
using data::SampleMarks;
using data::Split;
using said::has;

namespace {

std::int64_t count_of(const Parts& parts, Split part) {
  return std::count(parts.begin(), parts.end(), part);
}

// Number of samples of a class in a part.
std::int64_t of_class(const Parts& parts, Split part, const SampleMarks& marks, std::int64_t c) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) count += parts[i] == part && marks.classes[i] == c;
  return count;
}

bool groups_stay_whole(const Parts& parts, const SampleMarks& marks) {
  std::map<std::int64_t, std::set<std::optional<Split>>> seen;
  for (std::size_t i = 0; i < parts.size(); ++i) seen[marks.groups[i]].insert(parts[i]);
  return std::all_of(seen.begin(), seen.end(), [](const auto& g) { return g.second.size() == 1; });
}

}  // namespace

TEST_CASE("split: shares of shuffled samples, equal for equal seeds") {
  const auto split = [](double test, double validation, std::uint64_t seed) {
    return data::divide({.test = test, .validation = validation, .seed = seed}, 1000, {}, "t");
  };
  const Parts parts = split(0.25, 0.2, 3);
  CHECK(count_of(parts, Split::Test) == 250);
  CHECK(count_of(parts, Split::Validation) == 150);
  CHECK(count_of(parts, Split::Train) == 600);
  CHECK(parts == split(0.25, 0.2, 3));
  CHECK(parts != split(0.25, 0.2, 4));
  CHECK(count_of(split(0.0001, 0, 0), Split::Test) == 1);
  CHECK(count_of(split(0, 0.1, 0), Split::Test) == 0);
  // Validation samples come from the training part, so the test part does not depend on them.
  const Parts without = split(0.25, 0, 3);
  for (std::size_t i = 0; i < parts.size(); ++i)
    CHECK((parts[i] == Split::Test) == (without[i] == Split::Test));
}

TEST_CASE("split: alternating classes are in every part") {
  // Every tenth sample has the same class: a part of every tenth sample would test one class only.
  SampleMarks marks;
  for (int i = 0; i < 2000; ++i) marks.classes.push_back(i % 10);
  const Parts parts = data::divide({}, 2000, marks, "t");
  for (int c = 0; c < 10; ++c) {
    CHECK(of_class(parts, Split::Test, marks, c) == 20);
    CHECK(of_class(parts, Split::Validation, marks, c) == 18);
    CHECK(of_class(parts, Split::Train, marks, c) == 162);
  }
}

TEST_CASE("split: rare classes keep their shares, with at least one training sample") {
  SampleMarks marks;
  for (int i = 0; i < 1000; ++i) marks.classes.push_back(i % 100 < 3 ? 1 : 0);
  const Parts kept = data::divide({.test = 0.2}, 1000, marks, "t");
  CHECK(count_of(kept, Split::Test) == 200);
  CHECK(of_class(kept, Split::Test, marks, 1) == 6);
  std::vector<int> seen(1000);
  for (int fold = 1; fold <= 5; ++fold) {
    const Parts parts = data::divide({.fold = fold, .folds = 5}, 1000, marks, "t");
    CHECK(count_of(parts, Split::Test) == 200);
    CHECK(of_class(parts, Split::Test, marks, 1) == 6);
    CHECK(count_of(parts, Split::Validation) == 80);
    for (std::size_t i = 0; i < parts.size(); ++i) seen[i] += parts[i] == Split::Test ? 1 : 0;
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  SampleMarks single{{0, 0, 0, 0, 0, 0, 1, 2}, {}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Parts parts = data::divide({.test = 0.25, .seed = seed}, 8, single, "t");
    for (const int c : {1, 2}) CHECK(of_class(parts, Split::Train, single, c) == 1);
    CHECK(count_of(parts, Split::Test) >= 1);
  }
}

TEST_CASE("split: groups stay whole") {
  SampleMarks marks;
  for (int i = 0; i < 1000; ++i) marks.groups.push_back(i % 37);
  const Parts parts = data::divide({.test = 0.3, .group = "g"}, 1000, marks, "t");
  CHECK(groups_stay_whole(parts, marks));
  CHECK(std::abs(count_of(parts, Split::Test) - 300) <= 28);
  CHECK(std::abs(count_of(parts, Split::Validation) - 70) <= 28);
  std::int64_t all = 0;
  for (int fold = 1; fold <= 4; ++fold) {
    const Parts of_fold = data::divide({.group = "g", .fold = fold, .folds = 4}, 1000, marks, "t");
    CHECK(groups_stay_whole(of_fold, marks));
    CHECK(std::abs(count_of(of_fold, Split::Test) - 250) <= 28);
    all += count_of(of_fold, Split::Test);
  }
  CHECK(all == 1000);
}

TEST_CASE("split: chronological parts follow each other, and folds train on earlier samples only") {
  const Parts parts = data::divide({.test = 0.2, .chronological = true}, 100, {}, "t");
  for (std::size_t i = 0; i < 100; ++i)
    CHECK(parts[i] == (i < 72 ? Split::Train : i < 80 ? Split::Validation : Split::Test));
  // scikit-learn's TimeSeriesSplit(n_splits=4) of 23 samples tests the last 16, 4 per fold.
  for (int fold = 1; fold <= 4; ++fold) {
    const Parts of_fold = data::divide(
        {.validation = 0, .chronological = true, .fold = fold, .folds = 4}, 23, {}, "t");
    const std::size_t from = 7 + 4 * static_cast<std::size_t>(fold - 1);
    for (std::size_t i = 0; i < 23; ++i)
      CHECK(of_fold[i] == (i < from       ? std::optional(Split::Train)
                           : i < from + 4 ? std::optional(Split::Test)
                                          : std::nullopt));
  }
}

TEST_CASE("split: contradictory options and empty parts are refused") {
  const auto refused = [](const data::SplitOptions& options, std::int64_t samples) -> std::string {
    try {
      data::divide(options, samples, {}, "t.csv");
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(has(refused({.test = 1.5}, 10), "must be at least 0 and less than 1"));
  CHECK(has(refused({.validation = -1}, 10), "the validation part's share is -1"));
  CHECK(has(refused({.fold = 6, .folds = 5}, 10), "fold 6 of 5"));
  CHECK(has(refused({.fold = 2}, 10), "fold 2 of 0"));
  CHECK(has(refused({.fold = 3, .folds = 3}, 2), "2 samples, which make 2 folds at most"));
  CHECK(has(refused({.fold = 1, .folds = 50}, 20), "20 samples, which make 20 folds at most"));
  CHECK(has(refused({.chronological = true, .fold = 1, .folds = 20}, 20), "19 folds at most"));
  CHECK(has(refused({.test = 0.999}, 100), "leaves none for training"));
  CHECK(has(refused({.test = 0.999, .chronological = true}, 100), "leaves none for training"));
  CHECK(has(refused({.test = 0.1, .validation = 0.999}, 100), "the validation part's share"));
  CHECK(refused({.test = 0.9}, 10).empty());
  CHECK(has(refused({.test = 0.2, .fold = 1, .folds = 3}, 20), "leave out the test part's share"));
  CHECK(has(refused({.group = "g"}, 10), "it has none"));
  CHECK(has(refused({}, 1), "for testing"));
  CHECK(has(refused({.stratify = true}, 10), "it has none"));
  CHECK(has(refused({.group = "g", .chronological = true}, 10), "leave out 'group'"));
}

TEST_CASE("split: more folds than groups are refused with the number of groups") {
  SampleMarks marks;
  for (int i = 0; i < 100; ++i) marks.groups.push_back(i / 5);
  const auto fold = [&](int number, int folds) {
    data::SplitOptions options{.group = "patient", .fold = number, .folds = folds};
    return data::divide(options, 100, marks, "t.csv");
  };
  CHECK(count_of(fold(20, 20), Split::Test) == 5);
  CHECK_THROWS_WITH_AS(fold(1, 50),
                       "t.csv: fold 1 of 50: there are 20 groups of 'patient', which make 20 folds "
                       "at most: give fewer folds",
                       ValueError);
}

TEST_CASE("split: a note counts the groups, another says that groups have one sample each") {
  const auto notes = [](const data::SplitOptions& options, int each) {
    data::Samples samples{.name = "t.csv", .count = 100};
    for (int i = 0; i < 100; ++i) samples.marks.groups.push_back(i / each);
    return data::choose_samples(options, Split::Train, samples).notes;
  };
  const Notes grouped = notes({.test = 0.2, .validation = 0.25, .group = "patient"}, 5);
  REQUIRE(grouped.size() == 1);
  CHECK(to_string(grouped[0]) ==
        "t.csv: split by group 'patient': 20 groups, 12 for training, 4 for validation, 4 for "
        "testing");
  CHECK_NOTHROW(refuse_notes(grouped));
  const Notes alone = notes({.group = "id"}, 1);
  REQUIRE(alone.size() == 1);
  CHECK(has(alone[0].text, "keeps nothing together: each of 100 groups is one sample"));
  CHECK_THROWS_AS(refuse_notes(alone), FormatError);
}

TEST_CASE("split: classes with fewer samples than folds are named") {
  data::Samples samples{.name = "t.csv", .count = 100};
  samples.class_names = {"often", "rare"};
  for (int i = 0; i < 100; ++i) samples.marks.classes.push_back(i >= 97);
  const auto notes = [&](data::SplitOptions options) {
    options.fold = 1;
    return data::choose_samples(options, Split::Train, samples).notes;
  };
  const auto told = [](const Notes& given) {
    return std::any_of(given.begin(), given.end(), [](const Note& note) {
      return has(note.text, "1 class has fewer samples than the 5 folds") &&
             has(note.text, "'rare'");
    });
  };
  CHECK(told(notes({.folds = 5})));
  CHECK_FALSE(told(notes({.folds = 3})));
  CHECK_FALSE(told(notes({.stratify = false, .folds = 5})));
}

TEST_CASE("split: one large group does not fill a small part") {
  SampleMarks marks;
  for (int i = 0; i < 1000; ++i) marks.groups.push_back(i < 600 ? 0 : 1 + i % 20);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Parts parts = data::divide({.seed = seed, .group = "g"}, 1000, marks, "t");
    CHECK(groups_stay_whole(parts, marks));
    CHECK(count_of(parts, Split::Test) == 100);
    CHECK(std::abs(count_of(parts, Split::Validation) - 90) <= 10);
  }
}

TEST_CASE("split: classes of one sample do not change the shares of others") {
  SampleMarks marks;
  for (int i = 0; i < 150; ++i) marks.classes.push_back(i < 100 ? i : 100);
  const Parts parts = data::divide({.test = 0.2, .validation = 0}, 150, marks, "t");
  CHECK(of_class(parts, Split::Test, marks, 100) == 10);
  CHECK(count_of(parts, Split::Test) == 10);
}

TEST_CASE("split: units stay whole, and keep the shares of classes") {
  SampleMarks marks;
  for (int i = 0; i < 600; ++i) {
    marks.units.push_back(i / 3);
    marks.classes.push_back(i / 3 % 2);
  }
  const Parts parts = data::divide({}, 600, marks, "t");
  CHECK(groups_stay_whole(parts, {{}, marks.units, {}}));
  CHECK(of_class(parts, Split::Test, marks, 0) == 30);
  CHECK(of_class(parts, Split::Test, marks, 1) == 30);
}

TEST_CASE("split: parts with separate files, and classes that a part lacks") {
  data::Samples samples{.name = "t", .count = 40};
  samples.class_names = {"ape", "bat", "cat"};
  for (int i = 0; i < 40; ++i) {
    samples.fixed_parts.push_back(i < 30 ? std::optional<Split>() : Split::Test);
    samples.marks.classes.push_back(i < 30 ? i % 3 : 1);
  }
  const auto train = data::choose_samples({}, Split::Train, samples),
             held = data::choose_samples({}, Split::Validation, samples),
             test = data::choose_samples({}, Split::Test, samples);
  CHECK(train.samples.size() == 27);
  CHECK(held.samples.size() == 3);
  CHECK(held.samples.back() < 30);
  CHECK(test.samples.size() == 10);
  CHECK(data::choose_samples({}, Split::All, samples).samples.size() == 40);
  CHECK(train.notes.empty());
  REQUIRE(test.notes.size() == 1);
  CHECK(to_string(test.notes[0]) ==
        "t: the test part has no sample of 2 classes that another part has: 'ape', 'cat'");
  CHECK(test.notes[0].count == 2);
  CHECK_THROWS_AS(data::choose_samples({.test = 0.5}, Split::Train, samples), ValueError);
  CHECK_THROWS_AS(data::choose_samples({.fold = 1, .folds = 2}, Split::Train, samples), ValueError);
  // A single sample can be opened as a whole, although it cannot be divided.
  CHECK(data::choose_samples({}, Split::All, {.name = "t", .count = 1}).samples.size() == 1);
  CHECK_THROWS_AS(data::choose_samples({}, Split::Train, {.name = "t", .count = 1}), ValueError);
  const data::Samples one_text{.name = "t", .count = 3, .marks = {{}, {}, {5, 5, 5}}};
  CHECK(data::choose_samples({}, Split::All, one_text).samples.size() == 3);
  CHECK(data::choose_samples({.fold = 1, .folds = 2}, Split::All, one_text).samples.size() == 3);
  CHECK_THROWS_AS(data::choose_samples({}, Split::Test, one_text), ValueError);
}

TEST_CASE("split: 100,000 samples of 1,000 classes, or of 50,000 groups, in well under a second") {
  SampleMarks classes, groups;
  for (std::int64_t i = 0; i < 100'000; ++i) {
    classes.classes.push_back(i % 1000);
    groups.groups.push_back(i % 50'000);
  }
  const auto begin = std::chrono::steady_clock::now();
  const Parts stratified = data::divide({}, 100'000, classes, "t"),
              whole = data::divide({.group = "g"}, 100'000, groups, "t"),
              fold = data::divide({.group = "g", .fold = 3, .folds = 10'000}, 100'000, groups, "t");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  CHECK(seconds.count() < 1);
  CHECK(count_of(stratified, Split::Test) == 10'000);
  CHECK(count_of(whole, Split::Test) == 10'000);
  CHECK(count_of(fold, Split::Test) == 10);
}

// ---- scikit-learn's parts of random classes and groups, made by tests/e2e/make_split_fixtures.py

namespace {

using Json = nlohmann::json;

Json peers(const char* kind) {
  return Json::parse(io::read_file("tests/e2e/fixtures/splits.json"))[kind];
}

// Classes or groups of these sizes, one after another.
std::vector<std::int64_t> numbers_of(const Json& sizes) {
  std::vector<std::int64_t> out;
  for (std::size_t c = 0; c < sizes.size(); ++c)
    out.insert(out.end(), sizes[c].get<std::size_t>(), static_cast<std::int64_t>(c));
  return out;
}

}  // namespace

TEST_CASE("split: shares of classes equal scikit-learn's train_test_split") {
  const Json cases = peers("shares");
  REQUIRE(cases.size() == 100);
  for (const Json& peer : cases) {
    CAPTURE(peer.dump());
    const SampleMarks marks{numbers_of(peer[0]), {}, {}};
    const std::int64_t count = std::ssize(marks.classes), test = peer[1];
    const double share = static_cast<double>(test) / static_cast<double>(count);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Parts parts = data::divide({.test = share, .seed = seed}, count, marks, "t");
      CHECK(count_of(parts, Split::Test) == test);
      for (std::size_t c = 0; c < peer[2].size(); ++c) {
        const std::int64_t own = of_class(parts, Split::Test, marks, static_cast<std::int64_t>(c));
        CHECK(std::abs(own - peer[2][c].get<std::int64_t>()) <= 1);
      }
    }
  }
}

TEST_CASE("split: classes of folds equal scikit-learn's StratifiedKFold") {
  const Json cases = peers("folds");
  REQUIRE(cases.size() == 100);
  for (const Json& peer : cases) {
    CAPTURE(peer.dump());
    const SampleMarks marks{numbers_of(peer[0]), {}, {}};
    const std::int64_t count = std::ssize(marks.classes);
    const int folds = peer[1];
    std::vector<int> tested(marks.classes.size());
    for (int fold = 1; fold <= folds; ++fold) {
      const Parts parts =
          data::divide({.seed = 7, .fold = fold, .folds = folds}, count, marks, "t");
      for (std::size_t i = 0; i < tested.size(); ++i) tested[i] += parts[i] == Split::Test ? 1 : 0;
      for (std::size_t c = 0; c < peer[0].size(); ++c) {
        const std::int64_t own = of_class(parts, Split::Test, marks, static_cast<std::int64_t>(c));
        const std::int64_t theirs = peer[2][static_cast<std::size_t>(fold - 1)][c];
        CHECK(std::abs(own - theirs) <= 1);
        CHECK(of_class(parts, Split::Train, marks, static_cast<std::int64_t>(c)) >= 1);
      }
    }
    CHECK(std::all_of(tested.begin(), tested.end(), [](int times) { return times == 1; }));
  }
}

TEST_CASE("split: sizes of folds of groups equal scikit-learn's GroupKFold") {
  const Json cases = peers("groups");
  REQUIRE(cases.size() == 100);
  for (const Json& peer : cases) {
    CAPTURE(peer.dump());
    const SampleMarks marks{{}, numbers_of(peer[0]), {}};
    const std::int64_t count = std::ssize(marks.groups);
    const int folds = peer[1];
    std::vector<int> tested(marks.groups.size());
    std::vector<std::int64_t> own, theirs = peer[2].get<std::vector<std::int64_t>>();
    for (int fold = 1; fold <= folds; ++fold) {
      const Parts parts =
          data::divide({.seed = 7, .group = "g", .fold = fold, .folds = folds}, count, marks, "t");
      CHECK(groups_stay_whole(parts, marks));
      own.push_back(count_of(parts, Split::Test));
      for (std::size_t i = 0; i < tested.size(); ++i) tested[i] += parts[i] == Split::Test ? 1 : 0;
    }
    std::sort(own.begin(), own.end());
    std::sort(theirs.begin(), theirs.end());
    CHECK(own == theirs);
    CHECK(std::all_of(tested.begin(), tested.end(), [](int times) { return times == 1; }));
  }
}

TEST_CASE("split: chronological folds equal scikit-learn's TimeSeriesSplit") {
  const Json cases = peers("times");
  REQUIRE(cases.size() == 100);
  for (const Json& peer : cases) {
    CAPTURE(peer.dump());
    const std::int64_t count = peer[0];
    const int folds = peer[1];
    for (int fold = 1; fold <= folds; ++fold) {
      const Json& tested = peer[2][static_cast<std::size_t>(fold - 1)];
      const Parts parts = data::divide(
          {.validation = 0, .chronological = true, .fold = fold, .folds = folds}, count, {}, "t");
      for (std::int64_t i = 0; i < count; ++i)
        CHECK(parts[static_cast<std::size_t>(i)] == (i < tested[0]   ? std::optional(Split::Train)
                                                     : i < tested[1] ? std::optional(Split::Test)
                                                                     : std::nullopt));
    }
  }
}
