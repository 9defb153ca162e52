// Drawn scenes: equal bytes on every machine, any size, every class in turn; and CIFAR's files.
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/data.h>
#include <tenon/error.h>

#include "data/drawn/scene_outline.h"
#include "data/drawn/scenes.h"
#include "io/folder.h"

using namespace tenon;
using data::Split;

namespace {

std::uint32_t sum_of(std::uint64_t seed, int count, int side) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * side * side));
  uLong sum = 0;
  for (int i = 0; i < count; ++i) {
    data::draw_scene(seed, static_cast<std::uint64_t>(i), side, pixels.data());
    sum = crc32(sum, pixels.data(), static_cast<uInt>(pixels.size()));
  }
  return static_cast<std::uint32_t>(sum);
}

std::string record(std::string labels, char fill) { return labels + std::string(3072, fill); }

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("scenes: recorded bytes at every size") {
  CHECK(sum_of(1, 200, 32) == 3265213469u);
  CHECK(sum_of(2, 3, 97) == 128355462u);
}

TEST_CASE("scenes: every ten samples have each class once, in changing order") {
  std::set<std::string> orders;
  for (std::uint64_t block = 0; block < 50; ++block) {
    std::string order;
    for (std::uint64_t i = 0; i < 10; ++i)
      order.push_back(static_cast<char>('0' + data::scene_label(3, block * 10 + i)));
    CHECK(std::set<char>(order.begin(), order.end()).size() == 10);
    orders.insert(order);
  }
  CHECK(orders.size() > 45);
}

TEST_CASE("scenes: outlines have similar sizes, and differ between classes") {
  constexpr int kGrid = 64;
  std::vector<std::vector<bool>> inside(data::kSceneClasses);
  for (int label = 0; label < data::kSceneClasses; ++label) {
    int covered = 0;
    for (int row = 0; row < kGrid; ++row)
      for (int column = 0; column < kGrid; ++column) {
        const data::Place at{(static_cast<float>(column) + .5f) / 32 - 1,
                             (static_cast<float>(row) + .5f) / 32 - 1};
        inside[static_cast<std::size_t>(label)].push_back(data::outline_distance(label, at) < 0);
        covered += inside[static_cast<std::size_t>(label)].back();
      }
    CAPTURE(label);
    CHECK(covered > kGrid * kGrid / 6);
    CHECK(covered < kGrid * kGrid * 3 / 4);
    CHECK(data::outline_distance(label, {3, 3}) > 1);
  }
  for (std::size_t a = 0; a < inside.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      int differ = 0;
      for (std::size_t i = 0; i < inside[a].size(); ++i) differ += inside[a][i] != inside[b][i];
      CAPTURE(a);
      CAPTURE(b);
      CHECK(differ > kGrid * kGrid / 16);
    }
}

TEST_CASE("scenes as a set: names, sizes, separate test images, messages") {
  const auto train = data::open_dataset("scenes:30,20,4,size=48", Split::Train);
  const auto test = data::open_dataset("scenes:30,20,4,size=48", Split::Test);
  CHECK(train->size() == 30);
  CHECK(test->size() == 20);
  CHECK(train->input_shape() == Shape{3, 48, 48});
  CHECK(train->class_names()[8] == "fish");
  CHECK(data::open_dataset("scenes", Split::Train)->size() == 50'000);
  std::vector<std::uint8_t> a(3 * 48 * 48, 1), b(3 * 48 * 48, 2);
  const std::int64_t first = 0;
  std::int64_t target = -1;
  train->get({&first, 1}, a.data(), &target);
  CHECK(target == data::scene_label(4, 0));
  test->get({&first, 1}, b.data(), &target);
  CHECK(a != b);
  CHECK_THROWS_AS(data::open_dataset("scenes:1,2,3,4", Split::Train), ValueError);
  CHECK_THROWS_AS(data::open_dataset("scenes:size=8", Split::Train), ValueError);
  CHECK_THROWS_AS(data::open_dataset("scenes:size=x", Split::Train), ValueError);
  CHECK_THROWS_AS(data::drawn_scenes(0, 0), ValueError);
}

TEST_CASE("scenes: a batch on all threads equals single scenes") {
  const auto set = data::drawn_scenes(6, 5000, 16), again = data::drawn_scenes(6, 5000, 16);
  CHECK(set->made_on_demand());
  std::vector<std::int64_t> all(5000), target(5000, -1);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  std::vector<std::uint8_t> pixels(5000 * 3 * 256), one(3 * 256);
  set->get(all, pixels.data(), target.data());
  CHECK(set->in_memory());
  for (const std::int64_t i : {0, 63, 64, 4999}) {
    std::int64_t label = -1;
    again->get({&i, 1}, one.data(), &label);
    CHECK(label == target[static_cast<std::size_t>(i)]);
    CHECK(std::equal(one.begin(), one.end(), pixels.begin() + i * 3 * 256));
  }
}

TEST_CASE("cifar: the binary files of both sets, and invalid files") {
  const TestFolder scratch;
  for (int k = 1; k <= 5; ++k)
    write(scratch / ("data_batch_" + std::to_string(k) + ".bin"),
          record({static_cast<char>(k)}, static_cast<char>(10 * k)));
  write(scratch / "test_batch.bin", record({9}, 77) + record({0}, 78));
  write(scratch / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const auto train =
      data::open_dataset("cifar10:" + scratch.path() + ",validation=0", Split::Train);
  const auto test = data::open_dataset("cifar10:" + scratch.path(), Split::Test);
  CHECK(train->size() == 5);
  CHECK(test->size() == 2);
  CHECK(train->input_shape() == Shape{3, 32, 32});
  CHECK(train->classes() == 10);
  CHECK(train->class_names()[9] == "j");
  std::vector<std::uint8_t> pixels(3072, 1);
  std::int64_t target = -1;
  const std::int64_t third = 2;
  train->get({&third, 1}, pixels.data(), &target);
  CHECK(target == 3);
  CHECK(train->sample_name(2) == (scratch / "data_batch_3.bin") + ", image 1");
  CHECK(pixels == std::vector<std::uint8_t>(3072, 30));

  write(scratch / "test_batch.bin", record({9}, 77) + "x");
  CHECK_THROWS_AS(data::open_cifar(scratch.path(), Split::Test), FormatError);
  write(scratch / "test_batch.bin", record({10}, 77));
  CHECK_THROWS_AS(data::open_cifar(scratch.path(), Split::Test), Error);
  CHECK_THROWS_AS(data::open_dataset("cifar100:" + scratch.path(), Split::Test), IoError);

  write(scratch / "train.bin", record({1, 99}, 3));
  write(scratch / "test.bin", record({0, 4}, 5));
  const auto hundred = data::open_dataset("cifar100:" + scratch.path(), Split::Train);
  CHECK(hundred->classes() == 100);
  const std::int64_t first = 0;
  hundred->get({&first, 1}, pixels.data(), &target);
  CHECK(target == 99);
}
