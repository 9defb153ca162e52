// The loader: equal order for any number of workers, exact resume, errors that reach the caller,
// and clean shutdown.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/data.h>
#include <tenon/error.h>
#include <tenon/ops.h>

#include "data/samples/order.h"

using namespace tenon;
using data::Loader;
using data::LoaderOptions;

namespace {

// Sample i is the four bytes of i. It takes some time, so that threads overtake each other. It may
// fail at one index.
class SlowSet final : public data::Dataset {
 public:
  explicit SlowSet(std::int64_t size, std::int64_t bad = -1)
      : Dataset({.input_shape = {4},
                 .input_dtype = DType::UInt8,
                 .classes = 10,
                 .description = "a slow set"}),
        bad_(bad),
        size_(size) {}
  std::int64_t size() const override { return size_; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(indices[0] * 7919 % 300));
    auto* input = static_cast<std::uint8_t*>(inputs);
    auto* target = static_cast<std::int64_t*>(targets);
    for (std::int64_t index : indices) {
      if (index % 5 == 0) std::this_thread::yield();  // also within a batch
      if (index == bad_) throw FormatError("example 17 is damaged");
      for (int k = 0; k < 4; ++k) *input++ = static_cast<std::uint8_t>(index >> (8 * k) & 0xff);
      *target++ = index;
      ++given_;
    }
  }
  std::atomic<std::int64_t> bad_;
  mutable std::atomic<std::int64_t> given_{0};

 private:
  std::int64_t size_;
};

// All targets of the current epoch, batch after batch.
std::vector<std::int64_t> epoch(Loader& loader) {
  std::vector<float> input(static_cast<std::size_t>(loader.batch()) * 4);
  std::vector<std::int64_t> target(static_cast<std::size_t>(loader.batch())), all;
  while (const std::int64_t n = loader.next(input.data(), target.data())) {
    all.insert(all.end(), target.begin(), target.begin() + n);
    for (std::int64_t k = 0; k < n; ++k) {
      const auto at = static_cast<std::size_t>(k);
      CHECK(std::lround(input[4 * at] * 255) == target[at] % 256);
    }
  }
  return all;
}

LoaderOptions with(std::int64_t batch, int workers, std::uint64_t seed = 3) {
  LoaderOptions o;
  o.batch = batch;
  o.workers = workers;
  o.seed = seed;
  return o;
}

}  // namespace

