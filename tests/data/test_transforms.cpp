// Image transforms: equal to torchvision's with the same parameters; random parameters depend on
// seed, epoch and sample only.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/ops.h>

#include "data/pixels/image_ops.h"

using namespace tenon;
using data::Image;
using data::Transforms;

namespace {

Image image_of(const Tensor& tensor) {
  return {static_cast<int>(tensor.size(1)), static_cast<int>(tensor.size(0)),
          static_cast<int>(tensor.size(2)), tensor.to_vector<std::uint8_t>()};
}

struct Difference {
  int most = 0;
  double share = 0;  // of numbers that differ by more than one level
};

Difference difference(const Image& a, const Image& b) {
  REQUIRE(a.width == b.width);
  REQUIRE(a.height == b.height);
  REQUIRE(a.pixels.size() == b.pixels.size());
  Difference out;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    const int away = std::abs(int{a.pixels[i]} - int{b.pixels[i]});
    out.most = std::max(out.most, away);
    out.share += away > 1 ? 1.0 / static_cast<double>(a.pixels.size()) : 0;
  }
  return out;
}

data::ImageBox whole(const Image& image) {
  return {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)};
}

Image noise(int width, int height, int channels) {
  Image image{width, height, channels,
              std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * channels))};
  std::uint32_t state = 7;
  for (std::uint8_t& pixel : image.pixels)
    pixel = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  return image;
}

}  // namespace

TEST_CASE("transforms: each equals torchvision's with the same parameters") {
  const io::TensorMap fixtures =
      io::load_safetensors("tests/e2e/fixtures/transforms.safetensors").tensors;
  const Image in = image_of(fixtures.at("in"));
  const data::ImageSize size{in.width, in.height};
  const double w = in.width - 1, h = in.height - 1;
  struct Case {
    std::string name;
    Image out;
    int most = 1;  // levels; 0 is the same bytes
  };
  const std::vector<Case> cases = {
      {"resize_down", data::resized(in, whole(in), 26, 20), 0},
      {"resize_up", data::resized(in, whole(in), 67, 51), 0},
      {"center_crop", data::cropped(in, 8, 6, 28, 21), 0},
      {"center_crop_beyond", data::cropped(in, 8, -3, 30, 40), 0},
      {"resized_crop", data::resized(in, {7, 5, 38, 28}, 16, 16), 0},
      {"crop", data::cropped(in, 2, -3, 45, 34), 0},
      {"hflip", data::mirrored(in), 0},
      {"vflip", data::upside_down(in), 0},
      {"rotate", data::affine(in, data::rotation_matrix(size, 25)), 0},
      {"affine", data::affine(in, data::affine_matrix(size, -12, 3, -2, 1.2, 8, 0)), 0},
      {"shear_x", data::affine(in, {1, 0.21, 0, 0, 1, 0}), 0},
      {"perspective",
       data::perspective(
           in, data::perspective_map({{{0, 0}, {w, 0}, {w, h}, {0, h}}},
                                     {{{3, 2}, {w - 5, 4}, {w - 1, h - 4}, {7, h - 2}}}))},
      {"brightness", data::with_brightness(in, 1.35), 0},
      {"contrast", data::with_contrast(in, 0.6), 0},
      {"contrast_more", data::with_contrast(in, 1.7), 0},
      {"saturation", data::with_saturation(in, 1.5), 0},
      {"hue", data::with_hue(in, data::hue_steps(0.17)), 0},
      {"hue_back", data::with_hue(in, data::hue_steps(-0.3)), 0},
      {"sharpness", data::with_sharpness(in, 1.8), 0},
      {"blur", data::gaussian_blurred(in, 5, 1.4)},
      {"grey", data::grey_of(in), 0},
      {"posterize", data::posterized(in, 3), 0},
      {"solarize", data::solarized(in, 153), 0},
      {"auto_contrast", data::auto_contrasted(data::with_contrast(in, 0.6)), 0},
      {"equalize", data::equalized(in), 0},
      {"erase", data::erased(in, 9, 6, 17, 12, {10, 20, 30}), 0},
      {"pca", data::with_shift(in, data::pca_shift({0.12, -0.2, 0.08})), 0},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const Difference found = difference(one.out, image_of(fixtures.at(one.name)));
    CAPTURE(found.share);
    CHECK(found.most <= one.most);
  }
  CHECK(cases.size() + 4 == fixtures.size());  // the image itself, and three with crops
}

