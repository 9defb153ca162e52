// Records: what is drawn for a picture, said for a device, is what the list of changes does.
#include <doctest/doctest.h>
#include <tenon/pictures.h>

#include "data/picture_changes.h"

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

io::Image by_record(const io::Image& image, const PictureRecord& record, int width, int height) {
  io::Image out =
      data::resized(image, {record.left, record.top, record.right, record.bottom},
                    {static_cast<double>(record.low_x), static_cast<double>(record.low_y),
                     static_cast<double>(record.high_x), static_cast<double>(record.high_y)},
                    width, height);
  if (record.mirrored != 0) out = data::mirrored(out);
  if (record.upside_down != 0) out = data::upside_down(out);
  for (int k = 0; k < record.changes; ++k) out = data::changed_by(std::move(out), record.change[k]);
  return out;
}

}  // namespace

TEST_CASE("picture records: the same pixels as the list of changes") {
  const data::PictureTarget target{20, 24, 3, {10, 20, 30}};
  for (const char* text : {"resized_crop", "resized_crop,flip,vflip,jitter=0.4:0.4:0.4:0.1",
                           "resized_crop,erase=0.7,flip,cutout=6,vflip,pca=0.5,erase=1",
                           "resized_crop,grey=0.5,pca"}) {
    INFO(text);
    const std::vector<data::Transform> steps = data::Transforms::parse(text).steps();
    CHECK(data::beyond_records(steps) == nullptr);
    for (int number = 0; number < 12; ++number) {
      const io::Image image = noise(30 + 7 * number, 90 - 4 * number, 5);
      data::PictureDraws draws(3, 1, number), again(3, 1, number);
      PictureRecord record;
      REQUIRE(data::draw_record(steps, image.width, image.height, target, again, record));
      CHECK(record.first_row >= 0);
      CHECK(record.first_row + record.rows <= image.height);
      CHECK(by_record(image, record, 24, 20).pixels ==
            data::changed(image, steps, 0, target, draws).pixels);
    }
  }
  // Of the middle no more is scaled than is kept; the last digits of its place may differ.
  const std::vector<data::Transform> fit = data::Transforms::parse("resize,center_crop").steps();
  const io::Image image = noise(77, 50, 9);
  data::PictureDraws draws(0, 0, 0);
  PictureRecord record;
  REQUIRE(data::draw_record(fit, 77, 50, target, draws, record));
  const std::vector<std::uint8_t> one = by_record(image, record, 24, 20).pixels,
                                  other = data::changed(image, fit, 0, target, draws).pixels;
  int most = 0;
  for (std::size_t k = 0; k < one.size(); ++k) most = std::max(most, std::abs(one[k] - other[k]));
  CHECK(most <= 1);
}

TEST_CASE("picture records: what they cannot say") {
  const auto first = [](const char* text) {
    const std::vector<data::Transform> steps = data::Transforms::parse(text).steps();
    const data::Transform* step = data::beyond_records(steps);
    return step == nullptr ? std::string() : step->name;
  };
  CHECK(first("resize,center_crop,flip").empty());
  CHECK(first("resized_crop,flip,rotate=5,jitter") == "rotate");
  CHECK(first("resize,crop=4") == "resize");
  CHECK(first("flip") == "flip");
  CHECK(first("resized_crop,jitter,jitter,jitter,jitter").empty());
  CHECK(first("resized_crop,jitter,jitter,jitter,jitter,grey") == "grey");
  // A box that is made very much smaller, and a size that is not the network's.
  const data::PictureTarget target{20, 24, 3, {}};
  PictureRecord record;
  data::PictureDraws draws(0, 0, 0);
  const auto draw = [&](const char* text, int side) {
    return data::draw_record(data::Transforms::parse(text).steps(), side, side, target, draws,
                             record);
  };
  CHECK_FALSE(draw("resize,center_crop", 2000));
  CHECK_FALSE(draw("resized_crop=16", 90));
}
