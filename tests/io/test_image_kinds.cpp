// Kinds of pictures beside plain PNG and JPEG: as Pillow saves them, whole and cut short.
#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>

#include <doctest/doctest.h>
#include <tenon/error.h>
#include <tenon/io.h>

#include "io/image.h"
#include "test_image_kinds.inc"

using namespace tenon;

namespace {

std::string text(std::span<const unsigned char> bytes) { return {bytes.begin(), bytes.end()}; }

bool has_library(const std::string& kind) {
  for (const io::ImageFormat& format : io::image_formats())
    if (format.name == kind) return !format.library.empty();
  return false;
}

// What make_picture_kinds.py drew.
int drawn(int x, int y, int channel) {
  return channel == 0 ? x * 19 : channel == 1 ? y * 36 : 255 - x * 10 - y * 5;
}

template <class F>
void check_pixels(const io::Image& image, int most, const F& expected) {
  REQUIRE(image.width == 13);
  REQUIRE(image.height == 7);
  int worst = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    const int pixel = static_cast<int>(i) / image.channels,
              channel = static_cast<int>(i) % image.channels;
    worst =
        std::max(worst, std::abs(int{image.pixels[i]} - expected(pixel % 13, pixel / 13, channel)));
  }
  CHECK(worst <= most);
}

}  // namespace

TEST_CASE("kinds: WebP, TIFF, BMP, PNG of 16 bits and JPEG of four inks hold what was saved") {
  struct Kind {
    std::string name, bytes;
    int most;
  };
  for (const Kind& kind : {Kind{"WebP", text(k_webp), 0},
                           {"TIFF", text(k_tiff), 0},
                           {"TIFF", text(k_tiff_lzw), 0},
                           {"BMP", text(k_bmp), 0},
                           {"JPEG", text(k_jpeg_cmyk), 6}}) {
    CAPTURE(kind.name);
    if (!has_library(kind.name)) {
      CHECK_THROWS_AS(io::parse_image(kind.bytes, "x", 0), NotSupported);
      continue;
    }
    check_pixels(io::parse_image(kind.bytes, "x", 0), kind.most, drawn);
  }
  const std::string palette = text(k_palette_pixels);
  check_pixels(io::parse_image(text(k_bmp_palette), "x", 0), 0, [&](int x, int y, int c) {
    return int{static_cast<unsigned char>(palette.at(static_cast<std::size_t>(y) * 39 +
                                                     static_cast<std::size_t>(x) * 3 +
                                                     static_cast<std::size_t>(c)))};
  });
  check_pixels(io::parse_image(text(k_png_16), "x", 0), 0, [](int x, int, int) { return x * 19; });
  if (has_library("WebP"))
    check_pixels(io::parse_image(text(k_webp_alpha), "x", 0), 1, [](int x, int y, int c) {
      const int alpha = x * 19;
      return (drawn(x, y, c) * alpha + 255 * (255 - alpha)) / 255;
    });
}

TEST_CASE("kinds: cut short or changed they are refused or read, never more") {
  for (const std::string& bytes : {text(k_webp), text(k_webp_alpha), text(k_tiff), text(k_tiff_lzw),
                                   text(k_bmp), text(k_bmp_palette), text(k_jpeg_cmyk)}) {
    int refused = 0;
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      std::string changed = bytes;
      changed[n] = static_cast<char>(changed[n] ^ 0x55);
      for (const std::string& bad : {bytes.substr(0, n), changed}) {
        try {
          io::parse_image(bad, "x", 3);
        } catch (const Error&) {
          ++refused;
        }
      }
    }
    CHECK(refused >= static_cast<int>(bytes.size()) / 2);
  }
  std::string huge = text(k_bmp);
  huge[21] = huge[25] = 0x7f;  // 2 * 10^9 pixels a side
  CHECK_THROWS_AS(io::parse_image(huge, "x", 3), FormatError);
  CHECK_THROWS_AS(io::parse_image("BM", "x", 3), FormatError);
}
