// Weighted sampling: probabilities, with and without replacement, seeds, resuming, augmentation of
// samples that are drawn several times, and weights that balance classes.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tenon/compose.h>
#include <tenon/error.h>
#include <tenon/ops.h>

#include "data/epochs.h"
#include "data/large_samples.h"
#include "data/samples/sampling.h"

namespace {

using namespace tenon;

// The sample's number, its class its number modulo 3, and how it was augmented.
std::shared_ptr<data::Dataset> numbers(std::int64_t count) {
  return data::map(data::from_function(count, {.input_shape = {2}, .classes = 3},
                                       [](data::Sample& sample) {
                                         sample.input<float>()[0] =
                                             static_cast<float>(sample.index());
                                         sample.target<std::int64_t>()[0] = sample.index() % 3;
                                       }),
                   [](data::Sample& sample, data::SampleRandom& random) {
                     sample.input<float>()[1] = static_cast<float>(random.uniform());
                   });
}

// The inputs of several epochs from a position on.
std::vector<float> loaded(const data::LoaderOptions& o, const data::LoaderState& from,
                          int epoch_count, std::int64_t count = 30) {
  data::Loader loader(numbers(count), o);
  loader.set_state(from);
  return epochs::inputs<float>(loader, epoch_count);
}

std::vector<double> rising(std::int64_t count) {
  std::vector<double> weights;
  for (std::int64_t k = 0; k < count; ++k) weights.push_back(static_cast<double>(k % 5));
  return weights;
}

}  // namespace

TEST_CASE("sampling: samples are drawn in proportion to their weights") {
  const std::vector<double> weights{1, 0, 3, 0.5, 5.5};
  constexpr std::int64_t kDraws = 200'000;
  for (const double unit : {1.0, 1e-300, 1e300}) {
    std::vector<double> scaled;
    for (const double weight : weights) scaled.push_back(weight * unit);
    const data::WeightedDraws draws({.weights = scaled, .count = kDraws}, 5);
    std::array<int, 5> counts{};
    for (const std::int64_t k : draws.of(7, 0).numbers) ++counts[static_cast<std::size_t>(k)];
    CHECK(counts[1] == 0);
    for (std::size_t k = 0; k < 5; ++k) {
      // Five standard deviations of a binomial distribution.
      const double p = weights[k] / 10, sigma = std::sqrt(kDraws * p * (1 - p));
      CHECK(std::abs(counts[k] - kDraws * p) <= 5 * sigma);
    }
  }
}

TEST_CASE("sampling: without replacement no sample is drawn twice, heavy ones first") {
  const std::vector<double> weights{1, 0, 3, 0.5, 5.5};
  // The first of two draws has the probability of its weight, the second of what is left.
  std::array<int, 5> first{}, second{};
  constexpr int kEpochs = 40'000;
  const data::WeightedDraws draws({.weights = weights, .count = 2, .replacement = false}, 5);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const data::EpochSamples drawn = draws.of(3, epoch);
    REQUIRE(drawn.numbers.size() == 2);
    REQUIRE(drawn.numbers[0] != drawn.numbers[1]);
    ++first[static_cast<std::size_t>(drawn.numbers[0])];
    ++second[static_cast<std::size_t>(drawn.numbers[1])];
  }
  for (std::size_t k = 0; k < 5; ++k) {
    double p = 0;
    for (std::size_t other = 0; other < 5; ++other)
      if (other != k) p += weights[other] / 10 * weights[k] / (10 - weights[other]);
    for (const auto& [counts, expected] : {std::pair{first[k], weights[k] / 10}, {second[k], p}})
      CHECK(std::abs(counts - kEpochs * expected) <=
            5 * std::sqrt(kEpochs * expected * (1 - expected)));
  }
  // All that can be drawn, once each, for sizes around a power of two.
  for (const std::int64_t size : {1, 2, 3, 7, 8, 9, 1000}) {
    const std::vector<double> all(static_cast<std::size_t>(size), 0.3);
    const data::EpochSamples drawn =
        data::WeightedDraws({.weights = all, .replacement = false}, size).of(1, 4);
    CHECK(std::set(drawn.numbers.begin(), drawn.numbers.end()).size() ==
          static_cast<std::size_t>(size));
  }
}

TEST_CASE("sampling: an epoch depends on seed and epoch alone, whatever the threads") {
  for (const bool replacement : {true, false}) {
    data::LoaderOptions o;
    o.batch = 4;
    o.sampling = {
        .weights = rising(30), .count = replacement ? 50 : 20, .replacement = replacement};
    o.workers = 0;
    o.seed = 5;
    const std::vector<float> expected = loaded(o, {.seed = 5}, 3);
    CHECK(expected.size() == static_cast<std::size_t>(2 * 3 * o.sampling.count));
    for (const int workers : {1, 2, 5}) {
      o.workers = workers;
      CHECK(loaded(o, {.seed = 5}, 3) == expected);
    }
    // Resumed in the second epoch, after two batches.
    const std::vector<float> resumed = loaded(o, {.seed = 5, .epoch = 1, .position = 8}, 2);
    CHECK(std::equal(resumed.begin(), resumed.end(), expected.begin() + 2 * (o.sampling.count + 8),
                     expected.end()));
    CHECK(loaded(o, {.seed = 6}, 3) != expected);
    const auto half = expected.begin() + 2 * o.sampling.count;
    CHECK_FALSE(std::equal(expected.begin(), half, half));
  }
}

