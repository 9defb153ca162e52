// Datasets made of functions and of other datasets: facts, samples, names, notes, broken images,
// augmentation and random numbers of compositions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <tenon/compose.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/io.h>
#include <tenon/ops.h>

#include "data/epochs.h"
#include "data/samples/image_jobs.h"
#include "data/samples/stand_ins.h"
#include "io/folder.h"

namespace {

using namespace tenon;
using data::Dataset;

using Set = std::shared_ptr<const Dataset>;

// Sample k is {first + k, k}, its class k % 3; with a name, a note and a broken image.
class Named : public data::DatasetWith<data::Provenance, data::AugmentedSamples> {
 public:
  Named(std::int64_t size, float first, std::string name)
      : DatasetWith({.input_shape = {2},
                     .classes = 3,
                     .class_names = {"a", "b", "c"},
                     .counted_targets = 0.5,
                     .description = name,
                     .in_memory = true}),
        size_(size),
        first_(first),
        name_(std::move(name)) {}
  std::int64_t size() const override { return size_; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    get_augmented(indices, 0, 0, inputs, targets);
  }
  // The seed and the epoch are added to the second number.
  void get_augmented(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch,
                     void* inputs, void* targets) const override {
    auto* x = static_cast<float*>(inputs);
    auto* y = static_cast<std::int64_t*>(targets);
    for (const std::int64_t k : indices) {
      *x++ = first_ + static_cast<float>(k);
      *x++ = static_cast<float>(static_cast<std::int64_t>(seed % 1000) + 10'000 * epoch);
      *y++ = k % 3;
    }
  }
  std::string sample_name(std::int64_t index) const override {
    return name_ + "/" + std::to_string(index);
  }
  Notes notes() const override { return {{"one line was skipped", 1, name_}}; }
  std::vector<std::string> broken() const override { return {name_ + "/broken"}; }

 private:
  std::int64_t size_;
  float first_;
  std::string name_;
};

// Counts how often it is asked what it can do.
class Asked : public Dataset {
 public:
  Asked() : Dataset({.input_shape = {1}, .classes = 2}) {}
  std::int64_t size() const override { return 1; }
  void get(std::span<const std::int64_t>, void*, void*) const override {}
  mutable int questions = 0;

 private:
  void capabilities(data::Capabilities&) const override { ++questions; }
};

// Odd samples cannot be read, and the next one replaces them. Counts how often all are listed.
class Unreadable : public data::DatasetWith<data::Provenance, data::StandIns> {
 public:
  Unreadable() : DatasetWith({.input_shape = {1}, .classes = 2}) {}
  std::int64_t size() const override { return 10; }
  void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
    auto* x = static_cast<float*>(inputs);
    auto* y = static_cast<std::int64_t*>(targets);
    for (const std::int64_t k : indices) {
      if (k % 2 != 0) broken_.insert(k);
      *x++ = static_cast<float>((k + k % 2) % 10);
      *y++ = 0;
    }
  }
  std::vector<std::string> broken() const override {
    ++lists;
    std::vector<std::string> out;
    for (const std::int64_t k : broken_) out.push_back(sample_name(k));
    return out;
  }
  bool replaces_broken() const override { return true; }
  bool is_broken(std::int64_t index) const override { return broken_.contains(index); }
  mutable int lists = 0;

 private:
  mutable std::set<std::int64_t> broken_;
};

Set named(std::int64_t size, float first, const std::string& name) {
  return std::make_shared<Named>(size, first, name);
}

struct Samples {
  std::vector<float> x{};
  std::vector<std::int64_t> y{};
  bool operator==(const Samples&) const = default;
};

std::vector<std::int64_t> all_of(const Dataset& set) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(set.size()));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

Samples room_for(const Dataset& set, std::size_t count) {
  return {std::vector<float>(count * static_cast<std::size_t>(set.input_shape().numel())),
          std::vector<std::int64_t>(count)};
}

Samples get(const Dataset& set, const std::vector<std::int64_t>& numbers) {
  Samples out = room_for(set, numbers.size());
  set.get(numbers, out.x.data(), out.y.data());
  return out;
}

Samples augmented(const Dataset& set, const std::vector<std::int64_t>& numbers, std::uint64_t seed,
                  std::int64_t epoch) {
  Samples out = room_for(set, numbers.size());
  set.get_augmented(numbers, seed, epoch, out.x.data(), out.y.data());
  return out;
}