TEST_CASE("transforms: center_crop crops and pads like torchvision's, also for odd sizes") {
  // Width and height, the side of the crop, and its position in torchvision 0.29; negative: outside
  // the image.
  struct Place {
    int width, height, side, left, top;
  };
  for (const Place& p : std::initializer_list<Place>{
           {5, 5, 4, 0, 0},   {5, 5, 7, -1, -1}, {5, 5, 8, -1, -1}, {5, 6, 4, 0, 1},
           {5, 6, 7, -1, 0},  {6, 5, 4, 1, 0},   {6, 5, 8, -1, -1}, {7, 9, 4, 2, 2},
           {7, 9, 5, 1, 2},   {7, 9, 8, 0, 0},   {8, 8, 5, 2, 2},   {9, 7, 5, 2, 1},
           {9, 7, 8, 0, 0},   {11, 4, 5, 3, 0},  {11, 4, 7, 2, -1}, {11, 4, 8, 2, -2},
           {3, 12, 4, 0, 4},  {3, 12, 5, -1, 4}, {3, 12, 8, -2, 2}, {1, 1, 4, -1, -1},
           {1, 1, 5, -2, -2}, {1, 1, 8, -3, -3}, {13, 10, 5, 4, 2}, {13, 10, 7, 3, 2}}) {
    CAPTURE(p.width);
    CAPTURE(p.height);
    CAPTURE(p.side);
    const Image in = noise(p.width, p.height, 3),
                out = Transforms::parse("center_crop").apply(in, p.side, p.side, 0, 0, 0);
    CHECK(out.pixels == data::cropped(in, p.left, p.top, p.side, p.side).pixels);
  }
}

TEST_CASE("transforms: resize gives torchvision's sizes, also for odd sizes") {
  struct Size {
    int width, height, side, to_width, to_height;
  };
  for (const Size& s : std::initializer_list<Size>{{500, 375, 256, 341, 256},
                                                   {500, 375, 232, 309, 232},
                                                   {333, 501, 256, 256, 385},
                                                   {333, 501, 33, 33, 49},
                                                   {101, 99, 256, 261, 256},
                                                   {101, 99, 33, 33, 33},
                                                   {37, 41, 232, 232, 257},
                                                   {640, 427, 232, 347, 232},
                                                   {640, 427, 33, 49, 33}}) {
    const Image out = Transforms::parse("resize=" + std::to_string(s.side))
                          .apply(noise(s.width, s.height, 1), s.to_height, s.to_width, 0, 0, 0);
    CHECK(std::pair(out.width, out.height) == std::pair(s.to_width, s.to_height));
  }
}

TEST_CASE("transforms: five and ten crops equal torchvision's, also for odd sizes") {
  const io::TensorMap fixtures =
      io::load_safetensors("tests/e2e/fixtures/transforms.safetensors").tensors;
  const Image in = image_of(fixtures.at("in"));
  struct Case {
    const char *name, *steps;
    std::int64_t height, width;
  };
  for (const Case& one : {Case{"five_crop", "five_crop", 15, 20},
                          {"ten_crop", "ten_crop", 21, 28},
                          {"ten_crop_vertical", "ten_crop=0:1", 21, 28}}) {
    CAPTURE(one.name);
    const Tensor& wanted = fixtures.at(one.name);
    data::ImageOptions how;
    how.input = {3, one.height, one.width};
    how.resize = Transforms::parse(one.steps);
    CHECK(how.resize.crops() == wanted.size(0));
    const Tensor found = data::preprocess_image(in, how);
    CHECK(found.shape() == Shape{1, wanted.size(0), 3, one.height, one.width});
    CHECK(permute(select(found, 0, 0), {0, 2, 3, 1}).compute().to_vector<std::uint8_t>() ==
          wanted.to_vector<std::uint8_t>());
    // As in 2012: the centre of the image first.
    how.resize = Transforms::parse("center_crop=30," + std::string(one.steps));
    const Image middle = data::cropped(in, 8, 2, 30, 30);
    CHECK(data::preprocess_image(in, how).to_vector<std::uint8_t>() !=
          found.to_vector<std::uint8_t>());
    how.resize = Transforms::parse(one.steps);
    CHECK(data::preprocess_image(middle, how).shape() == found.shape());
  }
  CHECK(Transforms::parse("resize=40,ten_crop=24").middle_only().text() ==
        "resize=40,center_crop=24");
  CHECK(Transforms({data::transforms::resize(40), data::transforms::ten_crop(24, true)}).text() ==
        "resize=40,ten_crop=24:1");
  const auto fit = [&](const std::string& steps, const Shape& input) {
    data::ImageOptions how;
    how.input = input;
    how.resize = Transforms::parse(steps);
    return data::preprocess_image(in, how);
  };
  CHECK_THROWS_AS(fit("ten_crop", {3, 35, 20}), ShapeError);  // the image has 34 rows
  CHECK_THROWS_AS(fit("ten_crop=20", {3, 24, 24}), ValueError);
  CHECK_THROWS_AS(fit("ten_crop,center_crop", {3, 24, 24}), ValueError);
  CHECK_THROWS_AS(fit("five_crop,ten_crop", {3, 24, 24}), ValueError);
  CHECK_THROWS_AS(Transforms::parse("ten_crop=24:0.5"), ValueError);
  CHECK_THROWS_AS(Transforms::parse("ten_crop").apply(in, 24, 24, 0, 0, 0), ValueError);
}

