// Transforms of one's own in lists with Tenon's: order, random numbers, registration by name, and
// what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/sample_random.h>
#include <tenon/train.h>

#include "data/epochs.h"
#include "io/folder.h"

namespace {

using namespace tenon;
using data::SampleRandom;
using data::Transforms;
using io::Image;

// Columns 0 to 7 in red, rows in green.
Image board() {
  Image image{8, 8, 3, {}};
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x)
      for (const int value : {10 * x, 10 * y, 0})
        image.pixels.push_back(static_cast<std::uint8_t>(value));
  return image;
}

// Marks the first pixel.
data::Transform mark() {
  return data::transforms::function("mark", [](Image image, SampleRandom&) {
    image.pixels[2] = 200;
    return image;
  });
}

// Writes a random number into every blue value.
data::ImageFunction noise() {
  return [](Image image, SampleRandom& random) {
    for (std::size_t k = 2; k < image.pixels.size(); k += 3)
      image.pixels[k] = static_cast<std::uint8_t>(random.below(256));
    return image;
  };
}

// Registered once for all cases of this program: the factory counts its calls.
int made = 0;
void register_for_tests() {
  static const bool done = [] {
    data::register_transform({.name = "test_add",
                              .about = "adds VALUE to all pixels with probability CHANCE",
                              .parameters = {{.name = "VALUE", .usual = 1, .low = 0, .high = 100},
                                             {.name = "CHANCE", .usual = 1, .low = 0, .high = 1}},
                              .make = [](const std::vector<double>& values) -> data::ImageFunction {
                                ++made;
                                return [values](Image image, SampleRandom& random) {
                                  if (random.chance(values[1]))
                                    for (std::uint8_t& pixel : image.pixels)
                                      pixel = static_cast<std::uint8_t>(pixel + values[0]);
                                  return image;
                                };
                              }});
    data::register_transform({.name = "test_noise",
                              .about = "blue noise",
                              .make = [](const std::vector<double>&) { return noise(); }});
    return true;
  }();
  (void)done;
}

// Images of so many epochs in batches.
std::vector<std::uint8_t> loaded(const std::shared_ptr<data::Dataset>& set, int workers,
                                 const data::LoaderState& from, int epoch_count) {
  data::LoaderOptions o;
  o.batch = 6, o.workers = workers, o.scale = false, o.seed = from.seed;
  data::Loader loader(set, o);
  loader.set_state(from);
  return epochs::inputs<std::uint8_t>(loader, epoch_count);
}

}  // namespace

TEST_CASE("own transforms: a function takes its place in a list") {
  const auto flip = data::transforms::horizontal_flip(1);
  const Image in = board();
  const Image before = Transforms({mark(), flip}).apply(in, 8, 8, 0, 0, 0),
              behind = Transforms({flip, mark()}).apply(in, 8, 8, 0, 0, 0);
  // Marked and then mirrored, the pixel stands on the right; the other way round on the left.
  CHECK(before.pixels[7 * 3 + 2] == 200);
  CHECK(before.pixels[2] == 0);
  CHECK(behind.pixels[2] == 200);
  CHECK(behind.pixels[0] == 70);
  CHECK(Transforms({flip, mark()}).text() == "flip=1,mark");
  CHECK(Transforms({flip, mark()}).has("mark"));
}

TEST_CASE("own transforms: a function may change the size before a crop") {
  const auto doubled = data::transforms::function("doubled", [](Image image, SampleRandom&) {
    Image out{image.width, 2 * image.height, image.channels, image.pixels};
    out.pixels.insert(out.pixels.end(), image.pixels.begin(), image.pixels.end());
    return out;
  });
  const Image out =
      Transforms({doubled, data::transforms::center_crop()}).apply(board(), 8, 8, 0, 0, 0);
  CHECK(out.height == 8);
  CHECK(out.pixels[1] == 40);  // the green of row 4
  const auto set = data::augmented(data::drawn_digits(0, 4), Transforms({doubled}));
  std::vector<std::uint8_t> x(28 * 28);
  std::int64_t y = 0;
  const std::vector<std::int64_t> one{0};
  CHECK_THROWS_WITH_AS(set->get_augmented(one, 0, 0, x.data(), &y),
                       doctest::Contains("is 28 x 56 after its transforms, not 28 x 28"),
                       ShapeError);
}

