// ImageFiles: PNG round trip, PGM and PPM, JPEG from bytes, damage of all kinds.
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "io/folder.h"
#include "io/images/image.h"
#include "io/images/image_exif.h"
#include "io/jpeg.h"

using namespace tenon;

namespace {

io::Image pattern(int width, int height, int channels) {
  io::Image image{width, height, channels,
                  std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * channels))};
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(i * 7 % 256);
  return image;
}

std::string jpeg(const io::Image& image, bool progressive) {
  return test::jpeg_of(image, {.progressive = progressive});
}

io::Image parse(const std::string& bytes, int channels = 0) {
  return io::parse_image(bytes, "x", channels);
}

}  // namespace

TEST_CASE("PNG: round trip, grey and RGB, odd sizes") {
  TestFolder dir;
  for (int channels : {1, 3})
    for (int width : {1, 7, 64}) {
      const io::Image image = pattern(width, 5, channels);
      io::save_png(dir / "a.png", image);
      const io::Image back = io::load_image(dir / "a.png");
      CHECK(back.width == width);
      CHECK(back.height == 5);
      CHECK(back.channels == channels);
      CHECK(back.pixels == image.pixels);
      CHECK(io::load_image(dir / "a.png", 3).pixels.size() == static_cast<std::size_t>(width * 15));
      CHECK(io::load_image(dir / "a.png", 1).pixels.size() == static_cast<std::size_t>(width * 5));
    }
  CHECK_THROWS_AS(io::save_png(dir / "a.png", io::Image{2, 2, 1, {0}}), ValueError);
  CHECK_THROWS_AS(io::load_image(dir / "a.png", 2), ValueError);
}

TEST_CASE("PNG: every truncation is refused") {
  const std::string bytes = io::encode_png(pattern(9, 9, 3));
  for (std::size_t n = 0; n + 12 < bytes.size(); ++n)
    CHECK_THROWS_AS(parse(bytes.substr(0, n)), FormatError);
  std::string damaged = bytes;
  for (std::size_t i = 16; i < 24; ++i)
    damaged[i] = '\x7f';  // an implausible size; the checksum is wrong, too
  CHECK_THROWS_AS(parse(damaged), FormatError);
}

TEST_CASE("a colour converted to grey is its luma") {
  const io::Image grey =
      parse(io::encode_png(io::Image{3, 1, 3, {255, 0, 0, 0, 255, 0, 255, 255, 255}}), 1);
  CHECK(grey.pixels == std::vector<std::uint8_t>{76, 150, 255});
}

TEST_CASE(
    "JPEG: baseline and progressive, close to the original; damage is refused, never half "
    "decoded") {
  for (bool progressive : {false, true})
    for (int channels : {1, 3}) {
      io::Image smooth = pattern(40, 30, channels);
      for (std::size_t i = 0; i < smooth.pixels.size(); ++i)
        smooth.pixels[i] = static_cast<std::uint8_t>(i * 200 / smooth.pixels.size());
      const std::string bytes = jpeg(smooth, progressive);
      const io::Image back = parse(bytes);
      REQUIRE(back.pixels.size() == smooth.pixels.size());
      int worst = 0;
      for (std::size_t i = 0; i < back.pixels.size(); ++i)
        worst = std::max(worst, std::abs(int{back.pixels[i]} - int{smooth.pixels[i]}));
      CHECK(worst <= 6);
      for (std::size_t n = 2; n + 2 < bytes.size(); n += 5)
        CHECK_THROWS_AS(parse(bytes.substr(0, n)), FormatError);
    }
}

TEST_CASE("PGM and PPM: text and bytes, 8 and 16 bits, comments") {
  CHECK(parse("P2\n# note\n2 2\n255\n0 128\n255 1\n").pixels ==
        std::vector<std::uint8_t>{0, 128, 255, 1});
  CHECK(parse("P2 2 1 15 15 0").pixels == std::vector<std::uint8_t>{255, 0});
  CHECK(parse("P3 1 1 255 1 2 3").channels == 3);
  CHECK(parse(std::string("P5 2 1 255\n\x05\xff", 13)).pixels == std::vector<std::uint8_t>{5, 255});
  CHECK(parse(std::string("P5 1 1 65535\n\x80\x00", 15)).pixels == std::vector<std::uint8_t>{128});
  CHECK(parse("P6 1 1 255\nabc").pixels == std::vector<std::uint8_t>{'a', 'b', 'c'});
}

TEST_CASE("PGM and PPM: damage") {
  for (const char* bad : {"P5", "P5 2", "P5 2 2 255\nabc", "P5 0 2 255\n", "P5 99999999999 1 255\n",
                          "P5 1000000 1000000 255\n", "P2 2 1 255 1", "P2 1 1 255 256",
                          "P5 1 1 0\na", "P5 1 1 65536\nab", "P5 -1 1 255\na", "P5 1 1 255"})
    CHECK_THROWS_AS(parse(bad), FormatError);
  CHECK_THROWS_AS(parse("P7 1 1 255\na"), NotSupported);
  CHECK_THROWS_AS(parse(""), FormatError);
  CHECK_THROWS_AS(parse("GIF89a"), FormatError);
  CHECK_THROWS_AS(parse("no image"), FormatError);
}