TEST_CASE(
    "transforms: random parameters depend on seed, epoch and sample, separately for each "
    "transform") {
  const Image in = noise(60, 50, 3);
  const Transforms all = Transforms::parse(
      "resized_crop,flip,vflip,rotate=20,affine=10:0.1:0.8:1.2:5,perspective,"
      "jitter=0.4:0.4:0.4:0.1,pca,blur,grey,erase,cutout=6,randaugment");
  const Image a = all.apply(in, 32, 24, 1, 2, 3);
  CHECK(a.width == 24);
  CHECK(a.height == 32);
  CHECK(a.pixels == all.apply(in, 32, 24, 1, 2, 3).pixels);
  CHECK(a.pixels != all.apply(in, 32, 24, 2, 2, 3).pixels);
  CHECK(a.pixels != all.apply(in, 32, 24, 1, 3, 3).pixels);
  CHECK(a.pixels != all.apply(in, 32, 24, 1, 2, 4).pixels);
  // Another transform does not change the random numbers of the first.
  const Image crop = Transforms::parse("resized_crop").apply(in, 32, 24, 1, 2, 3);
  const Image more = Transforms::parse("resized_crop,vflip=1").apply(in, 32, 24, 1, 2, 3);
  CHECK(data::upside_down(crop).pixels == more.pixels);
}

TEST_CASE("transforms: all on small, thin and grey images; random ones change the image") {
  for (const Transforms::Known& known : Transforms::known()) {
    const std::string name = known.usage.substr(0, known.usage.find('['));
    CAPTURE(name);
    const Transforms one = Transforms::parse(name);
    CHECK(Transforms::parse(one.text()).text() == one.text());
    if (one.mixing().any() || one.crops() > 1) continue;
    if (!known.defaults.empty()) {
      const Transforms explicitly = Transforms::parse(name + "=" + known.defaults);
      const Image in = noise(20, 30, 3);
      CHECK(one.apply(in, 16, 16, 0, 0, 1).pixels == explicitly.apply(in, 16, 16, 0, 0, 1).pixels);
    }
    for (const auto& [width, height] : {std::pair{1, 1}, {1, 40}, {40, 1}, {3, 2}, {33, 31}})
      for (const int channels : {1, 3}) {
        const Image in = noise(width, height, channels);
        for (int number = 0; number < 12; ++number) {
          const Image out = one.apply(in, 16, 16, 0, 0, number);
          CHECK(out.channels == channels);
          CHECK(out.pixels.size() == static_cast<std::size_t>(out.width * out.height * channels));
        }
      }
    const Image in = noise(33, 31, 3);
    bool changed = false;
    for (int number = 0; number < 40; ++number)
      changed = changed || one.apply(in, 31, 33, 0, 0, number).pixels != in.pixels;
    CHECK(changed == (name != "center_crop" && name != "crop"));  // the image has the size already
  }
}

TEST_CASE("transforms: frequencies of flips and areas of crops are as requested") {
  const Image in = noise(40, 30, 1);
  int flipped = 0;
  for (int number = 0; number < 1000; ++number)
    flipped += Transforms::parse("flip=0.3").apply(in, 8, 8, 0, 0, number).pixels != in.pixels;
  CHECK(flipped > 240);
  CHECK(flipped < 360);
}

TEST_CASE("transforms: invalid lists are refused with what is allowed") {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      Transforms::parse(text);
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal("flop").find("did you mean 'flip'") != std::string::npos);
  for (const char* text : {"flip,", ",flip", "flip=2", "flip=x", "flip=0.5:1", "rotate=nan",
                           "resized_crop=224:0.9:0.1", "blur=4", "jitter=-1", "crop=-1",
                           "flip=", "randaugment=2:31", "affine=10:0:2:1"})
    CHECK(refusal(text) != "");
  CHECK_FALSE(Transforms::parse("none").any());
  CHECK(Transforms({data::transforms::random_resized_crop(), data::transforms::horizontal_flip()})
            .text() == "resized_crop=0:0.08:1:0.75:1.3333333333333333,flip=0.5");
}