TEST_CASE("order: a permutation for each seed and epoch, the same on every machine") {
  std::set<std::vector<std::int64_t>> orders;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    for (std::int64_t e = 0; e < 4; ++e) {
      std::vector<std::int64_t> order = data::epoch_order(seed, e, 101);
      orders.insert(order);
      std::sort(order.begin(), order.end());
      for (std::int64_t i = 0; i < 101; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
    }
  CHECK(orders.size() == 16);
  CHECK(data::epoch_order(0, 0, 10) == std::vector<std::int64_t>{8, 2, 1, 9, 5, 0, 4, 7, 6, 3});
  CHECK(data::epoch_order(9, 9, 0).empty());
}

TEST_CASE("order: every position is equally likely") {
  int counts[4][4] = {};
  for (int e = 0; e < 8000; ++e) {
    const auto order = data::epoch_order(1, e, 4);
    for (std::size_t i = 0; i < 4; ++i) ++counts[i][order[i]];
  }
  for (const auto& row : counts)
    for (int count : row) CHECK(std::abs(count - 2000) < 200);
}

TEST_CASE("loader: every sample once per epoch, in equal batches for any number of workers") {
  const auto set = std::make_shared<SlowSet>(103);
  Loader direct(set, with(10, 0));
  CHECK(direct.batches() == 11);
  std::vector<std::vector<std::int64_t>> expected;
  for (int e = 0; e < 3; ++e) {
    expected.push_back(epoch(direct));
    std::vector<std::int64_t> sorted = expected.back();
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::int64_t> all(103);
    std::iota(all.begin(), all.end(), 0);
    CHECK(sorted == all);
  }
  CHECK(expected[0] != expected[1]);
  for (int workers : {1, 2, 5}) {
    LoaderOptions options = with(10, workers);
    options.prefetch = workers == 2 ? 1 : 4;
    Loader loader(set, options);
    for (int e = 0; e < 3; ++e) CHECK(epoch(loader) == expected[static_cast<std::size_t>(e)]);
  }
}

TEST_CASE("loader: drop_last, no shuffling, batches larger than the set") {
  const auto set = std::make_shared<SlowSet>(23);
  LoaderOptions options = with(5, 1);
  options.shuffle = false;
  options.drop_last = true;
  Loader loader(set, options);
  CHECK(loader.batches() == 4);
  std::vector<std::int64_t> expected(20);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(epoch(loader) == expected);
  CHECK(epoch(loader) == expected);
  Loader whole(set, with(1000, 1));
  CHECK(whole.batch() == 23);
  CHECK(epoch(whole).size() == 23);
  options.batch = 24;
  CHECK_THROWS_AS(Loader(set, options), ValueError);
}

TEST_CASE("loader: resumes exactly, at every batch of an epoch and at its end") {
  const auto set = std::make_shared<SlowSet>(37);
  for (int workers : {0, 2}) {
    Loader whole(set, with(8, 0));
    std::vector<std::int64_t> expected = epoch(whole);
    const std::vector<std::int64_t> second = epoch(whole);
    for (int stop = 0; stop <= 5; ++stop) {
      Loader before(set, with(8, workers)), after(set, with(8, workers, 999));
      std::vector<float> input(8 * 4);
      std::vector<std::int64_t> target(8), all;
      for (int i = 0; i < stop; ++i) {
        const std::int64_t n = before.next(input.data(), target.data());
        all.insert(all.end(), target.begin(), target.begin() + n);
      }
      const data::LoaderState state = before.state();
      CHECK(state.position == static_cast<std::int64_t>(all.size()));
      after.set_state(state);
      const std::vector<std::int64_t> rest = epoch(after);
      all.insert(all.end(), rest.begin(), rest.end());
      CHECK(all == expected);
      CHECK(after.state() == data::LoaderState{3, 1, 0});
      CHECK(epoch(after) == second);
      after.set_epoch(0);
      CHECK(epoch(after) == expected);
    }
  }
}

TEST_CASE("loader: a state of other data is refused") {
  Loader loader(std::make_shared<SlowSet>(10), with(4, 0));
  CHECK_THROWS_AS(loader.set_state({0, 0, 11}), ValueError);
  CHECK_THROWS_AS(loader.set_state({0, -1, 0}), ValueError);
  CHECK_THROWS_AS(loader.set_state({0, 0, -1}), ValueError);
}

TEST_CASE("loader: an error comes at its batch, and the batch can be tried again") {
  for (int workers : {0, 1, 3}) {
    const auto set = std::make_shared<SlowSet>(40, 17);
    LoaderOptions options = with(5, workers);
    options.shuffle = false;
    Loader loader(set, options);
    std::vector<float> input(20);
    std::vector<std::int64_t> target(5);
    for (int i = 0; i < 3; ++i) CHECK(loader.next(input.data(), target.data()) == 5);
    CHECK_THROWS_AS(loader.next(input.data(), target.data()), FormatError);
    CHECK_THROWS_AS(loader.next(input.data(), target.data()), FormatError);
    CHECK(loader.state().position == 15);
    set->bad_ = -1;
    CHECK(loader.next(input.data(), target.data()) == 5);
    CHECK(target[2] == 17);
  }
}

TEST_CASE("loader: threads continue with the next epoch if samples are shuffled") {
  for (const bool shuffle : {true, false}) {
    const auto set = std::make_shared<SlowSet>(20);
    LoaderOptions options = with(5, 2);
    options.shuffle = shuffle, options.prefetch = 3;
    Loader loader(set, options);
    std::vector<float> input(20);
    std::vector<std::int64_t> target(5);
    for (int i = 0; i < 4; ++i) CHECK(loader.next(input.data(), target.data()) == 5);
    // Before the epoch is requested, three more batches are prepared, and no others until one is
    // taken.
    const std::int64_t ahead = shuffle ? 35 : 20;
    for (int wait = 0; wait < 500 && set->given_ < ahead; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(set->given_ == ahead);
    // They are the batches of the next epoch, however it is started.
    loader.set_state({3, 1, 0});
    const std::vector<std::int64_t> order = data::epoch_order(3, 1, 20);
    for (std::size_t k = 0; k < 20; ++k) {
      if (k % 5 == 0) REQUIRE(loader.next(input.data(), target.data()) == 5);
      CHECK(target[k % 5] == (shuffle ? order[k] : static_cast<std::int64_t>(k)));
    }
    CHECK(loader.next(input.data(), target.data()) == 0);
    CHECK(loader.state() == data::LoaderState{3, 2, 0});
    if (shuffle) CHECK(set->given_ <= 40 + 15);
    loader.set_epoch(7);  // another epoch: the prepared batches are dropped
    REQUIRE(loader.next(input.data(), target.data()) == 5);
    CHECK(target[0] == (shuffle ? data::epoch_order(3, 7, 20)[0] : 0));
  }
}

TEST_CASE("loader: may be destroyed or moved at any time") {
  const auto set = std::make_shared<SlowSet>(200);
  std::vector<float> input(4 * 4);
  std::vector<std::int64_t> target(4);
  for (int taken = 0; taken < 12; ++taken) {
    Loader loader(set, with(4, 3));
    for (int i = 0; i < taken; ++i) loader.next(input.data(), target.data());
    if (taken % 2 == 1) loader.set_epoch(5);
  }
}

TEST_CASE("loader: bytes become scaled floats, or stay bytes") {
  const Tensor input = Tensor::from<std::uint8_t>({0, 51, 255, 102}, {2, 2});
  const Tensor target = Tensor::from<std::int64_t>({1, 0}, {2});
  LoaderOptions options;
  options.shuffle = false;
  data::Batch batch;
  Loader plain(data::from_tensors(input, target), options);
  REQUIRE(plain.next(batch));
  CHECK(batch.input.shape() == Shape{2, 2});
  CHECK(batch.input.to_vector<float>()[2] == 1.0f);
  CHECK(batch.input.to_vector<float>()[0] == 0.0f);
  CHECK(batch.target.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0});
  CHECK_FALSE(plain.next(batch));
  CHECK(batch.size == 0);
  options.mean = 0.5;
  options.std = 0.25;
  Loader shifted(data::from_tensors(input, target), options);
  REQUIRE(shifted.next(batch));
  CHECK(batch.input.to_vector<float>()[1] == doctest::Approx(-1.2));
  options.scale = false;
  Loader raw(data::from_tensors(input, target), options);
  CHECK(raw.input_dtype() == DType::UInt8);
  REQUIRE(raw.next(batch));
  CHECK(batch.input.to_vector<std::uint8_t>() == input.to_vector<std::uint8_t>());
  shifted.set_epoch(1);
  REQUIRE(shifted.next_stored(batch));
  CHECK(batch.input.to_vector<std::uint8_t>() == input.to_vector<std::uint8_t>());
}

TEST_CASE("loader: options outside their range, and no data") {
  const auto set = std::make_shared<SlowSet>(10);
  for (std::int64_t batch : {0, -1}) CHECK_THROWS_AS(Loader(set, with(batch, 0)), ValueError);
  CHECK_THROWS_AS(Loader(set, with(1, -1)), ValueError);
  LoaderOptions options;
  options.std = 0;
  CHECK_THROWS_AS(Loader(set, options), ValueError);
  CHECK_THROWS_WITH_AS(Loader(std::make_shared<SlowSet>(0), with(1, 0)),
                       doctest::Contains("no samples to load from"), ValueError);
  CHECK_THROWS_AS(Loader(nullptr, with(1, 0)), ValueError);
}

TEST_CASE("loader: drawn digits are the same with and without threads") {
  std::vector<float> input(32 * 784, -1), other(32 * 784, -2);
  std::vector<std::int64_t> target(32), target2(32);
  Loader direct(data::drawn_digits(1, 100), with(32, 0)),
      threaded(data::drawn_digits(1, 100), with(32, 2));
  for (int i = 0; i < 12; ++i) {
    const std::int64_t n = direct.next(input.data(), target.data());
    CHECK(threaded.next(other.data(), target2.data()) == n);
    CHECK(std::equal(input.begin(), input.begin() + n * 784, other.begin()));
    CHECK(std::equal(target.begin(), target.begin() + n, target2.begin()));
  }
}

namespace {

// Images 3 x 8 x 10 whose byte k is k, so that a transformed image shows where each byte came from.
std::shared_ptr<data::Dataset> numbered_images(std::int64_t count) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count) * 240);
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::uint8_t>(k % 240 + 1);
  return data::from_tensors(Tensor::from(bytes, {count, 3, 8, 10}),
                            zeros({count}, DType::Int64).eval(), 2);
}