TEST_CASE("own transforms: random numbers depend on seed, epoch, sample and place") {
  const Image in = board();
  const auto blue = [&](const Transforms& steps, std::uint64_t seed, std::int64_t epoch,
                        std::int64_t sample) {
    return steps.apply(in, 8, 8, seed, epoch, sample).pixels;
  };
  const Transforms one({data::transforms::function("noise", noise())});
  const auto expected = blue(one, 1, 2, 3);
  CHECK(blue(one, 1, 2, 3) == expected);
  CHECK(blue(one, 2, 2, 3) != expected);
  CHECK(blue(one, 1, 3, 3) != expected);
  CHECK(blue(one, 1, 2, 4) != expected);
  // The second of a list has other numbers than the first.
  const Transforms second({mark(), data::transforms::function("noise", noise())});
  CHECK(blue(second, 1, 2, 3) != expected);
  // A function takes nothing from the random numbers of Tenon's transforms.
  const Transforms plain = Transforms::parse("rotate=40,jitter=0.9");
  Transforms with(std::vector{plain.steps()[0], plain.steps()[1], mark()});
  auto expected_marked = blue(plain, 1, 2, 3);
  expected_marked[2] = 200;
  CHECK(blue(with, 1, 2, 3) == expected_marked);
}

TEST_CASE("own transforms: registered ones are known by name") {
  register_for_tests();
  made = 0;
  const Transforms steps = Transforms::parse("flip=1,test_add=5,center_crop");
  CHECK(made == 1);
  CHECK(steps.text() == "flip=1,test_add=5,center_crop");
  const Image out = steps.apply(board(), 8, 8, 0, 0, 0);
  CHECK(made == 1);
  CHECK(out.pixels[0] == 75);
  CHECK(Transforms::parse("test_add").apply(board(), 8, 8, 0, 0, 0).pixels[0] == 1);
  CHECK(Transforms::parse("test_add=5:0").apply(board(), 8, 8, 0, 0, 0).pixels[0] == 0);
  const std::vector<Transforms::Known> known = Transforms::known();
  const auto found = std::find_if(known.begin(), known.end(), [](const Transforms::Known& one) {
    return one.usage == "test_add[=VALUE:CHANCE]";
  });
  REQUIRE(found != known.end());
  CHECK(found->about == "adds VALUE to all pixels with probability CHANCE");
  CHECK(found->defaults == "1:1");
  CHECK_THROWS_WITH_AS(Transforms::parse("test_add=101"),
                       doctest::Contains("VALUE is 101, must be from 0 to 100"), ValueError);
  CHECK_THROWS_WITH_AS(Transforms::parse("test_add=1:1:1"), doctest::Contains("at most 2"),
                       ValueError);
  CHECK_THROWS_WITH_AS(Transforms::parse("test_ad"), doctest::Contains("did you mean 'test_add'?"),
                       ValueError);
}

TEST_CASE("own transforms: what cannot be registered is refused") {
  register_for_tests();
  const auto refused = [](data::RegisteredTransform transform, const char* text) {
    CHECK_THROWS_WITH_AS(data::register_transform(std::move(transform)), doctest::Contains(text),
                         ValueError);
  };
  const auto make = [](const std::vector<double>&) { return noise(); };
  refused({.name = "flip", .make = make}, "already a transform 'flip'");
  refused({.name = "none", .make = make}, "already a transform 'none'");
  refused({.name = "test_add", .make = make}, "already a transform 'test_add'");
  for (const char* name : {"", "Test", "1st", "a b", "a,b", "a=b"})
    refused({.name = name, .make = make}, "must be lower-case letters");
  refused({.name = "test_empty"}, "no make()");
  refused({.name = "test_default",
           .parameters = {{.name = "X", .usual = 3, .low = 0, .high = 1}},
           .make = make},
          "the default of X is 3");
  CHECK_THROWS_AS(data::transforms::function("mine", nullptr), ValueError);
  CHECK_THROWS_WITH_AS(Transforms({data::transforms::function("flip", noise())}),
                       doctest::Contains("'flip' is one of Tenon's image transforms"), ValueError);
}

