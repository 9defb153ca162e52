// divide(): shares, classes, groups, time and folds.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>

#include "data/split.h"

using namespace tenon;
using data::SampleMarks;
using data::Split;
using Parts = std::vector<std::optional<Split>>;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::int64_t count_of(const Parts& parts, Split part) {
  return std::count(parts.begin(), parts.end(), part);
}

// How many samples of a class a part has.
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

TEST_CASE("split: shares of shuffled samples, the same for the same seed") {
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
  // The validation part is taken from the training part: the test part does not depend on it.
  const Parts without = split(0.25, 0, 3);
  for (std::size_t i = 0; i < parts.size(); ++i)
    CHECK((parts[i] == Split::Test) == (without[i] == Split::Test));
}

TEST_CASE("split: classes in turn are in every part") {
  // Every tenth sample is of one class: a part made of every tenth sample would test that class
  // alone.
  SampleMarks marks;
  for (int i = 0; i < 2000; ++i) marks.classes.push_back(i % 10);
  const Parts parts = data::divide({}, 2000, marks, "t");
  for (int c = 0; c < 10; ++c) {
    CHECK(of_class(parts, Split::Test, marks, c) == 20);
    CHECK(of_class(parts, Split::Validation, marks, c) == 18);
    CHECK(of_class(parts, Split::Train, marks, c) == 162);
  }
}

TEST_CASE("split: rare classes keep their shares, and one sample at least in training") {
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

TEST_CASE("split: chronological parts follow each other, and folds train on the past alone") {
  const Parts parts = data::divide({.test = 0.2, .chronological = true}, 100, {}, "t");
  for (std::size_t i = 0; i < 100; ++i)
    CHECK(parts[i] == (i < 72 ? Split::Train : i < 80 ? Split::Validation : Split::Test));
  // scikit-learn: TimeSeriesSplit(n_splits=4) of 23 samples tests 4 samples each, the last ones.
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

TEST_CASE("split: what contradicts itself or leaves a part empty is refused") {
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
  CHECK(has(refused({.fold = 3, .folds = 3}, 2), "for testing"));
  CHECK(has(refused({}, 1), "for testing"));
  CHECK(has(refused({.stratify = true}, 10), "it has none"));
  CHECK(has(refused({.group = "g", .chronological = true}, 10), "leave out 'group'"));
}
