// Random numbers of samples depend on the seed, the epoch and the sample only.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <tenon/error.h>
#include <tenon/sample_random.h>

namespace {

using namespace tenon;

class Noisy : public data::RandomDataset {
 public:
  Noisy() : RandomDataset({.input_shape = {3}, .classes = 5}) {}
  std::int64_t size() const override { return 50; }
  void get_sample(std::int64_t index, data::SampleRandom& random, void* input,
                  void* target) const override {
    auto* x = static_cast<float*>(input);
    const std::int64_t draws = 1 + random.below(4);  // a different number of draws per sample
    for (int k = 0; k < 3; ++k) {
      x[k] = static_cast<float>(index);
      for (std::int64_t d = 0; d < draws; ++d) x[k] += static_cast<float>(random.normal());
    }
    *static_cast<std::int64_t*>(target) = index % 5;
  }
};

// Samples of two epochs from `start` on.
std::vector<float> epochs(int workers, const data::LoaderState& start, std::int64_t batch = 8) {
  data::Loader loader(std::make_shared<Noisy>(),
                      {.batch = batch, .seed = start.seed, .workers = workers});
  loader.set_state(start);
  std::vector<float> out;
  for (int ends = 0; ends < 2;) {
    data::Batch b;
    if (!loader.next(b)) {
      ++ends;
      continue;
    }
    const auto values = b.input.to_vector<float>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

}  // namespace

TEST_CASE("sample random: workers, batches and a resume change no sample") {
  const std::vector<float> expected = epochs(0, {.seed = 3});
  CHECK(expected.size() == 2 * 50 * 3);
  for (const int workers : {1, 2, 5}) CHECK(epochs(workers, {.seed = 3}) == expected);
  CHECK(epochs(2, {.seed = 3}, 7) == expected);
  const std::vector<float> resumed = epochs(2, {.seed = 3, .epoch = 0, .position = 24});
  CHECK(std::equal(resumed.begin(), resumed.end(), expected.begin() + 24 * 3));
  CHECK(epochs(0, {.seed = 4}) != expected);
  // Another epoch draws other numbers for the same sample; get() uses seed 0 and the first epoch.
  const Noisy set;
  const std::array<std::int64_t, 1> one{7};
  std::array<float, 3> a{}, b{}, c{};
  std::int64_t label = 0;
  set.get_augmented(one, 0, 0, a.data(), &label);
  set.get_augmented(one, 0, 1, b.data(), &label);
  set.get(one, c.data(), &label);
  CHECK(label == 2);
  CHECK(a != b);
  CHECK(a == c);
  CHECK(set.is_augmented());
}

TEST_CASE("sample random: numbers have the right distribution") {
  constexpr int kCount = 40000;
  std::map<std::int64_t, int> below;
  double sum = 0, squares = 0, normal = 0, normal_squares = 0;
  int hits = 0;
  std::set<std::uint32_t> words;
  for (int k = 0; k < kCount; ++k) {
    data::SampleRandom random(5, k % 7, k / 7);  // one draw from each stream
    const double u = random.uniform();
    CHECK((u >= 0 && u < 1));
    sum += u, squares += u * u;
    const double n = random.normal();
    normal += n, normal_squares += n * n;
    ++below[random.below(5)];
    hits += random.chance(0.3);
    const double between = random.uniform(-2, 3);
    CHECK((between >= -2 && between < 3));
    words.insert(random());
  }
  CHECK(sum / kCount == doctest::Approx(0.5).epsilon(0.02));
  CHECK(squares / kCount == doctest::Approx(1.0 / 3).epsilon(0.02));
  CHECK(std::abs(normal / kCount) < 0.02);
  CHECK(normal_squares / kCount == doctest::Approx(1).epsilon(0.03));
  CHECK(below.size() == 5);
  for (const auto& [value, count] : below) CHECK(std::abs(count - kCount / 5) < 400);
  CHECK(std::abs(hits - 0.3 * kCount) < 400);
  CHECK(words.size() > kCount - 20);
}

TEST_CASE("sample random: is a generator for the standard library's distributions") {
  static_assert(std::uniform_random_bit_generator<data::SampleRandom>);
  data::SampleRandom a(1, 2, 3), b(1, 2, 3);
  CHECK(std::uniform_int_distribution<int>(1, 6)(a) == std::uniform_int_distribution<int>(1, 6)(b));
  CHECK(a.below(1) == 0);
  CHECK(a.below(std::int64_t{1} << 62) >= 0);
  for (const std::int64_t wrong : {0, -4})
    CHECK_THROWS_WITH_AS(a.below(wrong), doctest::Contains("at least 1"), ValueError);
}