TEST_CASE("own transforms: an image that does not fit its description is refused") {
  const auto grey = data::transforms::function("grey_only", [](Image image, SampleRandom&) {
    return Image{image.width, image.height, 1, std::vector<std::uint8_t>(64)};
  });
  CHECK_THROWS_WITH_AS(Transforms({grey}).apply(board(), 8, 8, 0, 0, 0),
                       doctest::Contains("transform 'grey_only' gave an image of 8 x 8 with 1 "
                                         "channels in 64 bytes; it must have 3 channels"),
                       ShapeError);
  const auto cut = data::transforms::function("cut", [](Image image, SampleRandom&) {
    image.pixels.pop_back();
    return image;
  });
  CHECK_THROWS_AS(Transforms({cut}).apply(board(), 8, 8, 0, 0, 0), ShapeError);
}

TEST_CASE("own transforms: threads and a resume change no image") {
  register_for_tests();
  const Transforms steps = Transforms::parse("crop=4,test_noise,flip,test_add=7:0.5");
  const TestFolder dir;
  for (int k = 0; k < 20; ++k) {
    Image image = board();
    image.pixels[0] = static_cast<std::uint8_t>(k);
    std::filesystem::create_directories(dir / "pets/cat");
    io::save_png(dir / ("pets/cat/" + std::to_string(k) + ".png"), image);
  }
  data::ImageOptions how;
  how.input = {3, 8, 8};
  how.augment = steps;
  const std::shared_ptr<data::Dataset> sets[] = {
      data::augmented(data::drawn_digits(0, 20), steps),
      data::image_dataset(data::open_image_folder(dir / "pets", data::Split::All), how)};
  for (const auto& set : sets) {
    CHECK(set->is_augmented());
    const auto expected = loaded(set, 0, {.seed = 2}, 2);
    for (const int workers : {1, 2, 5}) CHECK(loaded(set, workers, {.seed = 2}, 2) == expected);
    const auto resumed = loaded(set, 3, {.seed = 2, .epoch = 1, .position = 6}, 1);
    const std::int64_t each = set->input_shape().numel();
    CHECK(std::equal(resumed.begin(), resumed.end(), expected.begin() + each * (20 + 6),
                     expected.end()));
  }
}

TEST_CASE("own transforms: a GPU cannot apply them") {
  register_for_tests();
  data::ImageOptions how;
  how.augment = Transforms::parse("resized_crop,flip");
  CHECK(data::why_not_on_gpu(how).empty());
  how.augment = Transforms::parse("resized_crop,test_noise");
  CHECK(data::why_not_on_gpu(how) ==
        "transform 'test_noise' is a function of the program's own, which runs on the CPU");
}

TEST_CASE("own transforms: the setting 'augment' of a run takes registered ones") {
  register_for_tests();
  train::Settings settings = train::Settings::for_model("mlp:784-10");
  settings.data = "digits:60,20", settings.epochs = 2, settings.batch = 20;
  settings.set("augment", "crop=2,flip,test_add=3:0.5");
  CHECK(settings.augment == "crop=2,flip,test_add=3:0.5");
  CHECK_THROWS_WITH_AS(settings.set("augment", "crop=2,test_unknown"),
                       doctest::Contains("there is no image transform 'test_unknown'"), ValueError);
  CHECK_THROWS_AS(settings.set("preprocess", "resize,test_add,center_crop"), ValueError);
  const auto losses = [&] {
    std::vector<double> out;
    for (const train::EpochReport& epoch : train::start_run(settings, "").epochs)
      out.push_back(epoch.train_loss);
    return out;
  };
  const std::vector<double> own = losses();
  CHECK(losses() == own);
  settings.set("augment", "crop=2,flip,test_add=0");
  CHECK(losses() != own);
}