// All batches of several epochs, in order.
std::vector<float> loaded(const Set& set, int workers, const data::LoaderState& from,
                          int epoch_count, data::LoaderOptions o = {}) {
  o.batch = 4, o.workers = workers, o.seed = from.seed;
  data::Loader loader(set, o);
  loader.set_state(from);
  return epochs::inputs<float>(loader, epoch_count);
}

}  // namespace

TEST_CASE("compose: a dataset needs facts, a size and get()") {
  class Squares : public Dataset {
   public:
    Squares()
        : Dataset({.input_shape = {1}, .target_shape = {1}, .target_dtype = DType::Float32}) {}
    std::int64_t size() const override { return 5; }
    void get(std::span<const std::int64_t> indices, void* inputs, void* targets) const override {
      auto *x = static_cast<float*>(inputs), *y = static_cast<float*>(targets);
      for (const std::int64_t k : indices)
        *x++ = static_cast<float>(k), *y++ = static_cast<float>(k * k);
    }
  };
  const Squares set;
  CHECK(set.describe() == "5 samples");
  CHECK(set.sample_name(0) == "sample 1");
  CHECK(set.class_names().empty());
  CHECK(set.counted_targets() == 1);
  CHECK(set.views() == 1);
  CHECK(set.notes().empty());
  CHECK(set.broken().empty());
  CHECK(set.images() == nullptr);
  CHECK(set.table() == nullptr);
  CHECK_FALSE(set.in_memory());
  CHECK_FALSE(set.made_on_demand());
  CHECK_FALSE(set.is_augmented());
  CHECK(set.as<data::Provenance>() == nullptr);
  std::vector<float> x(2), y(2);
  set.get_augmented(std::vector<std::int64_t>{3, 2}, 1, 1, x.data(), y.data());
  CHECK(x == std::vector<float>{3, 2});
  CHECK(y == std::vector<float>{9, 4});
}

TEST_CASE("compose: a class offers the capabilities that it lists, and only these") {
  class Lines : public data::DatasetWith<data::Provenance> {
   public:
    Lines() : DatasetWith({.input_shape = {1}}) {}
    std::int64_t size() const override { return 1; }
    void get(std::span<const std::int64_t>, void*, void*) const override {}
    std::string sample_name(std::int64_t index) const override {
      return "line " + std::to_string(index);
    }
  };
  const Lines lines;
  CHECK(lines.as<data::Provenance>() == &lines);
  CHECK(lines.as<data::AugmentedSamples>() == nullptr);
  CHECK(lines.sample_name(3) == "line 3");
  CHECK(lines.notes().empty());
  CHECK(lines.broken().empty());
  CHECK(static_cast<const Dataset&>(lines).sample_name(3) == "line 3");
}

TEST_CASE("compose: a dataset of a function") {
  const auto set =
      data::from_function(10, {.input_shape = {2, 2}, .classes = 2}, [](data::Sample& sample) {
        std::fill_n(sample.input<float>().begin(), 4, static_cast<float>(sample.index()));
        sample.target<std::int64_t>()[0] = sample.index() % 2;
      });
  const Samples some = get(*set, {7, 2});
  CHECK(some.x == std::vector<float>{7, 7, 7, 7, 2, 2, 2, 2});
  CHECK(some.y == std::vector<std::int64_t>{1, 0});
  CHECK(set->class_names() == std::vector<std::string>{"0", "1"});
  const auto wrong = data::from_function(
      1, {.input_shape = {1}}, [](data::Sample& sample) { sample.input<double>()[0] = 1; });
  CHECK_THROWS_WITH_AS(get(*wrong, {0}), doctest::Contains("the input is float32, not float64"),
                       DTypeError);
  CHECK_THROWS_AS(data::from_function(-1, {}, [](data::Sample&) {}), ValueError);
  CHECK_THROWS_AS(data::from_function(1, {}, nullptr), ValueError);
}