// The augmented samples of an epoch, sorted by index.
std::vector<std::vector<std::uint8_t>> shown(const LoaderOptions& options, std::int64_t epoch,
                                             std::int64_t first = 0) {
  constexpr std::int64_t kCount = 37;
  Loader loader(numbered_images(kCount), options);
  const std::vector<std::int64_t> order = data::epoch_order(options.seed, epoch, kCount);
  loader.set_state({options.seed, epoch, first});
  std::vector<std::vector<std::uint8_t>> out(kCount);
  std::vector<std::uint8_t> room(static_cast<std::size_t>(options.batch) * 240);
  std::vector<std::int64_t> target(static_cast<std::size_t>(options.batch));
  for (std::int64_t at = first; const std::int64_t n = loader.next(room.data(), target.data());
       at += n)
    for (std::int64_t k = 0; k < n; ++k)
      out[static_cast<std::size_t>(order[static_cast<std::size_t>(at + k)])].assign(
          room.begin() + k * 240, room.begin() + (k + 1) * 240);
  return out;
}

}  // namespace

TEST_CASE("loader: augmented images depend on seed, epoch and sample only") {
  LoaderOptions options;
  options.batch = 5, options.scale = false, options.seed = 3;
  options.augment = {2, true, 3};
  options.workers = 0;
  const auto first = shown(options, 0);
  for (const int workers : {1, 3}) {
    options.workers = workers;
    CHECK(shown(options, 0) == first);
  }
  options.batch = 7;
  CHECK(shown(options, 0) == first);
  auto resumed = shown(options, 0, 14);  // resumed in the middle of an epoch
  const std::vector<std::int64_t> order = data::epoch_order(3, 0, 37);
  for (std::size_t k = 14; k < order.size(); ++k) {
    const auto example = static_cast<std::size_t>(order[k]);
    CHECK(resumed[example] == first[example]);
  }
  CHECK(shown(options, 1) != first);
  options.seed = 4;
  CHECK(shown(options, 0) != first);
}