TEST_CASE("sampling: a sample that is drawn again is augmented anew") {
  data::LoaderOptions o;
  o.batch = 8;
  o.workers = 2;
  o.sampling = {.weights = {1, 2, 3}, .count = 60};
  const std::vector<float> all = loaded(o, {}, 1, 3);
  std::map<float, std::set<float>> found;
  for (std::size_t k = 0; k < all.size(); k += 2) found[all[k]].insert(all[k + 1]);
  std::size_t distinct = 0;
  for (const auto& [number, values] : found) distinct += values.size();
  CHECK(found.size() == 3);
  CHECK(distinct == 60);
  // The first time as without weights.
  const auto set = numbers(3);
  std::array<float, 2> plain{};
  std::int64_t label = 0;
  const std::array<std::int64_t, 1> one{2};
  set->get_augmented(one, 0, 0, plain.data(), &label);
  CHECK(found[2].contains(plain[1]));
}

TEST_CASE("sampling: flips and crops of the loader differ too for a sample that is drawn again") {
  const Tensor images = reshape(arange(0, 3 * 64), {3, 1, 8, 8});
  const auto set = data::from_tensors(cast(images, DType::UInt8).compute(),
                                      Tensor::from(std::vector<std::int64_t>{0, 1, 2}, {3}));
  data::LoaderOptions o;
  o.batch = 40;
  o.scale = false;
  o.augment.crop = 4;
  o.sampling = {.weights = {0, 0, 1}, .count = 40};
  data::Loader loader(set, o);
  data::Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(batch.size == 40);
  const auto pixels = batch.input.to_vector<std::uint8_t>();
  std::set<std::vector<std::uint8_t>> distinct;
  for (auto image = pixels.begin(); image != pixels.end(); image += 64)
    distinct.insert({image, image + 64});
  CHECK(distinct.size() > 20);
}

TEST_CASE("sampling: the length of an epoch") {
  data::LoaderOptions o;
  o.batch = 8;
  o.sampling = {.weights = rising(30)};
  const auto set = numbers(30);
  CHECK(data::Loader(set, o).epoch_size() == 30);
  o.sampling.count = 100;
  CHECK(data::Loader(set, o).epoch_size() == 100);
  CHECK(data::Loader(set, o).batches() == 13);
  o.drop_last = true;
  CHECK(data::Loader(set, o).batches() == 12);
  o.sampling.count = 5;
  CHECK_THROWS_AS(data::Loader(set, o), ValueError);
  o.drop_last = false;
  CHECK(data::Loader(set, o).batch() == 5);
  CHECK(data::Loader(set, {}).epoch_size() == 30);
}

TEST_CASE("sampling: weights that do not fit are refused") {
  const auto set = numbers(3);
  const auto refused = [&](data::WeightedSampling how, const char* text) {
    data::LoaderOptions o;
    o.sampling = std::move(how);
    CHECK_THROWS_WITH_AS(data::Loader(set, o), doctest::Contains(text), ValueError);
  };
  refused({.weights = {1, 2}}, "2 weights for 3 samples");
  refused({.weights = {1, -2, 1}}, "weights[1] is -2");
  refused({.weights = {1, 1, std::numeric_limits<double>::infinity()}}, "weights[2] is inf");
  refused({.weights = {1, std::nan(""), 1}}, "weights[1] is nan");
  refused({.weights = {0, 0, 0}}, "all weights are 0");
  refused({.weights = {1, 1, 1}, .count = -1}, "is -1");
  refused({.weights = {1, 1, 1}, .count = std::int64_t{1} << 40}, "must be from 1 to 4294967296");
  refused({.count = 5}, "0 weights for 3 samples");
  refused({.weights = {1, 0, 1}, .count = 3, .replacement = false},
          "draws 3 samples without replacement, and 2 samples have a weight above 0");
  data::LoaderOptions o;
  o.sampling.weights = {1, 1, 1};
  o.shuffle = false;
  CHECK_THROWS_WITH_AS(data::Loader(set, o), doctest::Contains("shuffle is off"), ValueError);
}

TEST_CASE("sampling: balanced weights draw every class equally often") {
  const std::vector<std::int64_t> classes{0, 0, 0, 0, 0, 0, 1, 1, 3, data::kIgnoredTarget};
  const auto set = data::from_tensors(zeros({10, 1}).compute(), Tensor::from(classes, {10}));
  const std::vector<double> weights = data::class_balanced_weights(*set);
  CHECK(weights ==
        std::vector<double>{1.0 / 6, 1.0 / 6, 1.0 / 6, 1.0 / 6, 1.0 / 6, 1.0 / 6, 0.5, 0.5, 1, 0});
  std::array<int, 4> counts{};
  const data::WeightedDraws draws({.weights = weights, .count = 30'000}, 10);
  for (const std::int64_t k : draws.of(1, 0).numbers)
    ++counts[static_cast<std::size_t>(classes[static_cast<std::size_t>(k)])];
  for (const std::size_t k : {0, 1, 3}) CHECK(std::abs(counts[k] - 10'000) < 5 * 82);
  const auto values = data::from_tensors(zeros({4, 1}).compute(), zeros({4, 1}).compute());
  CHECK_THROWS_WITH_AS(data::class_balanced_weights(*values),
                       doctest::Contains("must be one class"), ValueError);
  const auto outside =
      data::from_function(2, {.input_shape = {1}, .classes = 2},
                          [](data::Sample& sample) { sample.target<std::int64_t>()[0] = 2; });
  CHECK_THROWS_WITH_AS(data::class_balanced_weights(*outside),
                       doctest::Contains("sample 1 has class 2, must be from 0 to 1"), ValueError);
}

TEST_CASE("sampling: labels of large inputs are read a few samples at a time") {
  const LargeSamples set = large_samples_of_two_classes();
  const std::vector<double> weights = data::class_balanced_weights(set);
  CHECK(weights == std::vector<double>(50, 1.0 / 25));
  CHECK(set.most() <= std::size_t{32} << 20);
}