TEST_CASE("JPEG: images are rotated upright by EXIF") {
  // The stored image has a bright top left corner. Its position for orientations 1 to 8.
  io::Image stored;
  stored.width = 24, stored.height = 16, stored.channels = 1;
  stored.pixels.assign(24 * 16, 0);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x) stored.pixels[static_cast<std::size_t>(y * 24 + x)] = 255;
  const char* corners[] = {"top left", "top right", "bottom right", "bottom left",
                           "top left", "top right", "bottom right", "bottom left"};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    const std::string segment = test::exif_segment(orientation, orientation % 2 == 0);
    REQUIRE(io::exif_orientation(segment) == orientation);
    std::string bytes = jpeg(stored, false);
    const std::size_t length = segment.size() + 2;
    bytes.insert(2, std::string("\xff\xe1") + static_cast<char>(length >> 8) +
                        static_cast<char>(length & 0xffu) + segment);
    const io::Image seen = parse(bytes);
    CHECK(seen.width == (orientation >= 5 ? 16 : 24));
    CHECK(seen.height == (orientation >= 5 ? 24 : 16));
    const auto bright = [&](int x, int y) {
      return seen.pixels[static_cast<std::size_t>(y * seen.width + x)] > 128;
    };
    const std::string corner = bright(0, 0)                 ? "top left"
                               : bright(seen.width - 1, 0)  ? "top right"
                               : bright(0, seen.height - 1) ? "bottom left"
                                                            : "bottom right";
    CHECK(corner == corners[orientation - 1]);
  }
}

TEST_CASE("EXIF: damaged segments mean an upright image") {
  const std::string whole = test::exif_segment(6, true);
  for (std::size_t size = 0; size < whole.size() - 6; ++size)
    CHECK(io::exif_orientation(std::string_view(whole).substr(0, size)) == 1);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bent = whole;
    bent[at] = '\xff';
    const int orientation = io::exif_orientation(bent);
    CHECK((orientation >= 1 && orientation <= 8));
  }
  CHECK(io::exif_orientation(test::exif_segment(9, false)) == 1);
  CHECK(io::exif_orientation(test::exif_segment(0, false)) == 1);
}

TEST_CASE("JPEG: the markers tell which files every decoder decodes alike") {
  const io::Image colours = pattern(37, 22, 3);
  using Found = std::optional<io::PlainJpeg>;
  for (const int across : {1, 2})
    for (const int down : {1, 2})
      CHECK(io::plain_jpeg(test::jpeg_of(colours, {.across = across, .down = down})) ==
            io::PlainJpeg{37, 22, across, down});
  const std::string plain = test::jpeg_of(colours, {});
  CHECK(io::plain_jpeg(test::jpeg_of(colours, {.across = 4, .down = 1})) == Found());
  CHECK(io::plain_jpeg(test::jpeg_of(colours, {.progressive = true})) == Found());
  CHECK(io::plain_jpeg(test::jpeg_of(colours, {.orientation = 6})) == Found());
  CHECK(io::plain_jpeg(test::jpeg_of(pattern(37, 22, 1), {})) == Found());
  CHECK(io::plain_jpeg(std::string("\x89PNG\r\n\x1a\n", 8)) == Found());
  // Decoders may skip these in different ways: a fill byte, a marker without a length.
  for (const char* odd : {"\xff", "\xff\xd0", "\xff\x01"}) {
    std::string other = plain;
    other.insert(2, odd);
    CHECK(io::parse_image(plain, "x", 3).width == 37);
    CHECK(io::plain_jpeg(other) == Found());
  }
  // Two frames: some decoders use the first, others the last.
  const std::size_t frame = plain.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  std::string twice = plain;
  twice.insert(frame, plain.substr(frame, 19));
  CHECK(io::plain_jpeg(twice) == Found());
  // Truncated anywhere: nothing is read beyond the end, and the file is not plain without its end.
  for (std::size_t bytes = 0; bytes < plain.size(); ++bytes)
    CHECK(io::plain_jpeg(std::string_view(plain).substr(0, bytes)) == Found());
  // Damaged: if the header is accepted, it agrees with the decoder.
  std::uint32_t random = 7;
  int told = 0;
  for (int k = 0; k < 4000; ++k) {
    std::string damaged = plain;
    for (int changes = 0; changes < 1 + k % 3; ++changes) {
      random = random * 1664525u + 1013904223u;
      damaged[2 + (random >> 8) % 640] = static_cast<char>(random >> 24);
    }
    const Found found = io::plain_jpeg(damaged);
    if (!found) continue;
    try {
      const io::Image image = io::parse_image(damaged, "x", 3);
      CHECK(std::pair(image.width, image.height) == std::pair(found->width, found->height));
      ++told;
    } catch (const FormatError&) {  // damage after the markers
    }
  }
  CHECK(told > 100);
}
