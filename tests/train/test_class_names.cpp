// Classes of other data are matched with the classes of a model by name.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/ops.h>

#include "train/runs/class_names.h"

using namespace tenon;
using Names = std::vector<std::string>;

namespace {

std::vector<std::int64_t> targets_of(const data::Dataset& set) {
  std::vector<std::int64_t> targets(static_cast<std::size_t>(set.size()));
  std::vector<std::uint8_t> input(static_cast<std::size_t>(set.input_shape().numel()));
  for (std::int64_t i = 0; i < set.size(); ++i)
    set.get({&i, 1}, input.data(), &targets[static_cast<std::size_t>(i)]);
  return targets;
}

}  // namespace

TEST_CASE("class names: numbers are not words") {
  CHECK(train::class_words({"0", "1"}).empty());
  CHECK(train::class_words({"1", "0"}) == Names{"1", "0"});
  CHECK(train::class_words({"ball"}) == Names{"ball"});
}

TEST_CASE("class names: another order is matched by name, also with fewer classes") {
  const auto scenes = data::drawn_scenes(0, 20);
  Names known = scenes->class_names();
  CHECK(train::numbered_as(scenes, known, "scenes") == scenes);
  known.insert(known.begin(), "owl");
  const auto set = train::numbered_as(scenes, known, "scenes");
  CHECK(set->class_names() == known);
  CHECK(set->classes() == 11);
  std::vector<std::int64_t> wanted = targets_of(*scenes);
  for (std::int64_t& target : wanted) ++target;
  CHECK(targets_of(*set) == wanted);
}

TEST_CASE("class names: a class that the model does not know is refused") {
  const auto scenes = data::drawn_scenes(0, 20), digits = data::drawn_digits(0, 20);
  CHECK_THROWS_WITH_AS(
      train::numbered_as(scenes, {"cat", "dog"}, "scenes"),
      doctest::Contains("'scenes': sample 2 (and 1 other): its class 'ball' is not "
                        "one of the model's classes (cat, dog): correct"),
      FormatError);
  const Names ten{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  CHECK(train::numbered_as(digits, ten, "digits") == digits);  // without names, by number
  CHECK_THROWS_WITH_AS(train::numbered_as(digits, {"0", "1"}, "digits"),
                       doctest::Contains("'digits' has 10 classes, and the model knows 2"),
                       ShapeError);
}
