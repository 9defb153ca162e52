// Records of transforms for a device give the same pixels as the list of transforms.
#include <doctest/doctest.h>
#include <tenon/images.h>

#include "data/images/image_transforms.h"

using namespace tenon;

namespace {

io::Image noise(int width, int height, std::uint32_t seed) {
  io::Image image{width, height, 3, {}};
  for (int k = 0; k < 3 * width * height; ++k) {
    seed = seed * 1664525u + 1013904223u;
    image.pixels.push_back(static_cast<std::uint8_t>(seed >> 24));
  }
  return image;
}

io::Image by(io::Image image, const std::vector<ImageTransform>& changes) {
  for (const ImageTransform& change : changes) image = data::changed_by(std::move(image), change);
  return image;
}

}  // namespace

TEST_CASE("image records: the same pixels as the list of transforms") {
  const data::ImageTarget target{20, 24, 3, {10, 20, 30}};
  for (const char* text :
       {"resized_crop", "resized_crop,flip,vflip,jitter=0.4:0.4:0.4:0.1",
        "resized_crop,erase=0.7,flip,cutout=6,vflip,pca=0.5,erase=1", "resized_crop,grey=0.5,pca",
        "crop=4,flip,erase=1,vflip", "resize=40,rotate,erase=1,flip,crop,randaugment=4:20,flip",
        "vflip,affine,resized_crop,cutout,flip,blur,perspective,flip"}) {
    INFO(text);
    const std::vector<data::Transform> steps = data::Transforms::parse(text).steps();
    for (int number = 0; number < 12; ++number) {
      const io::Image image = noise(30 + 7 * number, 90 - 4 * number, 5);
      data::ImageDraws draws(3, 1, number), again(3, 1, number);
      std::vector<ImageTransform> changes;
      REQUIRE(data::draw_for_gpu(steps, {image.width, image.height}, target, again, changes));
      CHECK(by(image, changes).pixels == data::changed(image, steps, 0, target, draws).pixels);
    }
  }
  // Only the kept centre is scaled; its position may differ in the last digits.
  const std::vector<data::Transform> fit = data::Transforms::parse("resize,center_crop").steps();
  const io::Image image = noise(77, 50, 9);
  data::ImageDraws draws(0, 0, 0);
  std::vector<ImageTransform> changes;
  REQUIRE(data::draw_for_gpu(fit, {77, 50}, target, draws, changes));
  CHECK(changes.size() == 1);
  const std::vector<std::uint8_t> one = by(image, changes).pixels,
                                  other = data::changed(image, fit, 0, target, draws).pixels;
  int most = 0;
  for (std::size_t k = 0; k < one.size(); ++k) most = std::max(most, std::abs(one[k] - other[k]));
  CHECK(most <= 1);
}

TEST_CASE("image records: mirrors merge with crops, and at least one transform moves pixels") {
  const data::ImageTarget target{20, 24, 3, {}};
  const auto kinds = [&](const char* text, std::size_t first, data::ImageSize size) {
    data::ImageDraws draws(3, 1, 2);
    std::vector<ImageTransform> changes;
    REQUIRE(data::draw_for_gpu(data::Transforms::parse(text).steps(), first, size, target, draws,
                               changes));
    std::vector<ImageTransform::Kind> out;
    out.reserve(changes.size());
    for (const ImageTransform& change : changes) out.push_back(change.kind);
    return out;
  };
  using Kinds = std::vector<ImageTransform::Kind>;
  CHECK(kinds("resized_crop,erase=1,flip=1,vflip=1", 0, {50, 40}) ==
        Kinds{ImageTransform::kScale, ImageTransform::kErase});
  CHECK(kinds("crop,rotate,flip=1", 0, {50, 40}) ==
        Kinds{ImageTransform::kCrop, ImageTransform::kAffine, ImageTransform::kMirror});
  CHECK(kinds("resized_crop,pca,flip=1", 1, {24, 20}) ==
        Kinds{ImageTransform::kCrop, ImageTransform::kShift});
}

TEST_CASE("image records: transforms that a GPU does not support") {
  // A box that is reduced strongly, and a size that is not the network's.
  const data::ImageTarget target{20, 24, 3, {}};
  data::ImageDraws draws(0, 0, 0);
  const auto draw = [&](const char* text, int side) {
    std::vector<ImageTransform> changes;
    return data::draw_for_gpu(data::Transforms::parse(text).steps(), {side, side}, target, draws,
                              changes);
  };
  CHECK_FALSE(draw("resize,center_crop", 2000));
  CHECK_FALSE(draw("flip,resized_crop=0:0.9:1", 2000));
  CHECK_FALSE(draw("resized_crop=16", 90));
}