TEST_CASE("loader: images are cropped, mirrored and cut out as requested") {
  LoaderOptions options;
  options.batch = 8, options.scale = false, options.mean = 0.5;
  const auto byte = [](const std::vector<std::uint8_t>& p, std::int64_t y, std::int64_t x) {
    return p[static_cast<std::size_t>(y * 10 + x)];
  };
  options.augment = {0, true, 0};
  int mirrored = 0;
  for (const auto& image : shown(options, 0)) {
    const bool is = byte(image, 0, 0) == 10;
    mirrored += is;
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 10; ++x) CHECK(byte(image, y, x) == 1 + y * 10 + (is ? 9 - x : x));
    CHECK(image[80] == (is ? 90 : 81));  // every channel alike
  }
  CHECK(mirrored > 8);
  CHECK(mirrored < 29);
  options.augment = {2, false, 0};
  std::set<std::pair<int, int>> places;
  for (const auto& image : shown(options, 0)) {
    const int middle = byte(image, 4, 5) - 1;  // never black with a margin of 2
    const int dy = middle / 10 - 4, dx = middle % 10 - 5;
    places.insert({dy, dx});
    CHECK(std::abs(dy) <= 2);
    CHECK(std::abs(dx) <= 2);
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 10; ++x) {
        const bool inside = y + dy >= 0 && y + dy < 8 && x + dx >= 0 && x + dx < 10;
        CHECK(byte(image, y, x) == (inside ? 1 + (y + dy) * 10 + x + dx : 0));
      }
  }
  CHECK(places.size() > 12);
  options.augment = {0, false, 4};
  for (const auto& image : shown(options, 0)) {
    int blank = 0;
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 10; ++x) blank += byte(image, y, x) != 1 + y * 10 + x;
    CHECK(blank >= 4);
    CHECK(blank <= 16);
    CHECK(std::count(image.begin(), image.begin() + 80, 128) >= blank);
  }
}

TEST_CASE("loader: only uint8 images are augmented") {
  LoaderOptions options;
  options.augment.flip = true;
  const Tensor rows = zeros({4, 6}), targets = zeros({4}, DType::Int64);
  CHECK_THROWS_AS(Loader(data::from_tensors(rows.eval(), targets.eval(), 2), options), ValueError);
  CHECK_THROWS_WITH_AS(data::from_tensors(rows, Tensor()),
                       doctest::Contains("from_tensors: the target has no value"), ValueError);
  options.augment = {-1, false, 0};
  CHECK_THROWS_AS(Loader(numbered_images(4), options), ValueError);
  options.augment = {99, false, 0};  // would shift whole images away
  CHECK_THROWS_WITH_AS(Loader(numbered_images(4), options), doctest::Contains("crop=99"),
                       ValueError);
  options.augment = {0, false, 99};
  CHECK_THROWS_WITH_AS(Loader(numbered_images(4), options), doctest::Contains("cutout=99"),
                       ValueError);
}