TEST_CASE("compose: concat has the samples of one dataset after another") {
  const Set a = named(3, 0, "first"), b = named(2, 100, "second");
  const auto both = data::concat({a, b});
  CHECK(both->size() == 5);
  CHECK(both->describe() == "first; second");
  CHECK(both->class_names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(both->counted_targets() == 0.5);
  CHECK(both->info().in_memory);
  CHECK_FALSE(both->in_memory());  // it is augmented
  CHECK(both->sample_name(2) == "first/2");
  CHECK(both->sample_name(3) == "second/0");
  CHECK(both->notes().size() == 2);
  CHECK(both->broken() == std::vector<std::string>{"first/broken", "second/broken"});
  const Samples some = get(*both, {4, 0, 3, 3});
  CHECK(some.x == std::vector<float>{101, 0, 0, 0, 100, 0, 100, 0});
  CHECK(some.y == std::vector<std::int64_t>{1, 0, 0, 0});
  // Augmentation goes through: of the first set with the caller's seed, of others with another.
  CHECK(both->is_augmented());
  const Samples drawn = augmented(*both, {1, 4}, 5, 2);
  CHECK(drawn.x[1] == 20'005);
  CHECK(drawn.x[3] != 20'005);
  CHECK(drawn.x[3] >= 20'000);
  // A dataset that occurs twice reports its notes once.
  CHECK(data::concat({a, a})->notes().size() == 1);
}

TEST_CASE("compose: concat refuses samples that do not belong together") {
  const Set a = named(3, 0, "first");
  const auto other = [](data::DatasetInfo info) {
    return data::from_function(1, std::move(info), [](data::Sample&) {});
  };
  CHECK_THROWS_AS(data::concat({}), ValueError);
  CHECK_THROWS_AS(data::concat({a, nullptr}), ValueError);
  CHECK_THROWS_AS(data::concat({a, other({.input_shape = {3}, .classes = 3})}), ValueError);
  const std::vector<std::string> names{"a", "b", "c"};
  CHECK_THROWS_WITH_AS(
      data::concat({a, other({.input_shape = {3}, .classes = 3, .class_names = names})}),
      doctest::Contains("samples are float32 [3] with targets int64 []"), ShapeError);
  CHECK_THROWS_AS(data::concat({a, other({.input_shape = {2},
                                          .target_dtype = DType::Float32,
                                          .classes = 3,
                                          .class_names = names})}),
                  ShapeError);
  CHECK_THROWS_WITH_AS(
      data::concat({a, other({.input_shape = {2}, .classes = 2, .class_names = {"a", "x"}})}),
      doctest::Contains("class 1 is 'x' in 1 sample and 'b' in first"), ValueError);
  CHECK(data::concat({other({.input_shape = {2}, .classes = 3, .class_names = {"a"}}),
                      other({.input_shape = {2}, .classes = 2, .class_names = {"a", "x"}})})
            ->classes() == 3);
  // Fewer classes with the same names are not a contradiction.
  CHECK(data::concat({other({.input_shape = {2}, .classes = 2, .class_names = {"a", "b"}}), a})
            ->classes() == 3);
}

TEST_CASE("compose: subset has samples by index, with the augmentation of the whole") {
  const Set whole = named(10, 0, "all");
  const auto some = data::subset(whole, {7, 1, 7});
  CHECK(some->size() == 3);
  CHECK(some->describe() == "3 of (all)");
  CHECK(some->sample_name(1) == "all/1");
  CHECK(some->notes().size() == 1);
  CHECK(some->broken() == whole->broken());
  CHECK(get(*some, {0, 1, 2}) == get(*whole, {7, 1, 7}));
  CHECK(augmented(*some, {2, 1}, 9, 3) == augmented(*whole, {7, 1}, 9, 3));
  CHECK(data::subset(whole, {})->size() == 0);
  CHECK_THROWS_WITH_AS(data::subset(whole, {3, 10}),
                       doctest::Contains("no index 10 in all; indices are from 0 to 9"),
                       ValueError);
  CHECK_THROWS_AS(data::subset(whole, {-1}), ValueError);
  CHECK_THROWS_AS(data::subset(nullptr, {0}), ValueError);
}

TEST_CASE("compose: split_part divides any dataset, by class and by group") {
  const auto both = data::concat({named(30, 0, "a"), named(30, 100, "b")});
  const data::SplitOptions how{.test = 0.2, .validation = 0.25, .seed = 4};
  std::vector<float> all;
  for (const auto& [part, count] : {std::pair{data::Split::Train, 36},
                                    {data::Split::Validation, 12},
                                    {data::Split::Test, 12}}) {
    const auto own = data::split_part(both, part, how);
    REQUIRE(own->size() == count);
    const Samples samples = get(*own, all_of(*own));
    std::vector<int> of_class(3);
    for (const std::int64_t y : samples.y) ++of_class[static_cast<std::size_t>(y)];
    CHECK(of_class == std::vector<int>(3, count / 3));
    for (std::size_t k = 0; k < samples.x.size(); k += 2) all.push_back(samples.x[k]);
    CHECK(own->sample_name(0) == (samples.x[0] >= 100 ? "b/" : "a/") +
                                     std::to_string(static_cast<int>(samples.x[0]) % 100));
    CHECK(own->is_augmented());
    CHECK(own->notes().size() >= 2);
  }
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(all.size() == 60);
  // Six groups of ten: a part has whole groups only, and a note says so.
  std::vector<std::int64_t> groups;
  for (std::int64_t k = 0; k < 60; ++k) groups.push_back(k / 10);
  const auto grouped = data::split_part(both, data::Split::Test, {.test = 0.34}, groups);
  CHECK(grouped->size() == 20);
  CHECK(grouped->notes().size() == 3);
  CHECK(data::split_part(both, data::Split::Validation, {.validation = 0}) == nullptr);
  CHECK_THROWS_AS(data::split_part(both, data::Split::Train, {}, {1, 2}), ShapeError);
  CHECK_THROWS_AS(data::split_part(both, data::Split::Train, {.group = "x"}), ValueError);
  CHECK_THROWS_AS(data::split_part(nullptr, data::Split::Train, {}), ValueError);
}

TEST_CASE("compose: map changes inputs and targets") {
  const Set whole = named(10, 0, "all");
  const auto changed = data::map(whole, [](data::Sample& sample) {
    sample.input<float>()[0] += 0.5f;
    sample.target<std::int64_t>()[0] = 2 - sample.target<std::int64_t>()[0];
  });
  CHECK(changed->size() == 10);
  CHECK(changed->describe() == "all");
  CHECK(changed->sample_name(4) == "all/4");
  CHECK(changed->notes().size() == 1);
  CHECK(changed->broken() == whole->broken());
  CHECK_FALSE(changed->in_memory());
  const Samples one = get(*changed, {4});
  CHECK(one.x[0] == 4.5f);
  CHECK(one.y[0] == 1);
  // After the dataset's own augmentation.
  CHECK(augmented(*changed, {4}, 3, 1).x == std::vector<float>{4.5f, 10'003});
  const auto plain = data::map(data::from_function(2, {.input_shape = {1}}, [](data::Sample&) {}),
                               [](data::Sample&) {});
  CHECK_FALSE(plain->is_augmented());
  CHECK_THROWS_AS(data::map(nullptr, [](data::Sample&) {}), ValueError);
  CHECK_THROWS_AS(data::map(whole, data::SampleFunction()), ValueError);
}

TEST_CASE("compose: a question about a dataset made of others reaches each of them once") {
  const auto asked = std::make_shared<Asked>();
  Set all = asked;
  for (int k = 0; k < 8; ++k) all = data::subset(all, {0});
  asked->questions = 0;
  CHECK_FALSE(all->is_augmented());
  CHECK(asked->questions == 1);
  CHECK(all->as<data::GeneratedSamples>() == nullptr);
  CHECK(asked->questions == 2);
  CHECK(all->sample_name(0) == "sample 1");
  CHECK(asked->questions == 3);
}

TEST_CASE("compose: map to other shapes and types") {
  const Set whole = named(10, 0, "all");
  const auto sums = data::map(whole,
                              {.input_shape = {1},
                               .input_dtype = DType::Float64,
                               .target_shape = {2},
                               .target_dtype = DType::Float32},
                              [](const data::Sample& from, data::Sample& to) {
                                const auto x = from.input<float>();
                                to.input<double>()[0] = static_cast<double>(x[0]) + 1;
                                to.target<float>()[0] = x[0];
                                to.target<float>()[1] = static_cast<float>(from.index());
                              });
  CHECK(sums->describe() == "all");
  CHECK(sums->sample_name(4) == "all/4");
  CHECK(sums->classes() == 0);
  std::vector<double> x(2);
  std::vector<float> y(4);
  sums->get(std::vector<std::int64_t>{8, 2}, x.data(), y.data());
  CHECK(x == std::vector<double>{9, 3});
  CHECK(y == std::vector<float>{8, 8, 2, 2});
  // One conversion behind another, in one thread.
  const auto back =
      data::map(sums, {.input_shape = {1}}, [](const data::Sample& from, data::Sample& to) {
        to.input<float>()[0] = static_cast<float>(from.input<double>()[0]);
        to.target<std::int64_t>()[0] = 1;
      });
  CHECK(get(*back, {8, 2}).x == std::vector<float>{9, 3});
}

TEST_CASE("compose: random numbers of map depend on seed, epoch and sample alone") {
  const auto noisy =
      data::map(named(23, 0, "all"), [](data::Sample& sample, data::SampleRandom& random) {
        sample.input<float>()[1] = static_cast<float>(random.uniform());
      });
  CHECK(noisy->is_augmented());
  CHECK(get(*noisy, all_of(*noisy)) == augmented(*noisy, all_of(*noisy), 0, 0));
  CHECK(augmented(*noisy, {1}, 0, 1) != augmented(*noisy, {1}, 0, 0));
  CHECK(augmented(*noisy, {1}, 1, 0) != augmented(*noisy, {1}, 0, 0));
  const std::vector<float> expected = loaded(noisy, 0, {.seed = 3}, 2);
  CHECK(expected.size() == 2 * 2 * 23);
  for (const int workers : {1, 2, 5}) CHECK(loaded(noisy, workers, {.seed = 3}, 2) == expected);
  const std::vector<float> resumed = loaded(noisy, 2, {.seed = 3, .epoch = 0, .position = 8}, 2);
  CHECK(std::equal(resumed.begin(), resumed.end(), expected.begin() + 2 * 8, expected.end()));
}

TEST_CASE("compose: a subset of a map is the map of a subset but for its random numbers") {
  const Set whole = named(10, 0, "all");
  const auto add = [](data::Sample& sample) { sample.input<float>()[0] += 0.5f; };
  const std::vector<std::int64_t> some{4, 9, 1};
  const auto one = data::subset(data::map(whole, add), some),
             other = data::map(data::subset(whole, some), add);
  CHECK(get(*one, all_of(*one)) == get(*other, all_of(*other)));
  CHECK(augmented(*one, all_of(*one), 2, 3) == augmented(*other, all_of(*other), 2, 3));
  CHECK(one->sample_name(1) == other->sample_name(1));
  // A subset keeps the identity of a sample for its random numbers; a map counts its own samples.
  const auto noise = [](data::Sample& sample, data::SampleRandom& random) {
    sample.input<float>()[0] = static_cast<float>(random.uniform());
  };
  const auto noisy = data::map(whole, noise);
  CHECK(augmented(*data::subset(noisy, some), {0, 1, 2}, 2, 3) == augmented(*noisy, some, 2, 3));
  CHECK(augmented(*data::map(data::subset(whole, some), noise), {0}, 2, 3).x[0] ==
        augmented(*noisy, {0}, 2, 3).x[0]);
}

TEST_CASE("compose: deep compositions load alike with any number of threads") {
  const Set a = named(9, 0, "a"), b = named(7, 50, "b");
  const auto mix = data::concat({data::subset(data::concat({a, b}), {15, 3, 8, 9, 0}),
                                 data::map(b, [](data::Sample& sample, data::SampleRandom& random) {
                                   sample.input<float>()[0] +=
                                       static_cast<float>(random.below(1000));
                                 })});
  CHECK(mix->size() == 12);
  CHECK(mix->sample_name(0) == "b/6");
  CHECK(mix->sample_name(5) == "b/0");
  const std::vector<float> expected = loaded(mix, 0, {.seed = 8}, 3);
  for (const int workers : {1, 3, 7}) CHECK(loaded(mix, workers, {.seed = 8}, 3) == expected);
}

TEST_CASE("compose: image files keep names, checksums, broken images and augmentation") {
  const TestFolder dir;
  const std::string folder = dir / "pets";
  for (const char* kind : {"cat", "dog"}) {
    std::filesystem::create_directories(folder + "/" + kind);
    for (int k = 0; k < 3; ++k) {
      io::Image image{20, 20, 3, std::vector<std::uint8_t>(20 * 20 * 3)};
      for (std::size_t i = 0; i < image.pixels.size(); ++i)
        image.pixels[i] = static_cast<std::uint8_t>(i * 7 + static_cast<std::size_t>(k) * 31 +
                                                    static_cast<std::size_t>(kind[0]));
      io::save_png(folder + "/" + kind + "/" + std::to_string(k) + ".png", image);
    }
  }
  io::write_file(folder + "/cat/1.png", "no image");
  data::ImageOptions how;
  how.input = {3, 16, 16};
  how.augment = data::Transforms::parse("resized_crop,flip");
  how.broken_left_out = true;
  const Set whole = data::image_dataset(data::open_image_folder(folder, data::Split::All), how);
  const auto bytes = [](const Dataset& set, const std::vector<std::int64_t>& numbers,
                        std::int64_t epoch) {
    std::vector<std::uint8_t> x(numbers.size() * 3 * 16 * 16);
    std::vector<std::int64_t> y(numbers.size());
    set.get_augmented(numbers, 4, epoch, x.data(), y.data());
    return std::pair{x, y};
  };
  const auto some = data::subset(whole, {4, 1, 3});
  CHECK(bytes(*some, {0, 1, 2}, 2) == bytes(*whole, {4, 1, 3}, 2));
  CHECK(bytes(*some, {0}, 3) != bytes(*some, {0}, 2));
  CHECK(some->broken() == std::vector<std::string>{whole->images()->name(1)});
  const auto files = some->images();
  REQUIRE(files != nullptr);
  CHECK(files->size() == 3);
  CHECK(files->class_names() == std::vector<std::string>{"cat", "dog"});
  for (std::int64_t k = 0; k < 3; ++k) {
    const std::int64_t of_whole = std::vector<std::int64_t>{4, 1, 3}[static_cast<std::size_t>(k)];
    CHECK(files->checksum(k) == whole->images()->checksum(of_whole));
    CHECK(files->stored_size(k) == whole->images()->stored_size(of_whole));
    CHECK(files->bytes(k) == whole->images()->bytes(of_whole));
    CHECK(files->name(k) == some->sample_name(k));
    CHECK(files->label(k) == whole->images()->label(of_whole));
  }
  const auto twice = data::concat({whole, some});
  CHECK(twice->images()->size() == 9);
  CHECK(twice->images()->name(6) == whole->images()->name(4));
  // A changed sample cannot be made from its file alone.
  CHECK(data::map(whole, [](data::Sample&) {})->images() == nullptr);
  CHECK(data::map(whole, [](data::Sample&) {})->broken() == whole->broken());
  // A device makes the same images of a composition.
  const auto *job = whole->as<data::ImageJobs>(), *of_some = some->as<data::ImageJobs>();
  REQUIRE(of_some != nullptr);
  CHECK_FALSE(of_some->for_device());
  std::int64_t label = -1, expected = -2;
  CHECK(of_some->job(0, 4, 2, true, label).pixels == job->job(4, 4, 2, true, expected).pixels);
  CHECK(label == expected);
  CHECK(data::map(whole, [](data::Sample&) {})->as<data::ImageJobs>() == nullptr);
}

TEST_CASE("compose: a broken image of a part is replaced within the part") {
  const TestFolder dir;
  const std::string folder = dir / "pets";
  std::filesystem::create_directories(folder + "/cat");
  for (int k = 0; k < 6; ++k)
    io::save_png(folder + "/cat/" + std::to_string(k) + ".png",
                 {8, 8, 3, std::vector<std::uint8_t>(8 * 8 * 3, static_cast<std::uint8_t>(k + 1))});
  for (const char* name : {"1", "4", "5"})
    io::write_file(folder + "/cat/" + name + ".png", "no image");
  const auto files = data::open_image_folder(folder, data::Split::All);
  const auto first_bytes = [](const Dataset& set) {
    std::vector<std::uint8_t> out;
    for (std::int64_t k = 0; k < set.size(); ++k) {
      std::vector<std::uint8_t> x(3 * 8 * 8);
      std::int64_t y = -1;
      set.get(std::span(&k, 1), x.data(), &y);
      out.push_back(x.front());
    }
    return out;
  };
  using Bytes = std::vector<std::uint8_t>;
  using Names = std::vector<std::string>;
  const auto name = [&](std::int64_t k) { return files->name(k); };
  data::ImageOptions how;
  how.input = {3, 8, 8};
  const Set whole = data::image_dataset(files, how);
  const Set train = data::subset(whole, {1, 4, 3, 0}), test = data::subset(whole, {2, 5});
  CHECK(first_bytes(*train) == Bytes{4, 4, 4, 1});
  CHECK(first_bytes(*test) == Bytes{3, 3});
  // Each part has its own broken images.
  CHECK(train->broken() == Names{name(1), name(4)});
  CHECK(test->broken() == Names{name(5)});
  CHECK(whole->broken() == Names{name(1), name(4), name(5)});
  // Also through other compositions.
  CHECK(first_bytes(*data::subset(train, {1, 3})) == Bytes{1, 1});
  CHECK(first_bytes(*data::subset(data::concat({test, train}), {1, 2, 5})) == Bytes{1, 1, 1});
  const auto mapped = data::subset(data::map(whole, [](data::Sample&) {}), {4, 2});
  CHECK(first_bytes(*mapped) == Bytes{3, 3});
  CHECK(mapped->broken() == Names{name(4)});
  const auto part = data::split_part(whole, data::Split::Test, {.test = 0.5, .validation = 0.0});
  Names own;
  for (std::int64_t k = 0; k < part->size(); ++k) own.push_back(part->sample_name(k));
  const std::size_t readable =
      static_cast<std::size_t>(std::count_if(own.begin(), own.end(), [&](const std::string& each) {
        return each == name(0) || each == name(2) || each == name(3);
      }));
  if (readable > 0) {
    for (const std::uint8_t byte : first_bytes(*part))
      CHECK(std::find(own.begin(), own.end(), name(byte - 1)) != own.end());
    CHECK(part->broken().size() == own.size() - readable);
  }
  std::int64_t label = -1;
  const auto job = train->as<data::ImageJobs>()->job(0, 0, 0, true, label);
  CHECK(job.pixels.front() == 4);
  // A part without any image that can be decoded.
  CHECK_THROWS_WITH_AS(first_bytes(*data::subset(whole, {4, 1})),
                       doctest::Contains("2 images in a row cannot be decoded, the first is"),
                       FormatError);
  how.broken_left_out = true;
  const Set left_out = data::subset(data::image_dataset(files, how), {1, 2});
  std::vector<std::uint8_t> x(2 * 3 * 8 * 8);
  std::vector<std::int64_t> y(2);
  left_out->get(std::vector<std::int64_t>{0, 1}, x.data(), y.data());
  CHECK(y == std::vector<std::int64_t>{data::kIgnoredTarget, 0});
  CHECK(x.front() == 0);
  CHECK(left_out->broken() == Names{name(1)});
}

TEST_CASE("compose: reading a part asks for its own broken samples, not for a list of all") {
  const auto whole = std::make_shared<Unreadable>();
  const Set part = data::subset(data::concat({whole, whole}), {0, 3, 4, 15, 18});
  for (int time = 0; time < 2; ++time)
    for (std::int64_t k = 0; k < part->size(); ++k) {
      float x = -1;
      std::int64_t y = -1;
      part->get(std::span(&k, 1), &x, &y);
      CHECK(x == std::vector<float>{0, 4, 4, 8, 8}[static_cast<std::size_t>(k)]);
    }
  CHECK(whole->lists == 0);
  CHECK(part->broken() == std::vector<std::string>{"sample 4", "sample 6"});
}

TEST_CASE("compose: samples in memory stay there unless they are changed") {
  const Set numbers =
      data::from_tensors(zeros({4, 2}).compute(), zeros({4}, DType::Int64).compute());
  const auto computed =
      data::from_function(4, {.input_shape = {2}, .classes = 1}, [](data::Sample&) {});
  CHECK(data::subset(numbers, {1, 2})->in_memory());
  CHECK(data::concat({numbers, numbers})->in_memory());
  CHECK_FALSE(data::concat({numbers, computed})->in_memory());
  CHECK_FALSE(data::map(numbers, [](data::Sample&) {})->in_memory());
  CHECK_FALSE(data::map(data::drawn_digits(0, 3), [](data::Sample&) {})->made_on_demand());
}

TEST_CASE("compose: generated samples stay generated at once") {
  const auto digits = data::drawn_digits(0, 30);
  const auto some = data::subset(digits, {3, 20});
  CHECK(some->made_on_demand());
  CHECK_FALSE(some->in_memory());
  std::vector<std::uint8_t> x(30 * 28 * 28), y(2 * 28 * 28);
  std::vector<std::int64_t> labels(30);
  digits->get(all_of(*digits), x.data(), labels.data());
  CHECK(some->in_memory());
  some->get(std::vector<std::int64_t>{1, 0}, y.data(), labels.data());
  CHECK(std::memcmp(y.data(), x.data() + 20 * 28 * 28, 28 * 28) == 0);
  CHECK(std::memcmp(y.data() + 28 * 28, x.data() + 3 * 28 * 28, 28 * 28) == 0);
}
